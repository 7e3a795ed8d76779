"""Categorical features as groups: a category's dummy variables enter the model together.

A shop wants to know what drives its sales. Each department holds some of the columns; a whole
categorical column lives on one node, and the ledger counts all its dummy variables once.

    python examples/group_categories.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from atomcast import GroupLasso, Lasso, Solver
from atomcast.data import one_hot


def make_sales(rows: int = 500) -> tuple[pd.DataFrame, pd.Series]:
    """Sales that depend on weekday and price, and not on the other columns."""
    rng = np.random.default_rng(0)
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    frame = pd.DataFrame(
        {
            "weekday": rng.choice(days, rows),
            "region": rng.choice(["north", "east", "south", "west"], rows),
            "colour": rng.choice(["red", "green", "blue", "black", "white"], rows),
            "price": rng.normal(10.0, 2.0, rows),
            "stock": rng.normal(100.0, 15.0, rows) / 100.0,
            "holiday": rng.random(rows) < 0.1,
        }
    )
    of_day = dict(zip(days, [0.0, 0.5, 1.0, 1.0, 3.0, 5.0], strict=True))
    sales = frame["weekday"].map(of_day) - 0.5 * frame["price"] + rng.normal(0.0, 1.0, rows)
    return frame, sales


def main() -> None:
    """Fit with and without groups."""
    frame, sales = make_sales()
    X, groups = one_hot(frame)
    names = [group[0].split("=")[0] for group in groups]
    grouped = GroupLasso(9.0, groups=groups, cluster=3, solver=Solver(tol=1e-6)).fit(X, sales)
    print(f"GroupLasso: R^2 {grouped.score(X, sales):.3f}")
    for name, group in zip(names, groups, strict=True):
        coefficients = grouped.coef_[X.columns.get_indexer(group)]
        shown = " ".join(f"{value:6.2f}" for value in coefficients)
        print(f"  {name:>8}: {shown if coefficients.any() else 'not in the model'}")
    for entry in grouped.result_.ledger.disclosures:
        print(f"  round {entry.round}: node {entry.node} sent {entry.values} values: {entry.name}")
    plain = Lasso(float(np.abs(grouped.coef_).sum()), solver=Solver(tol=1e-6)).fit(X, sales)
    used = {X.columns[j].split("=")[0] for j in np.flatnonzero(plain.coef_)}
    print(f"Lasso with the same l1 norm uses {np.count_nonzero(plain.coef_)} of {X.shape[1]}")
    print(f"  dummy variables and numbers, from {len(used)} columns: {', '.join(sorted(used))}")


if __name__ == "__main__":
    main()
