"""Lasso to the same certified gap: atomcast on one node, celer, skglm and scikit-learn, in one run.

Every solver gets the tolerance, from a grid, at which its solution first has a relative duality
gap of at most 1e-4 on the constrained problem (weights scaled into the ball of radius beta), so
that times compare like with like. Warm: the minimum of the repeats. First: the first fit in a new
process, imports excluded, compilation (cached on disk where the library does so) included.

    python benchmarks/lasso.py [--repeats 5] [--only dorothea] [--seeds 3] [--from-seed 0]

The kinds of `kinds.py` are made with several seeds and fitted at several penalties; the last line
says how the worst of these compares with the fastest of the others. Times are those of the
processor, so that other work on the machine hardly matters. Dorothea is read from the folder that
ATOMCAST_DATA names; without it, only synthetic data is used.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everybody

import argparse
import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
from kinds import KINDS, spread
from rich.console import Console
from rich.table import Table
from rows import Row, least_times

from atomcast import Lasso, Solver
from atomcast.data import load_dorothea, make_sparse_regression

TARGET = 1e-4
SOLVERS = ("atomcast", "celer", "skglm", "scikit-learn")
TOLERANCES = [10.0**-k for k in range(2, 13)]


def fitted(solver: str, X, y, beta: float, penalty: float, tol: float) -> np.ndarray:
    """The weights that a solver finds, by its own tolerance."""
    alpha = penalty / len(y)
    if solver == "atomcast":
        model = Lasso(beta, fit_intercept=False, solver=Solver(tol=tol))
    elif solver == "celer":
        import celer

        model = celer.Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=1000)
    elif solver == "skglm":
        import skglm

        model = skglm.Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=1000)
    else:
        import sklearn.linear_model

        model = sklearn.linear_model.Lasso(
            alpha=alpha, fit_intercept=False, tol=tol, max_iter=100_000
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y).coef_


def relative_gap(X, y, beta: float, weights: np.ndarray) -> float:
    """The duality gap on the ball, relative to the objective, of the weights scaled into it."""
    weights = weights * min(1.0, beta / max(np.abs(weights).sum(), 1e-300))
    residual = y - X @ weights
    gradient = -2.0 * (X.T @ residual)
    gap = weights @ gradient + beta * np.abs(gradient).max()
    return float(gap / (residual @ residual))


def loosest_tolerance(solver: str, X, y, beta: float, penalty: float) -> float | None:
    """The first tolerance of the grid at which the solution is certified to the target."""
    for tol in [TARGET] if solver == "atomcast" else TOLERANCES:
        if relative_gap(X, y, beta, fitted(solver, X, y, beta, penalty, tol)) <= TARGET:
            return tol
    return None


def problems(only: str, seeds: int, first: int):
    """Yield (name, X, y, beta, the penalty whose solution has that norm)."""
    if only in ("all", "kinds"):
        for kind, make in KINDS.items():
            for seed in range(first, first + seeds):
                X, y = make(seed)
                for share in (0.1, 0.02, 0.004):
                    penalty = share * np.abs(X.T @ y).max()
                    beta = float(np.abs(fitted("celer", X, y, 0.0, penalty, 1e-10)).sum())
                    yield f"{kind} {seed}, penalty {share:g}", X, y, beta, penalty
    if only in ("all", "dorothea"):
        try:
            data = load_dorothea()
        except FileNotFoundError as error:
            print(f"without Dorothea: {error}", file=sys.stderr)
        else:
            for beta in (8.0, 16.0, 24.0):
                weights = fitted("atomcast", data.X, data.y, beta, 0.0, 1e-9)
                residual = data.y - data.X @ weights
                yield (
                    f"Dorothea beta={beta:g}",
                    data.X,
                    data.y,
                    beta,
                    np.abs(data.X.T @ residual).max(),
                )
    if only in ("all", "synthetic"):
        for atoms, solution in ((1e-3, 1e-3), (1e-3, 1e-2), (1e-2, 1e-3), (1e-2, 1e-2)):
            made = make_sparse_regression(10_000, 100_000, atoms, solution)
            X, y = made[0], made[1]
            penalty = 0.1 * np.abs(X.T @ y).max()
            beta = float(np.abs(fitted("celer", X, y, 0.0, penalty, 1e-12)).sum())
            yield f"synthetic s_A={atoms:g} s_alpha={solution:g}", X, y, beta, penalty


def comparisons(only: str, seeds: int, repeats: int, first: int = 0):
    """Yield a `Row` for each problem."""
    for name, *problem in problems(only, seeds, first):
        tolerances = {solver: loosest_tolerance(solver, *problem) for solver in SOLVERS}
        fits = {
            solver: partial(fitted, solver, *problem, tol)
            for solver, tol in tolerances.items()
            if tol is not None
        }
        seconds = least_times(fits, repeats)
        yield Row(f"Lasso, {name}", np.count_nonzero(fits["atomcast"]()), seconds)


def first_fit(solver: str) -> float:
    """Seconds that the first fit of a small problem takes in a new process, imports excluded."""
    command = [sys.executable, __file__, "--first", solver]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def time_first_fit(solver: str) -> None:
    """Print how long the first fit takes here."""
    import_of = {"atomcast": "atomcast.estimators.lasso", "scikit-learn": "sklearn.linear_model"}
    __import__(import_of.get(solver, solver))
    made = make_sparse_regression(1_000, 5_000, 1e-2, 1e-2)
    penalty = 0.1 * np.abs(made[0].T @ made[1]).max()
    start = time.perf_counter()
    fitted(solver, made[0], made[1], 3.0, penalty, 1e-4)
    print(time.perf_counter() - start)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("all", "dorothea", "synthetic", "kinds"), default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--from-seed", type=int, default=0, help="some seeds were tuned on")
    parser.add_argument("--first", choices=SOLVERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first:
        time_first_fit(arguments.first)
        return
    console = Console(width=120)
    table = Table("problem", "support", *(f"{s} s" for s in SOLVERS), "atomcast / fastest other")
    ratios: list[float] = []
    for row in comparisons(arguments.only, arguments.seeds, arguments.repeats, arguments.from_seed):
        shown = [f"{row.seconds[s]:.4f}" if s in row.seconds else "not reached" for s in SOLVERS]
        ratios.append(row.ratio)
        table.add_row(row.problem, str(row.size), *shown, f"{row.ratio:.2f}")
    console.print(
        f"Lasso to a relative gap of {TARGET:g}, one core, "
        f"least processor time of {arguments.repeats} warm fits"
    )
    console.print(table)
    console.print(f"atomcast / fastest other: {spread(ratios)}")
    console.print("first fit in a new process, d = 1,000, n = 5,000, imports excluded")
    firsts = Table("solver", "seconds")
    for solver in SOLVERS:
        firsts.add_row(solver, f"{first_fit(solver):.3f}")
    console.print(firsts)


if __name__ == "__main__":
    main()
