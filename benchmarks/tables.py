"""What somebody sees who has used scikit-learn so far: its own small tables, its own parameters.

    python benchmarks/tables.py [--repeats 10]

Each estimator is fitted as scikit-learn's would be, with `alpha=` or `C=`, defaults for all else,
and no cluster. Both end by their own rule: ours with a certified gap, theirs with whatever its
tolerance means. Least processor time, in milliseconds.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everybody

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from kinds import spread
from rich.console import Console
from rich.table import Table
from rows import Row, least_times
from sklearn import datasets, linear_model, svm
from sklearn.preprocessing import scale

import atomcast

Pair = tuple[str, Any, Any, Callable[[], Any], Callable[[], Any]]


def pairs() -> Iterator[Pair]:
    """Yield (name, X, y, makes ours, makes theirs)."""
    X, y = datasets.load_diabetes(return_X_y=True)
    for alpha in (0.01, 0.1, 1.0):
        theirs = partial(linear_model.Lasso, alpha=alpha)
        yield f"Lasso alpha={alpha:g}, diabetes", X, y, partial(atomcast.Lasso, alpha=alpha), theirs
    yield "LassoCV, diabetes", X, y, atomcast.LassoCV, linear_model.LassoCV
    for C in (0.1, 1.0, 10.0):
        ours = partial(atomcast.KernelSVR, C=C)
        yield f"SVR C={C:g}, diabetes", X, scale(y), ours, partial(svm.SVR, C=C)
    for load in (datasets.load_breast_cancer, datasets.load_wine, datasets.load_iris):
        name = load.__name__.removeprefix("load_").replace("_", " ")
        X, y = load(return_X_y=True)
        X, solver = scale(X), "liblinear" if len(np.unique(y)) == 2 else "saga"
        for C in (0.1, 1.0, 10.0):
            theirs = partial(
                linear_model.LogisticRegression,
                C=C, l1_ratio=1.0, solver=solver, max_iter=10_000, random_state=0,
            )  # fmt: skip
            ours = partial(atomcast.SparseLogisticRegression, C=C)
            yield f"logistic C={C:g}, {name}", X, y, ours, theirs
            yield (
                f"SVC C={C:g}, {name}",
                X,
                y,
                partial(atomcast.KernelSVC, C=C),
                partial(svm.SVC, C=C),
            )


def fitted(make: Callable[[], Any], X: Any, y: Any) -> Any:
    """A new model of the data."""
    return make().fit(X, y)


def comparisons(repeats: int) -> Iterator[Row]:
    """Yield a `Row` for each of them."""
    for name, X, y, ours, theirs in pairs():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(ours, X, y)
            makers = {"atomcast": ours, "scikit-learn": theirs}
            fits = {who: partial(fitted, make, X, y) for who, make in makers.items()}
            seconds = least_times(fits, repeats)
        size = np.count_nonzero(model.coef_) if hasattr(model, "coef_") else len(model.support_)
        yield Row(f"table, {name}", int(size), seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    table, ratios = Table("problem", "size", "atomcast ms", "scikit-learn ms", "ratio"), []
    for row in comparisons(arguments.repeats):
        shown = [f"{1e3 * row.seconds[who]:.2f}" for who in ("atomcast", "scikit-learn")]
        table.add_row(row.problem, str(row.size), *shown, f"{row.ratio:.2f}")
        ratios.append(row.ratio)
    Console(width=110).print(table)
    print(f"atomcast / scikit-learn: {spread(ratios)}")


if __name__ == "__main__":
    main()
