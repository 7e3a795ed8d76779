"""Atoms sent in vain: one at a time, the usual batches, and batches that are thinned out.

    python benchmarks/in_vain.py [--nodes 100] [--seeds 3] [--only dense] [--slow]

For each kind of data, the best and the worst over seeds and radii of three ratios: atoms sent to
atoms in the solution, atoms sent to what one at a time sends, and rounds to what one at a time
takes. Values are those of the whole run, candidates included, beside one at a time. Everything is
counted, nothing is timed. Dorothea is read from the folder that ATOMCAST_DATA names. `--slow` asks
instead how long runs take in simulated time where messages are slow, with batches of fixed sizes
and with those that follow from the network.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from kinds import gene_like, text_like
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import Lasso as PenalisedLasso

from atomcast import (
    KernelSVC,
    L1AdaBoost,
    Lasso,
    LocalCluster,
    Solver,
    SparseLogisticRegression,
)
from atomcast.data import load_dorothea

#: Solvers by name, the first of which the others are compared with.
RULES: dict[str, dict[str, Any]] = {
    "one at a time": {"atoms_per_round": 1},
    "usual": {},
    "thin": {"thin": True},
}
#: The rule's constants were chosen with other seeds than those from here on.
FIRST_SEED = 200
Case = tuple[str, partial[Any], Any, Any]


def dense(seed: int, d: int = 200, n: int = 10_000):
    """Independent dense columns, few rows, forty columns that matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    return X, X[:, :40] @ rng.standard_normal(40) + rng.standard_normal(d)


def radius(X, y, share: float) -> float:
    """The l1 norm of the solution whose penalty is this share of the largest."""
    largest = np.abs(X.T @ (y - y.mean())).max() / len(y)
    return float(np.abs(PenalisedLasso(share * largest, max_iter=20_000).fit(X, y).coef_).sum())


def cases(seeds: int) -> Iterator[Case]:
    """Yield (kind, what makes the model, X, y), the same kind many times."""
    try:
        data = load_dorothea()
        for beta in (8.0, 16.0, 24.0):
            yield f"Dorothea, {beta:g}", partial(Lasso, beta, fit_intercept=False), data.X, data.y
        for beta in (8.0, 20.0):
            model = partial(SparseLogisticRegression, beta)
            yield "Dorothea, logistic", model, data.X, data.y
    except FileNotFoundError as error:
        print(f"without Dorothea: {error}", file=sys.stderr)
    few_rows = {
        "dense, 71 x 4,000": lambda seed: gene_like(seed, 71, 4_000),
        "dense, 72 x 7,000": lambda seed: gene_like(seed, 72, 7_000),
        "dense, 200 x 10,000": dense,
    }
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for kind, make in few_rows.items():
            X, y = make(seed)
            for share in (0.2, 0.05, 0.01):
                yield kind, partial(Lasso, radius(X, y, share)), X, y
        X, y = text_like(seed)
        yield "text-like", partial(Lasso, 20.0), X, y
        X, y = gene_like(seed)
        for beta in (1.0, 3.0):
            yield "genes, logistic", partial(SparseLogisticRegression, beta), X, y > 0.0
    X, y = load_digits(return_X_y=True)
    few = y < 3
    for C, gamma in ((10.0, 0.5), (1.0, 0.05), (100.0, 0.05)):
        yield "digits, 3 classes", partial(KernelSVC, C, gamma=gamma), X[few] / 16, y[few]
    yield "boosting", partial(L1AdaBoost, temperature=0.05), *load_breast_cancer(return_X_y=True)


def counts(model: partial[Any], X, y, cluster, **how: Any) -> np.ndarray:
    """Atoms sent, atoms in the solution, rounds, and values."""
    tol = 1e-3 if model.func in (KernelSVC, L1AdaBoost) else 1e-4
    fitted = model(cluster=cluster, solver=Solver(tol=tol, **how)).fit(X, y)
    result, ledger = fitted.result_, fitted.result_.ledger
    assert result.status == "optimal", result.status
    used = len(getattr(fitted, "support_", result.atom_ids))  # classes may share a support vector
    return np.array([ledger.atoms_sent, used, result.rounds, ledger.values])


def compare(console: Console, nodes: int, seeds: int, only: str) -> None:
    """A row for each kind of data and rule."""
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for kind, model, X, y in cases(seeds):
        if only not in kind:
            continue
        for rule, how in RULES.items():
            found.setdefault((kind, rule), []).append(counts(model, X, y, nodes, **how))
    table = Table("data", "rule", "sent", "rounds", "sent / used", "sent / one's")
    table.add_column("rounds / one's")
    table.add_column("values / one's")
    for (kind, rule), rows in found.items():
        own, one = np.array(rows, dtype=float), np.array(found[kind, "one at a time"], dtype=float)
        ratios = own[:, 0] / own[:, 1], *(own[:, k] / one[:, k] for k in (0, 2, 3))
        ranges = [f"{min(r):.2f} to {max(r):.2f}" for r in ratios]
        totals = [f"{own[:, k].sum():,.0f}" for k in (0, 2)]
        table.add_row(kind if rule == "one at a time" else "", rule, *totals, *ranges)
    console.print(
        f"{nodes} nodes on a star, best and worst; sent and rounds are sums over the runs"
    )
    console.print(table)


def compare_latencies(console: Console, nodes: int, only: str) -> None:
    """Simulated seconds, at 100 kB a second over each edge."""
    sizes: list[int | str] = [1, 5, 20, 100, "auto"]
    table = Table("data", "latency", *map(str, sizes), "auto, thin")
    seen = set()
    for kind, model, X, y in cases(1):
        if kind in seen or only not in kind or "classes" in kind or "boosting" in kind:
            continue
        seen.add(kind)
        for latency in (1e-4, 1e-2, 1.0):
            rules = [{"atoms_per_round": size} for size in sizes] + [{"thin": True}]
            seconds = []
            for how in rules:
                cluster = LocalCluster(nodes, latency=latency, bandwidth=1e5)
                solver = Solver(**how)
                result = model(cluster=cluster, solver=solver).fit(X, y).result_
                seconds.append(f"{result.ledger.seconds:.2f}")
            table.add_row(kind, f"{latency:g}", *seconds)
    console.print(f"simulated seconds, star of {nodes} nodes, 100 kB a second over each edge")
    console.print(table)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--slow", action="store_true")
    arguments = parser.parse_args()
    console = Console(width=120)
    if arguments.slow:
        compare_latencies(console, arguments.nodes, arguments.only)
    else:
        compare(console, arguments.nodes, arguments.seeds, arguments.only)


if __name__ == "__main__":
    main()
