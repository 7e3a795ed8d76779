"""What it costs to look at every index of a sparse matrix before it is used.

    python benchmarks/sparse_checks.py [--repeats 5]

Prints the time of one check, of a product X @ w, and of a whole fit of a lasso, minimum of the
repeats, and the share of the fit, in which one check is made. Dorothea is added if it is on this
machine.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from atomcast import Lasso
from atomcast.data import load_dorothea
from atomcast.data.sparse_format import check_sparse


def problems() -> Iterator[tuple[str, Any, Any, float]]:
    """Name, X, y and beta."""
    rng = np.random.default_rng(0)
    sizes = (1_000, 20_000, 0.01), (50_000, 5_000, 0.01), (100_000, 20_000, 0.005)
    for rows, columns, density in sizes:
        X = sparse.random_array((rows, columns), density=density, format="csc", rng=rng)
        y = X[:, :20] @ rng.standard_normal(20) + 0.1 * rng.standard_normal(rows)
        yield f"{rows:,} x {columns:,}", X, y, 10.0
    try:
        data = load_dorothea()
    except FileNotFoundError:
        return
    yield "Dorothea", data.X, data.y, 16.0


def fastest(call: Callable[[], Any], repeats: int) -> float:
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    table = Table("data", "stored values", "check, ms", "X @ w, ms", "fit, ms", "check / fit")
    for name, X, y, beta in problems():
        check = fastest(lambda X=X: check_sparse(X), repeats)
        product = fastest(lambda X=X: X @ np.ones(X.shape[1]), repeats)
        fit = fastest(lambda X=X, y=y, beta=beta: Lasso(beta).fit(X, y), repeats)
        milliseconds = (f"{1e3 * seconds:.2f}" for seconds in (check, product, fit))
        table.add_row(name, f"{X.nnz:,}", *milliseconds, f"{check / fit:.2%}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
