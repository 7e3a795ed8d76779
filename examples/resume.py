"""Checkpoints: stop a fit, and let another process, with other nodes, finish it.

python examples/resume.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from atomcast import Checkpoint, Lasso, Solver
from atomcast.loop.callbacks import State


def main() -> None:
    """Interrupt a fit after six rounds, and compare the resumed one with one that was not."""
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(PolynomialFeatures(3, include_bias=False).fit_transform(X))
    whole = Lasso(beta=150.0, cluster=10).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"

        def interrupted(state: State) -> bool:
            return state.round < 6

        watch = [Checkpoint(path, rounds=1), interrupted]
        Lasso(beta=150.0, cluster=10, solver=Solver(callbacks=watch)).fit(X, y)
        print(f"interrupted; the checkpoint has {path.stat().st_size:,} bytes")
        resumed = Lasso(beta=150.0, cluster=4, solver=Solver(resume=path)).fit(X, y)
    difference = np.abs(resumed.coef_ - whole.coef_).max()
    first, result = resumed.result_.trace.round[0], resumed.result_
    print(f"resumed in round {first} on 4 nodes: {result.status} in round {result.rounds}")
    print(f"largest difference of a coefficient from the uninterrupted fit: {difference:.1e}")


if __name__ == "__main__":
    main()
