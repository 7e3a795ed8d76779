"""TODO mpi."""
