"""Run by mpirun: every case on 1, 2 and 4 of the ranks; what came out goes into a folder.

Starting ranks takes seconds, so that all cases share one start. A case that leaves ranks waiting
for each other is ended by the test that started them.
"""

from __future__ import annotations

import os
import sys
import traceback
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


from atomcast.cluster.mpi.cluster import MPICluster
from cluster import contract, model_cases, mpi_cases, resume_cases

SIZES = (1, 2, 4)


def cases(nodes):
    """What is tested with so many ranks; two of them will do for most of it."""
    resumed, models = resume_cases.CASES, model_cases.CASES
    return contract.CASES | (resumed if nodes <= 2 else {}) | (models if nodes == 2 else {})


def run(folder):
    from mpi4py import MPI  # starts MPI, and tests import this file for its cases

    world = MPI.COMM_WORLD
    for nodes in SIZES:
        member = world.Get_rank() < nodes
        comm = world.Split(0 if member else MPI.UNDEFINED)
        if not member:
            continue
        for name, case in cases(nodes).items():
            report(folder, comm, name, partial(case, lambda _, comm=comm: MPICluster(comm), nodes))
        if nodes > 1:
            for name, case in mpi_cases.CASES.items():
                report(folder, comm, name, partial(case, MPICluster(comm)))


def report(folder, comm, name, run_case):
    """Write how the case went on this rank."""
    os.environ["ATOMCAST_CONTRACT_FOLDER"] = str(folder)
    try:
        run_case()
        outcome = "passed"
    except BaseException:
        outcome = traceback.format_exc()
    path = Path(folder, f"{name}-{comm.Get_size()}-{comm.Get_rank()}")
    path.write_text(outcome, encoding="utf-8")
    comm.Barrier()


if __name__ == "__main__":
    run(Path(sys.argv[1]))
