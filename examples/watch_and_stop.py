"""Callbacks: watch a run, stop it early, and still have a certificate.

python examples/watch_and_stop.py
"""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from atomcast import Lasso, Solver, TimeLimit
from atomcast.loop.callbacks import State


class EnoughAtoms:
    """Stop once the model may use so many features."""

    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, state: State) -> bool:
        """Go on while fewer atoms are known."""
        return len(state.replica.active) < self.most


def main() -> None:
    """Fit with two callbacks."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(
        PolynomialFeatures(2).fit_transform(StandardScaler().fit_transform(X))
    )
    solver = Solver(callbacks=[EnoughAtoms(25), TimeLimit(30)])
    model = Lasso(beta=2.0, cluster=8, solver=solver).fit(X, y)
    result = model.result_
    print(f"{result.status} after {result.rounds} rounds with {len(result.atom_ids)} features")
    print(f"objective {result.objective:.3f}, at most {result.gap:.3f} above the optimum")


if __name__ == "__main__":
    main()
