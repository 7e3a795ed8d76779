"""Sparse codes of many signals: time beside scikit-learn's `sparse_encode`, and values sent.

Signals are noisy combinations of eight of 1,000 unit atoms of length 64. For codes within balls,
scikit-learn solves the penalised problem, and every signal gets the ball that its solution lies on,
so that both must find the same codes; their largest difference is shown. scikit-learn codes the
first --theirs signals, and its time is scaled up to all of them; signals beyond these get the same
balls in turn. Times are of the processor, on one
core, in turns, the minimum of the repeats; atomcast simulates ten nodes.

    python benchmarks/sparse_coding.py time [--signals 10000] [--theirs 500] [--repeats 3]
    python benchmarks/sparse_coding.py values [--plot values.png]

The second shows how many values are sent for a signal, with batches of any size; of small ones, the
mean over 30 signals.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everybody

import argparse
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.decomposition import sparse_encode

from atomcast import SparseCoder

ATOMS, LENGTH, USED, NODES = 1000, 64, 8, 10
PENALTY = 0.1


def problem(signals: int) -> tuple[np.ndarray, np.ndarray]:
    """A dictionary, and signals that are combinations of a few of its atoms."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((ATOMS, LENGTH))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = 0.05 * rng.standard_normal((signals, LENGTH))
    for x in X:
        x += rng.standard_normal(USED) @ D[rng.choice(ATOMS, USED, replace=False)]
    return D, X


def timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Seconds of the processor, and what came out."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def times(signals: int, theirs: int, repeats: int) -> Table:
    """A row for each kind of codes."""
    D, X = problem(signals)
    part = X[:theirs]
    ball = np.abs(sparse_encode(part, D, algorithm="lasso_lars", alpha=PENALTY)).sum(axis=1)
    radii = np.resize(ball, signals)  # those of signals beyond are of the same size
    table = Table("codes", "atoms a signal", "atomcast s", "scikit-learn s", "ratio", "difference")
    for name, how, coder in (
        ("lasso_lars", {"alpha": PENALTY}, SparseCoder(D, beta=radii, cluster=NODES)),
        ("lasso_cd", {"alpha": PENALTY}, SparseCoder(D, beta=radii, cluster=NODES)),
        ("omp", {"n_nonzero_coefs": USED}, SparseCoder(D, n_nonzero=USED, cluster=NODES)),
    ):
        coder.set_params(beta=None if name == "omp" else ball).transform(part)  # compiles
        coder.set_params(beta=None if name == "omp" else radii)
        ours, others = [], []
        for _ in range(repeats):
            seconds, codes = timed(lambda coder=coder: coder.transform(X))
            ours.append(seconds)
            seconds, expected = timed(
                lambda name=name, how=how: sparse_encode(part, D, algorithm=name, **how)
            )
            others.append(seconds * signals / theirs)
        difference = np.abs(codes[:theirs].toarray() - expected).max()
        table.add_row(
            name,
            f"{codes.nnz / signals:.1f}",
            f"{min(ours):.2f}",
            f"{min(others):.1f}",
            f"{min(others) / min(ours):.1f}",
            f"{difference:.1e}",
        )
    return table


def values(plot: str | None) -> Table:
    """A row for each size of a batch."""
    sizes = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000]
    D, X = problem(sizes[-1])
    table = Table("signals", "within balls", "atoms sent", "pursuits", "atoms sent")
    curves: dict[str, list[float]] = {"within balls": [], "pursuits": []}
    for size in sizes:
        row = [f"{size:,}"]
        for name, how in (("within balls", {"beta": 4.0}), ("pursuits", {"n_nonzero": USED})):
            coder, starts = SparseCoder(D, cluster=NODES, **how), range(0, max(size, 30), size)
            ledgers = [coder.encode(X[k : k + size]).result.ledger for k in starts]
            curves[name].append(sum(one.values for one in ledgers) / len(ledgers) / size)
            sent = sum(one.atoms_sent for one in ledgers) / len(ledgers)
            row += [f"{curves[name][-1]:,.0f}", f"{sent:,.0f}"]
        table.add_row(*row)
    if plot:
        draw(sizes, curves, plot)
    return table


def draw(sizes: list[int], curves: dict[str, list[float]], path: str) -> None:
    """Values for a signal against the size of the batch."""
    from atomcast.plots.drawing import COLORS, new_figure

    figure = new_figure(5.0, 3.6)
    ax = figure.subplots()
    for (name, curve), color in zip(curves.items(), COLORS, strict=False):
        ax.loglog(sizes, curve, color=color, marker="o", markersize=4, label=name)
    ax.set_xlabel("signals in a batch")
    ax.set_ylabel("values sent for a signal")
    figure.legend(frameon=False, loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("time", "values"))
    parser.add_argument("--signals", type=int, default=10_000)
    parser.add_argument("--theirs", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plot")
    given = parser.parse_args()
    if given.what == "time":
        table = times(given.signals, given.theirs, given.repeats)
    else:
        table = values(given.plot)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
