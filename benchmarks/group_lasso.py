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
import time
import warnings

import celer
import numpy as np
from kinds import gene_like, random_groups, spread
from rich.console import Console
from rich.table import Table

from atomcast import GroupLasso, Solver

TARGET = 1e-4


def relative_gap(X, y, groups, weights: np.ndarray, beta: float) -> float:
    """The duality gap on the ball of the group norm, relative to the objective."""
    residual = y - X @ weights
    gradient = -2.0 * (X.T @ residual)
    steepest = max(np.linalg.norm(gradient[group]) for group in groups)
    return float((weights @ gradient + beta * steepest) / (residual @ residual))


def timed(model, X, y, repeats: int):
    """The fitted model, and the least processor time of its fits."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - start)
    return model, min(times)


def theirs(X, y, groups, penalty: float, repeats: int):
    """celer's model at the first tolerance that is enough, its time, radius and gap."""
    for tol in [10.0**-k for k in range(2, 8)]:
        model = celer.GroupLasso(groups=groups, alpha=penalty, tol=tol, fit_intercept=False)
        model, seconds = timed(model, X, y, repeats)
        beta = float(sum(np.linalg.norm(model.coef_[group]) for group in groups))
        gap = relative_gap(X, y, groups, model.coef_, beta)
        if gap <= TARGET:
            break
    return seconds, beta, gap


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    table = Table("seed", "penalty", "groups", "celer s", "its gap", "atomcast s", "gap", "ratio")
    ratios = []
    warnings.simplefilter("ignore")
    for seed in range(arguments.seeds):
        X, y = gene_like(seed)
        X, y = np.asfortranarray(X / np.sqrt(np.mean(X**2, axis=0))), (y - y.mean()) / y.std()
        groups = random_groups(seed, X.shape[1], 300)
        largest = max(np.linalg.norm(X[:, group].T @ y) for group in groups) / len(y)
        for share in (0.3, 0.1, 0.03, 0.01, 0.003):
            seconds, beta, gap = theirs(X, y, groups, share * largest, arguments.repeats)
            ours = GroupLasso(
                beta,
                groups=groups,
                weights=np.ones(len(groups)),
                fit_intercept=False,
                solver=Solver(tol=TARGET),
            )
            model, own = timed(ours, X, y, arguments.repeats)
            ratios.append(own / seconds)
            count, reached = str(len(model.active_groups_)), f"{model.result_.relative_gap:.1e}"
            cells = f"{seconds:.3f}", f"{gap:.1e}", f"{own:.3f}", reached, f"{ratios[-1]:.2f}"
            table.add_row(str(seed), f"{share:g}", count, *cells)
    console = Console(width=110)
    console.print(table)
    console.print(f"atomcast / celer: {spread(ratios)}")


if __name__ == "__main__":
    main()
