"""Run by mpirun: a run on MPI ranks, one of which somebody else will kill.

Every rank leaves its process id in a file, and rank 0 prints each round. The run goes on from the
checkpoint if there is one, and saves its weights if it comes to the end.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from atomcast.cluster.mpi.cluster import MPICluster
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.storage.checkpoint import Checkpoint


def main():
    folder, how, steps = Path(sys.argv[1]), json.loads(sys.argv[2]), float(sys.argv[3])
    cluster = MPICluster(deadline=1000.0)  # a rank that is killed is noticed without it
    (folder / f"pid-{cluster.rank}").write_text(str(os.getpid()))

    rounds = []

    def show(state):
        rounds.append(state.round)
        if state.speaks:
            print(state.round, flush=True)
        late = len(rounds) > steps + 3  # by then, a rank should have been killed
        time.sleep(1000.0 if late else 0.01)

    with np.load(folder / "data.npz", allow_pickle=False) as data:
        X, y = data["X"], data["y"]
    checkpoint = folder / "c.safetensors"
    solver = Solver(
        **how,
        callbacks=[Checkpoint(checkpoint, rounds=2), show],
        resume=checkpoint if checkpoint.exists() else None,
    )
    problem = explicit_problem(SquaredError(y), L1Ball(8.0))
    result = solver.solve(problem, Shards.split(X, cluster.nodes), cluster)
    if cluster.rank == 0:
        figures = {"gap": result.gap, "rounds": result.rounds, "status": result.status}
        np.savez(folder / "result.npz", weights=result.weights, **figures)


if __name__ == "__main__":
    main()
