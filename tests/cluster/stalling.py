"""Run by mpirun: a fit in which one rank stalls, in the way that the first argument names."""

import os
import signal
import sys
import time

import numpy as np

from atomcast.atoms.explicit import DenseAtoms
from atomcast.cluster.mpi.cluster import MPICluster
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem

ROUND = 3
DEADLINE = 4.0  # much more than a healthy rank needs for anything, also on a busy machine


def sleep(state=None):
    time.sleep(1000.0)


def stop(state=None):
    os.kill(os.getpid(), signal.SIGSTOP)


def in_scoring(stall):
    """Let the atoms of this rank stall in a round."""
    scores = DenseAtoms.scores

    def scored(atoms, replica):
        if replica.round == ROUND:
            stall()
        return scores(atoms, replica)

    DenseAtoms.scores = scored


def refused(problem, X, cluster):
    """Fits that fail on all ranks, after which the program takes its time."""
    bad = np.where(X[0, 0] == X, np.nan, X)
    for solver, data in ((Solver(), bad), (Solver(resume="nowhere.safetensors"), X)):
        try:
            solver.solve(problem, Shards.split(data, cluster.nodes), cluster)
        except (ValueError, FileNotFoundError) as error:
            print("refused", error, flush=True)
        time.sleep(1.5 * DEADLINE)


def main():
    way, stalls = sys.argv[1], int(sys.argv[2])
    cluster = MPICluster(deadline=DEADLINE)
    mine = cluster.rank == stalls
    if way != "absent":
        cluster.comm.Barrier()  # or one that starts late would pass for one that stalls
    elif mine:
        sleep()
    if mine and way in ("sleeping", "stopped"):
        in_scoring(sleep if way == "sleeping" else stop)
    watchers = []
    if mine and way == "in a callback":
        watchers = [lambda state: sleep() if state.round == ROUND else None]
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 60)), rng.standard_normal(30)
    shards = Shards.split(X, cluster.nodes)
    if mine and way == "loading":
        shards.shard = lambda *_: sleep()
    problem = explicit_problem(SquaredError(y), L1Ball(2.0))
    if way == "done":
        refused(problem, X, cluster)
    Solver(step="classic", tol=1e-12, max_rounds=20, callbacks=watchers).solve(
        problem, shards, cluster
    )
    if way == "done":
        time.sleep(1.5 * DEADLINE)  # after a fit, ranks may take their time
        print("done", flush=True)


if __name__ == "__main__":
    main()
