"""Boosting with distributed stumps: accuracy, communication, and the time of a round.

The first table compares L1AdaBoost on ten simulated nodes with scikit-learn's AdaBoostClassifier
over as many stumps as the solution of L1AdaBoost has. The second measures the search for the best
stump of every feature, which is what a node does in a round, as examples and features double.

    python benchmarks/boosting.py [--only accuracy]

a9a is read from the folder that ATOMCAST_DATA names; without it, the other data sets are used.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from atomcast import L1AdaBoost, Solver
from atomcast.atoms.stump_scan import best_splits, sort_dense
from atomcast.data import load_adult

TEMPERATURE = 0.05
SPLITS = 10


def problems():
    """Yield (name, the splits to average over)."""
    digits, labels = load_digits(return_X_y=True)
    chosen = (labels == 3) | (labels == 8)
    small = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits 3 / 8": (digits[chosen], labels[chosen]),
    }
    for name, (X, y) in small.items():
        yield (
            f"{name} ({SPLITS} splits)",
            [train_test_split(X, y, random_state=s, stratify=y) for s in range(SPLITS)],
        )
    try:
        data = load_adult()
    except FileNotFoundError as error:
        print(f"without a9a: {error}", file=sys.stderr)
        return
    yield "a9a", [(data.X, data.X_test, data.y, data.y_test)]


def accuracy() -> Table:
    """Accuracy, size and communication, averaged over splits."""
    table = Table(title=f"L1AdaBoost (T = {TEMPERATURE:g}, tol = 1e-3, 10 nodes) and AdaBoost")
    heads = ["stumps", "accuracy", "AdaBoost", "rounds", "stumps sent", "values", "bytes"]
    for head in ["data", *heads, "seconds", "AdaBoost s"]:
        table.add_column(head, justify="left" if head == "data" else "right")
    for name, splits in problems():
        rows = []
        for X, X_test, y, y_test in splits:
            start = time.perf_counter()
            model = L1AdaBoost(TEMPERATURE, cluster=10, solver=Solver(tol=1e-3)).fit(X, y)
            middle = time.perf_counter()
            count = model.n_estimators_
            stump = DecisionTreeClassifier(max_depth=1)
            other = AdaBoostClassifier(stump, n_estimators=count, random_state=0).fit(X, y)
            end = time.perf_counter()
            ledger, scores = model.result_.ledger, (model.score(X_test, y_test),)
            scores += (other.score(X_test, y_test),)
            traffic = (model.n_iter_, ledger.atoms_sent, ledger.values, ledger.bytes)
            rows.append((count, *scores, *traffic, middle - start, end - middle))
        mean = np.mean(rows, axis=0)
        formats = ("{:.0f}", "{:.4f}", "{:.4f}", "{:.0f}", "{:.0f}", "{:,.0f}", "{:,.0f}")
        cells = [f.format(v) for f, v in zip((*formats, "{:.2f}", "{:.2f}"), mean, strict=True)]
        table.add_row(name, *cells)
    return table


def scaling() -> Table:
    """The time of one search for the best stumps, by size."""
    table = Table(title="One search for the best stump of every feature, dense data, one core")
    for head in ("examples", "features", "sorting, s", "a round, ms", "ns a value"):
        table.add_column(head, justify="right")
    rng = np.random.default_rng(0)
    best_splits(sort_dense(rng.standard_normal((2**13, 64))), np.ones(2**13))  # compiles
    for d, n in ((2**13, 64), (2**14, 64), (2**15, 64), (2**13, 128), (2**13, 256), (2**15, 256)):
        X, values = rng.standard_normal((d, n)), rng.standard_normal(d)
        start = time.perf_counter()
        features = sort_dense(X)
        sorting = time.perf_counter() - start
        times = []
        for _ in range(9):
            start = time.perf_counter()
            best_splits(features, values)
            times.append(time.perf_counter() - start)
        best = min(times)
        table.add_row(
            f"{d:,}", str(n), f"{sorting:.2f}", f"{1e3 * best:.2f}", f"{1e9 * best / (d * n):.2f}"
        )
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("all", "accuracy", "scaling"), default="all")
    only = parser.parse_args().only
    console = Console(width=130)
    if only in ("all", "accuracy"):
        console.print(accuracy())
    if only in ("all", "scaling"):
        console.print(scaling())


if __name__ == "__main__":
    main()
