"""What a rank does that `mpi_runs.mpi_run` started: run the loop, and time it."""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from atomcast.atoms.kernel import KernelAtoms
from atomcast.cluster.mpi.buffers import bytes_of_rank_0
from atomcast.cluster.mpi.channel import connect
from atomcast.cluster.mpi.cluster import MPICluster
from atomcast.cluster.mpi.stored_shards import StoredShards
from atomcast.experiments.runs.clocked_runs import TOL
from atomcast.experiments.runs.mpi_runs import OUTCOME
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.sums import KernelSums, kernel_sums
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.problems.problem import Problem

#: Rounds that load compiled code and the data before those that count.
WARM_UP = 3
#: Kernel columns that are timed before the run, and again after it.
COLUMNS = 20


def take_own_core(rank: int, ranks: int) -> None:
    """Stay on one of the cores that this job may use, so that no two ranks share one.

    The system may put two ranks on one core; mpirun would bind them to the first cores of the
    machine, also where this job may use only others.
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= ranks:
        os.sched_setaffinity(0, {cores[rank]})


def timed_columns(comm: Any, sums: KernelSums) -> list[float]:
    """How long all ranks together take for a kernel column over their own examples, repeatedly."""
    total, seconds = np.zeros(sums.points.shape[0]), []
    one, label, weight = sums.points[:1], sums.labels[:1], np.ones(1)
    for _ in range(COLUMNS):
        comm.Barrier()
        start = time.perf_counter()
        sums.add(total, 0.5, one, label, weight)
        comm.Barrier()
        seconds.append(time.perf_counter() - start)
    return seconds


def own_sums(problem: Problem, shards: StoredShards, rank: int) -> KernelSums:
    """The sums over this rank's examples, in the same way as in the run."""
    atoms, active = problem.make_atoms(shards.shard(rank, problem.axis)), problem.make_active()
    assert isinstance(atoms, KernelAtoms)
    assert isinstance(active, KernelActiveSet)
    kernel = active.spec.resolve(atoms.points[:1])
    return kernel_sums(atoms.points, kernel, active.code, atoms.labels)


def main(folder: Path, rounds: int, socket_path: str) -> None:
    """Time single kernel columns and a whole run; rank 0 writes both down."""
    cluster = MPICluster()
    take_own_core(cluster.rank, cluster.nodes)
    said = connect(socket_path).receive_bytes() if cluster.rank == 0 else b""
    problem, shards = pickle.loads(bytes_of_rank_0(cluster.comm, said)), StoredShards(folder)

    def run(count: int) -> Result:
        return Solver("classic", tol=TOL, max_rounds=count).solve(problem, shards, cluster)

    run(min(WARM_UP, rounds))
    sums = own_sums(problem, shards, cluster.rank)
    alone = timed_columns(cluster.comm, sums)
    result = run(rounds)
    alone += timed_columns(cluster.comm, sums)
    if cluster.rank == 0:
        outcome = {"rows": list(result.trace), "alone": alone}
        (folder / OUTCOME).write_text(json.dumps(outcome), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
