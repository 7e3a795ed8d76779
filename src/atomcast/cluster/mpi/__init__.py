"""Nodes that are MPI ranks, started by mpirun or by a program."""
