"""Dorothea, beta = 16, 100 nodes: what each step sends, and what simulating nodes costs.

    python benchmarks/dorothea.py [--rounds 5000] [--picture docs/images/dorothea.png]

Prints rounds, atoms and values sent by every step until a relative gap of 1e-4 (or the limit of
rounds), and the time of N = 1, 100 and 1,000 simulated nodes, interleaved, minimum of the repeats.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import time
import warnings

from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from atomcast import Lasso, LocalCluster, Solver
from atomcast.data import load_dorothea
from atomcast.steps import STEPS

BETA, NODES = 16.0, 100


#: Every step as atomcast runs it, and the paper's own protocol, which sends a winner every time.
USUAL = [step for step in STEPS if step != "block-coordinate"]  # that one is for examples
PAPER = "classic, as in the paper"
VARIANTS = {PAPER: ("classic", True)} | {step: (step, False) for step in USUAL}
#: What is drawn: no more lines than can be told apart; the table has the others.
DRAWN = (PAPER, "line-search", "pairwise", "blended-pairwise", "corrective", "auto")


def lasso(nodes: int, step: str, max_rounds: int, resend: bool = False) -> Lasso:
    """The model of this benchmark."""
    solver = Solver(step=step, max_rounds=max_rounds)
    cluster = LocalCluster(nodes, resend=resend)
    return Lasso(BETA, fit_intercept=False, cluster=cluster, solver=solver)


def compare_steps(console: Console, X, y, rounds: int, picture: str | None) -> None:
    """A row for each step."""
    table = Table(
        "step",
        "rounds",
        "objective",
        "relative gap",
        "atoms sent",
        "values sent",
        "bytes sent",
        "seconds",
    )
    traces = {}
    for label, (step, resend) in VARIANTS.items():
        start = time.perf_counter()
        result = lasso(NODES, step, rounds, resend).fit(X, y).result_
        seconds = time.perf_counter() - start
        traces[label] = result.trace
        table.add_row(
            label,
            f"{result.rounds:,}",
            f"{result.objective:.4f}",
            f"{result.relative_gap:.1e}",
            f"{result.ledger.atoms_sent:,}",
            f"{result.ledger.values:,}",
            f"{result.ledger.bytes:,}",
            f"{seconds:.2f}",
        )
    console.print(f"Dorothea, beta = {BETA:g}, star of {NODES} nodes, at most {rounds:,} rounds")
    console.print(table)
    if picture:
        from atomcast.plots.drawing import plot_convergence

        title = r"Dorothea, 1,150 x 100,000, $\beta$ = 16, 100 nodes"
        plot_convergence({name: traces[name] for name in DRAWN}, picture, tol=1e-4, title=title)


def compare_nodes(console: Console, X, y, repeats: int) -> None:
    """A row for each number of nodes."""
    best: dict[int, float] = {}
    for _ in range(repeats):
        for nodes in (1, 100, 1000):
            start = time.perf_counter()
            lasso(nodes, "corrective", 1000).fit(X, y)
            best[nodes] = min(best.get(nodes, 1e9), time.perf_counter() - start)
    table = Table("nodes", "seconds", "ratio to one node")
    for nodes, seconds in best.items():
        table.add_row(f"{nodes:,}", f"{seconds:.3f}", f"{seconds / best[1]:.2f}")
    console.print(f"simulating nodes: corrective step, minimum of {repeats} fits")
    console.print(table)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--picture")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    console = Console(width=120)
    data = load_dorothea()
    compare_nodes(console, data.X, data.y, arguments.repeats)
    compare_steps(console, data.X, data.y, arguments.rounds, arguments.picture)


if __name__ == "__main__":
    main()
