"""Whether this process is a rank of an MPI job: what mpirun and srun say, without loading MPI."""

from __future__ import annotations

import os

#: Where launchers of Open MPI, of PMIx (srun --mpi=pmix) and of MPICH say which rank this is.
_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def job_rank() -> int | None:
    """The number of this rank; None for a program that is none."""
    return next((int(os.environ[name]) for name in _RANK if name in os.environ), None)
