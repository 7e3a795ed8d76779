"""Sparse logistic regression to the same certified gap: atomcast, celer, skglm and scikit-learn.

All solve the problem without an intercept, which celer does not offer. Every solver gets the
tolerance, from a grid, at which its solution first has a relative duality gap of at most 1e-4 on
the constrained problem (weights scaled into the ball); times are the minimum of the repeats, on
one core and one node. Rounds, atoms and values are what ten simulated nodes have to send.

    python benchmarks/logistic.py [--repeats 3] [--only dorothea] [--seeds 3] [--from-seed 0]

The kinds of `kinds.py` are made with several seeds; the last line says how the worst of these
compares with the fastest of the others. Other data is read from the folder that ATOMCAST_DATA
names. Dorothea is fitted on its 800 training rows and judged on its 350 validation rows, a9a on
the parts it is published in.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everybody

import argparse
import warnings
from functools import partial

import numpy as np
from kinds import KINDS, spread
from rich.console import Console
from rich.table import Table
from rows import Row, least_times
from scipy import sparse
from scipy.special import expit
from sklearn.metrics import accuracy_score, roc_auc_score

from atomcast import Solver, SparseLogisticRegression
from atomcast.data import load_adult, load_dorothea

TARGET = 1e-4
NODES = 10
SOLVERS = ("atomcast", "celer", "skglm", "scikit-learn")
TOLERANCES = [10.0**-k for k in range(1, 11)]


def fitted(solver: str, X, y, beta: float, penalty: float, tol: float, nodes: int | None = None):
    """The fitted model of a library, by its own tolerance."""
    if solver == "atomcast":
        model = SparseLogisticRegression(
            beta, fit_intercept=False, cluster=nodes, solver=Solver(tol=tol)
        )
    elif solver == "celer":
        import celer

        model = celer.LogisticRegression(C=1 / penalty, tol=tol, max_iter=200)
    elif solver == "skglm":
        import skglm

        model = skglm.SparseLogisticRegression(
            alpha=penalty / len(y), fit_intercept=False, tol=tol, max_iter=200
        )
    else:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            l1_ratio=1.0,
            solver="liblinear",
            C=1 / penalty,
            fit_intercept=False,
            tol=tol,
            max_iter=10_000,
            random_state=0,  # else it is not the solution that was judged
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def judged(X, y, beta: float, weights: np.ndarray) -> tuple[float, float]:
    """The objective of the weights scaled into the ball, and their relative duality gap."""
    weights = weights * min(1.0, beta / max(np.abs(weights).sum(), 1e-300))
    margin = y * (X @ weights)
    gradient = -(X.T @ (y * expit(-margin)))
    value = float(np.logaddexp(0.0, -margin).sum())
    return value, float(weights @ gradient + beta * np.abs(gradient).max()) / value


def loosest(solver: str, X, y, beta: float, penalty: float) -> float | None:
    """The first tolerance of the grid at which the solution is certified to the target."""
    for tol in [TARGET] if solver == "atomcast" else TOLERANCES:
        model = fitted(solver, X, y, beta, penalty, tol)
        if judged(X, y, beta, model.coef_.ravel())[1] <= TARGET:
            return tol
    return None


def problems(only: str, seeds: int, first: int = 0):
    """Yield (name, X, y, X_test, y_test), the kinds with so many seeds from the first one on."""
    if only in ("all", "kinds"):
        for kind, make in KINDS.items():
            for seed in range(first, first + seeds):
                X, y = make(seed)
                half = 4 * X.shape[0] // 5
                labels = np.where(y > np.median(y), 1.0, -1.0)
                rows = X.tocsr() if sparse.issparse(X) else X
                train = (
                    rows[:half].tocsc() if sparse.issparse(X) else np.asfortranarray(rows[:half])
                )
                yield f"{kind} {seed}", train, labels[:half], rows[half:], labels[half:]
    if only in ("all", "dorothea"):
        train, valid = load_dorothea(part="train"), load_dorothea(part="valid")
        yield "Dorothea", train.X, train.y, valid.X, valid.y
    if only in ("all", "a9a"):
        data = load_adult()
        yield "a9a", data.X.tocsc(), data.y.astype(float), data.X_test, data.y_test


def comparisons(only: str, seeds: int, shares, repeats: int, first: int = 0):
    """Yield, for each problem and penalty, a `Row`, the problem, its test rows and all models."""
    for name, X, y, *test in problems(only, seeds, first):
        for share in shares:
            penalty = share * np.abs(X.T @ (0.5 * y)).max()
            beta = float(np.abs(fitted("skglm", X, y, 0.0, penalty, 1e-10).coef_).sum())
            problem = X, y, beta, penalty
            tolerances = {solver: loosest(solver, *problem) for solver in SOLVERS}
            fits = {
                solver: partial(fitted, solver, *problem, tol)
                for solver, tol in tolerances.items()
                if tol is not None
            }
            seconds = least_times(fits, repeats)
            models = {solver: fit() for solver, fit in fits.items()}
            models["atomcast"] = fitted("atomcast", *problem, TARGET, NODES)
            size = np.count_nonzero(models["atomcast"].coef_)
            row = Row(f"logistic, {name}, penalty {share:g}", size, seconds)
            yield row, problem, test, models


def line(solver: str, row: Row, problem, test, models) -> list[str]:
    """A line of the table."""
    if solver not in models:
        return [solver, *["-"] * 8]
    (X, y, beta, _), (X_test, y_test), model = problem, test, models[solver]
    weights = model.coef_.ravel()
    value, gap = judged(X, y, beta, weights)
    scores = X_test @ weights
    sent = ["", "", ""]
    if solver == "atomcast":
        ledger = model.result_.ledger
        sent = [str(model.n_iter_), str(ledger.atoms_sent), f"{ledger.values:,}"]
    return [
        solver,
        f"{value:.6f}",
        f"{gap:.1e}",
        str(np.count_nonzero(weights)),
        *sent,
        f"{roc_auc_score(y_test, scores):.4f} / "
        f"{accuracy_score(y_test, np.where(scores > 0, 1, -1)):.4f}",
        f"{row.seconds[solver]:.3f}",
    ]


def main() -> None:
    """Print a table for each problem and penalty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("all", "dorothea", "a9a", "kinds"), default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--from-seed", type=int, default=0)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 0.02])
    arguments = parser.parse_args()
    console = Console(width=130)
    ratios: list[float] = []
    chosen = arguments.only, arguments.seeds, arguments.shares, arguments.repeats
    for row, problem, test, models in comparisons(*chosen, arguments.from_seed):
        heads = ("objective", "gap", "nonzeros", "rounds", "atoms sent", "values sent")
        table = Table(title=f"{row.problem} of the largest: beta = {problem[2]:.3f}")
        for head in ("solver", *heads, "test AUC / accuracy", "seconds"):
            table.add_column(head, justify="left" if head == "solver" else "right")
        for solver in SOLVERS:
            table.add_row(*line(solver, row, problem, test, models))
        console.print(table)
        ratios.append(row.ratio)
    console.print(f"atomcast / fastest other: {spread(ratios)}")


if __name__ == "__main__":
    main()
