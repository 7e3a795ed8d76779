"""Group-Lasso to the same certified gap: atomcast on one node beside celer, several seeds.

Gene-like data, 72 rows and 7,000 columns of norm sqrt(72) in 300 groups of random sizes. celer gets
the first tolerance of a grid at which its solution has a relative duality gap of at most 1e-4 on
the constrained problem, or the tightest. Times are those of the processor, on one core.

    python benchmarks/group_lasso.py [--seeds 3] [--repeats 3]
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everybody

import argparse
import warnings
from functools import partial

import celer
import numpy as np
from kinds import gene_like, random_groups, spread
from rich.console import Console
from rich.table import Table
from rows import Row, least_times

from atomcast import GroupLasso, Solver

TARGET = 1e-4


def relative_gap(X, y, groups, weights: np.ndarray, beta: float) -> float:
    """The duality gap on the ball of the group norm, relative to the objective."""
    residual = y - X @ weights
    gradient = -2.0 * (X.T @ residual)
    steepest = max(np.linalg.norm(gradient[group]) for group in groups)
    return float((weights @ gradient + beta * steepest) / (residual @ residual))


def enough(X, y, groups, penalty: float):
    """celer's model at the first tolerance that is enough, and its radius and gap."""
    for tol in [10.0**-k for k in range(2, 8)]:
        model = celer.GroupLasso(groups=groups, alpha=penalty, tol=tol, fit_intercept=False)
        model.fit(X, y)
        beta = float(sum(np.linalg.norm(model.coef_[group]) for group in groups))
        gap = relative_gap(X, y, groups, model.coef_, beta)
        if gap <= TARGET:
            break
    return model, beta, gap


def comparisons(seeds: int, repeats: int):
    """Yield a `Row` for each problem, the gap that celer has reached, and ours."""
    for seed in range(seeds):
        X, y = gene_like(seed)
        X, y = np.asfortranarray(X / np.sqrt(np.mean(X**2, axis=0))), (y - y.mean()) / y.std()
        groups = random_groups(seed, X.shape[1], 300)
        largest = max(np.linalg.norm(X[:, group].T @ y) for group in groups) / len(y)
        for share in (0.3, 0.1, 0.03, 0.01, 0.003):
            theirs, beta, gap = enough(X, y, groups, share * largest)
            ours = GroupLasso(
                beta,
                groups=groups,
                weights=np.ones(len(groups)),
                fit_intercept=False,
                solver=Solver(tol=TARGET),
            )
            fits = {"atomcast": partial(ours.fit, X, y), "celer": partial(theirs.fit, X, y)}
            seconds = least_times(fits, repeats)
            row = Row(
                f"GroupLasso, genes {seed}, penalty {share:g}", len(ours.active_groups_), seconds
            )
            yield row, gap, ours.result_.relative_gap


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    table = Table("problem", "groups", "celer s", "its gap", "atomcast s", "gap", "ratio")
    ratios = []
    warnings.simplefilter("ignore")
    for row, gap, reached in comparisons(arguments.seeds, arguments.repeats):
        ratios.append(row.ratio)
        cells = f"{row.seconds['celer']:.3f}", f"{gap:.1e}", f"{row.seconds['atomcast']:.3f}"
        table.add_row(row.problem, str(row.size), *cells, f"{reached:.1e}", f"{row.ratio:.2f}")
    console = Console(width=110)
    console.print(table)
    console.print(f"atomcast / celer: {spread(ratios)}")


if __name__ == "__main__":
    main()
