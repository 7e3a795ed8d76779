"""A run in a process of its own, which somebody else will kill.

It prints the number of each round, goes on from the checkpoint if there is one, and saves its
weights if it comes to the end. Some rounds after it should have been killed it waits for it.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster
from atomcast.storage.checkpoint import Checkpoint


def show(state, last):
    print(state.round, flush=True)
    if state.round >= last:
        time.sleep(1000)


def main():
    folder, nodes, how = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    last = float(sys.argv[4])
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        X, y = data["X"], data["y"]
    checkpoint = folder / "c.safetensors"
    solver = Solver(
        **how,
        callbacks=[Checkpoint(checkpoint, rounds=1), lambda state: show(state, last)],
        resume=checkpoint if checkpoint.exists() else None,
    )
    problem = explicit_problem(SquaredError(y), L1Ball(8.0))
    result = solver.solve(problem, Shards.split(X, nodes), LocalCluster(nodes))
    np.savez(folder / "result.npz", weights=result.weights, gap=result.gap, rounds=result.rounds)


if __name__ == "__main__":
    main()
