"""Dense solutions: values sent by atoms, mixtures, a coordinator, ADMM and ProxCoCoA.

    python benchmarks/dense.py [--d 1000 --n 10000] [--densities 0.1 0.1] [--steps corrective auto]
                               [--picture docs/images/compound-atoms.png]

The synthetic problem of section 6.2 of the paper on a star of 100 nodes, lambda = 0.1 lambda_max.
Prints the values sent for 95, 99 and 99.9 % of the way from zero weights to the optimum, and for a
certified relative gap of 1e-4. The full size is --d 10000 --n 100000. Among the steps, "kept" is
compound with weights that stay with their owners.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from atomcast import LocalCluster, Shards, Solver
from atomcast.baselines.admm import Admm, Features, lasso
from atomcast.baselines.cocoa import ProxCocoa
from atomcast.data.generators import make_sparse_regression
from atomcast.domains.balls import L1Ball
from atomcast.objectives import SquaredError
from atomcast.plots.drawing import COLORS, new_figure
from atomcast.problems.features import explicit_problem

NODES, TOL = 100, 1e-4
STEPS, BASELINES = ("corrective", "compound", "auto"), ("ADMM", "ProxCoCoA")


def run(method: str, y, shards, features, lam: float, beta: float, rounds: int):
    """A run of a step or of a baseline; its trace."""
    if method in (*STEPS, "kept"):
        problem = explicit_problem(SquaredError(y), L1Ball(beta))
        how = {"step": "compound", "reveal": "never"} if method == "kept" else {"step": method}
        return Solver(tol=TOL, **how).solve(problem, shards, LocalCluster(NODES)).trace
    how = {"beta": beta, "max_rounds": rounds, "local_tol": 1e-4}
    admm = Admm(lam, 10.0, 1.5, **how) if method == "ADMM" else ProxCocoa(lam, **how)
    return admm.solve(y, features).trace


def first(trace, reached) -> str:
    """The values sent where something is first reached."""
    places = np.flatnonzero(reached)
    return f"{trace.values[places[0]] / 1e6:.2f} M" if len(places) else "-"


def draw(path: str, traces, optimum: float) -> None:
    """How far from the optimum, and the certified gap, against values sent."""
    figure = new_figure(10, 4.2)
    axes = figure.subplots(1, 2)
    for (method, trace), color in zip(traces.items(), COLORS, strict=False):
        distance = np.maximum(np.array(trace.objective) / optimum - 1, 1e-10)
        for ax, heights in zip(axes, (distance, trace.gap / trace.objective), strict=True):
            look = {"color": color, "marker": "o", "markersize": 3}
            ax.loglog(trace.values[1:], heights[1:], label=method, **look)
    for ax, title in zip(axes, ("objective / optimum - 1", "relative gap, certified"), strict=True):
        ax.set(xlabel="values sent", title=title)
        ax.grid(visible=True, alpha=0.3)
    axes[0].set_ylim(bottom=1e-9)
    axes[1].set_ylim(bottom=1e-6)
    names = axes[0].get_legend_handles_labels()
    figure.legend(*names, frameon=False, loc="outside upper center", ncols=len(traces))
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run all methods on one problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, default=1000)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--densities", type=float, nargs=2, default=(0.1, 0.1))
    parser.add_argument("--steps", nargs="*", default=(*STEPS, *BASELINES))
    parser.add_argument("--rounds", type=int, default=150, help="of ADMM and ProxCoCoA")
    parser.add_argument("--picture")
    options = parser.parse_args()
    made = make_sparse_regression(options.d, options.n, *options.densities)
    X, y = made.X, made.y
    shards = Shards.split(X, NODES, random_state=0)
    features, lam = Features.of(shards), 0.1 * float(np.abs(X.T @ y).max())
    x = lasso(y, features, lam, tol=1e-7)
    beta, optimum, start = float(np.abs(x).sum()), float(np.sum((y - X @ x) ** 2)), float(y @ y)
    table = Table("method", "95 %", "99 %", "99.9 %", "certified 1e-4", "rounds", "CPU seconds")
    traces = {}
    for method in options.steps:
        begun = process_time()
        trace = run(method, y, shards, features, lam, beta, options.rounds)
        spent, objective = process_time() - begun, np.array(trace.objective)
        ways = [objective <= optimum + (1 - w) * (start - optimum) for w in (0.95, 0.99, 0.999)]
        cells = [first(trace, reached) for reached in (*ways, trace.gap <= TOL * objective)]
        table.add_row(method, *cells, f"{trace.round[-1]}", f"{spent:.1f}")
        traces[method] = trace
    console = Console(width=120)
    console.print(f"d = {options.d:,}, n = {options.n:,}, {np.count_nonzero(x)} of them used")
    console.print(table)
    if options.picture:
        draw(options.picture, traces, optimum)


if __name__ == "__main__":
    main()
