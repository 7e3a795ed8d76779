"""The same problem with every step: what each one sends until it is certified to 1 %.

python examples/steps.py
"""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

from atomcast import Lasso, LocalCluster, Solver
from atomcast.data import make_sparse_regression
from atomcast.steps import STEPS


def main() -> None:
    """Print a line for each step."""
    X, y, truth = make_sparse_regression(500, 2_000, 0.05, 0.01)
    beta = 0.8 * abs(truth).sum()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for step in (step for step in STEPS if step != "block-coordinate"):  # that is for examples
        solver = Solver(step=step, tol=1e-2, max_rounds=2_000)
        model = Lasso(beta, cluster=LocalCluster(nodes=20), solver=solver).fit(X, y)
        result = model.result_
        print(
            f"{step:>16}: {result.status:>10} after {result.rounds:>5} rounds, "
            f"{result.ledger.atoms_sent:>3} atoms and {result.ledger.values:>9,} values sent, "
            f"objective {result.objective:.4f}, relative gap {result.relative_gap:.1e}"
        )


if __name__ == "__main__":
    main()
