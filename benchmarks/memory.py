"""Peak memory of a fit over the size of its data, for each estimator: dense, sparse, in a file.

    python benchmarks/memory.py                      all
    python benchmarks/memory.py --only Lasso KernelSVC --mb 400

Every fit has a process of its own, which first fits less data of the same kind, so that libraries
and compiled code are there, and has the data when the measurement begins. "peak" is how far the
resident memory rises above that level while it fits (VmHWM, reset just before), plus the data,
divided by the data: 1.00 is nothing but the data itself. Data in a mapped file counts as far as it
is in memory at the same time, and not before it is read. Of the peak, "cache" is what the
estimator's documentation says that it keeps beside the data, and "atoms" what was broadcast, of
which every node keeps a copy; "the rest" is without them.

Sparse data is in the layout that is cut: by columns where features are atoms, by rows where
examples are. In the other layout a converted copy is made, which is 1.0 more ("--turned").
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import ctypes
import gc
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

MB = 1 << 20
CACHE = 50 * MB
DENSITY = 0.02
#: Megabytes that are fitted first: enough for everything that is compiled only where it pays.
WARM_UP = 8
KINDS = ("dense", "sparse", "mapped")


class Case(NamedTuple):
    """An estimator, and the data to fit it to.

    Parameters
    ----------
    make : callable
        The estimator for n columns.
    rows_a_column : float
        The shape of the data.
    cache : callable
        The bytes that it keeps, from the number of rows, of values, and of atoms broadcast.
    by_rows : bool
        Whether examples are atoms, and not features.
    kinds : tuple of str
        What it takes.
    """

    make: Callable[[int], Any]
    rows_a_column: float
    cache: Callable[[int, int, int], float] = lambda rows, values, atoms: 0.0
    by_rows: bool = False
    kinds: tuple[str, ...] = KINDS


def orders(rows: int, values: int, atoms: int) -> float:
    """What stumps keep: the order of each feature, and where its values differ."""
    return values * (2 if rows < 1 << 15 else 4)


def kernels(itemsize: int, rows: int, values: int, atoms: int) -> float:
    """What kernel machines keep: the matrix of known points, and columns of the others."""
    matrix = itemsize * atoms**2
    return (matrix if matrix <= CACHE else 0) + min(itemsize * atoms * (rows - atoms), CACHE)


def cases() -> dict[str, Case]:
    """All estimators, by name."""
    import atomcast as ac
    from atomcast.domains import L1Ball
    from atomcast.objectives import SquaredLoss

    common = {"solver": ac.Solver(max_rounds=30, tol=1e-3), "cluster": ac.LocalCluster(4)}
    some = {"betas": [0.5, 1.0, 2.0, 4.0], "cv": 3, **common}
    short = {**common, "solver": ac.Solver(max_rounds=8, tol=1e-3)}
    # In so many rounds, the kernel matrix of what is known fits in the cache.
    kernel = {**common, "solver": ac.Solver(max_rounds=4, tol=1e-3), "cache_bytes": CACHE}
    single, double = partial(kernels, 4), partial(kernels, 8)

    def matrices(rows: int, values: int, atoms: int) -> float:
        return CACHE

    def groups(n):
        return np.arange(n).reshape(-1, 5).tolist()

    def views(n):
        return [list(range(start, min(start + 500, n))) for start in range(0, n, 500)]

    return {
        "Lasso": Case(lambda n: ac.Lasso(5.0, **common), 0.2),
        "LassoCV": Case(lambda n: ac.LassoCV(**some), 0.2),
        "SparseModel": Case(lambda n: ac.SparseModel(SquaredLoss(), L1Ball(5.0), **common), 0.2),
        "GroupLasso": Case(lambda n: ac.GroupLasso(5.0, groups=groups(n), **common), 0.2),
        "GroupLogisticRegression": Case(
            lambda n: ac.GroupLogisticRegression(5.0, groups=groups(n), **common), 0.2
        ),
        "SparseLogisticRegression": Case(lambda n: ac.SparseLogisticRegression(5.0, **common), 0.2),
        "SparseLogisticRegressionCV": Case(lambda n: ac.SparseLogisticRegressionCV(**some), 0.2),
        "MatchingPursuit": Case(lambda n: ac.MatchingPursuit(n_nonzero=20, cluster=4), 0.2),
        "L1AdaBoost": Case(lambda n: ac.L1AdaBoost(**short), 20.0, orders),
        "L1BoostRegressor": Case(lambda n: ac.L1BoostRegressor(5.0, **short), 200.0, orders),
        "StructuredSVM": Case(lambda n: ac.StructuredSVM(**common), 20.0, by_rows=True),
        "KernelSVC": Case(lambda n: ac.KernelSVC(**kernel), 20.0, single, by_rows=True),
        # Few rows, each of them long: most of them are broadcast.
        "KernelSVC, long rows": Case(lambda n: ac.KernelSVC(**kernel), 0.04, single, by_rows=True),
        "KernelSVR": Case(lambda n: ac.KernelSVR(**kernel), 20.0, double, by_rows=True),
        "MultipleKernelClassifier": Case(
            lambda n: ac.MultipleKernelClassifier(beta=1.0, views=views(n), **kernel),
            0.02,
            matrices,
        ),
        "MultipleKernelRegressor": Case(
            lambda n: ac.MultipleKernelRegressor(beta=1.0, views=views(n), **kernel), 0.02, matrices
        ),
        # Signals are dense, whatever they come as.
        "SparseCoder": Case(
            lambda n: ac.SparseCoder(n_nonzero=3, cluster=4), 400.0, kinds=("dense", "mapped")
        ),
        "DictionaryLearning": Case(
            lambda n: ac.DictionaryLearning(50, n_nonzero=3, max_iter=3, cluster=4),
            400.0,
            kinds=("dense", "mapped"),
        ),
    }


def shape_of(case: Case, kind: str, megabytes: int) -> tuple[int, int]:
    """How many rows and columns have so many megabytes."""
    size = megabytes * MB / (8 if kind != "sparse" else 12 * DENSITY)
    n = int(np.sqrt(size / case.rows_a_column)) // 5 * 5
    return int(size / n), n


def write(case: Case, kind: str, megabytes: int, turned: bool, folder: Path) -> None:
    """Write a matrix of so many megabytes, and a target."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    d, n = shape_of(case, kind, megabytes)
    if kind == "sparse":
        X = sparse.random_array(
            (d, n), density=DENSITY, rng=rng, format="csr" if case.by_rows != turned else "csc"
        )
        for name, part in (("data", X.data), ("indices", X.indices), ("indptr", X.indptr)):
            np.save(folder / f"{name}.npy", part if name == "data" else part.astype(np.int32))
        (folder / X.format).touch()
    else:
        X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float64, (d, n))
        for start in range(0, d, 1000):
            X[start : start + 1000] = rng.standard_normal(X[start : start + 1000].shape)
    y = X[:, :5] @ np.ones(5) + 0.1 * rng.standard_normal(d)
    np.save(folder / "y.npy", y)
    np.save(folder / "shape.npy", X.shape)


def read(kind: str, folder: Path) -> Any:
    """The matrix, by the shortest way, which leaves nothing behind."""
    if kind != "sparse":
        return np.load(folder / "X.npy", mmap_mode="r" if kind == "mapped" else None)
    make = sparse.csr_array if (folder / "csr").exists() else sparse.csc_array
    X = make(tuple(np.load(folder / "shape.npy")), dtype=np.float64)
    X.data, X.indices, X.indptr = (
        np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr")
    )
    return X


def status(name: str) -> int:
    """A figure of this process in bytes."""
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def work(name: str, model: Any, X: Any, y: Any) -> Any:
    """Fit, and code signals where that is what a model is for; returns the result."""
    if name == "SparseCoder":
        model.dictionary = X[: X.shape[1]] + 0.0
        return model.fit(X[:10]).encode(X).result
    return model.fit(X, y).result_


def data(kind: str, folder: Path, classes: bool) -> tuple[Any, Any]:
    """What was written, as it is fitted."""
    y = np.load(folder / "y.npy")
    return read(kind, folder), (y > np.median(y)).astype(int) if classes else y


def fit(name: str, kind: str, folder: Path) -> None:
    """In a process of its own: print bytes of the data, of the peak, of atoms, and of caches."""
    warnings.simplefilter("ignore")
    numba.njit(lambda x: x)(1.0)  # the compiler itself
    case = cases()[name]
    classes = is_classifier(case.make(5))
    X, y = data(kind, folder / "warm-up", classes)
    work(name, case.make(X.shape[1]), X, y)
    X, y = data(kind, folder, classes)
    total = X.data.nbytes
    if kind == "sparse":
        total += X.indices.nbytes + X.indptr.nbytes
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = status("VmRSS")
    result = work(name, case.make(X.shape[1]), X, y)
    peak = status("VmHWM") - before + (0 if kind == "mapped" else total)
    sent = [told.values for told in result.ledger.disclosures if told.kind == "atom"]
    values = X.nnz if kind == "sparse" else X.size
    print(total, peak, 8 * sum(sent), case.cache(X.shape[0], values, len(sent)))


def main() -> None:
    """Print a row for each estimator and kind of data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(cases()))
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--mb", type=int, default=150, help="size of the data")
    parser.add_argument("--turned", action="store_true", help="sparse data in the other layout")
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        name, kind, folder = arguments.fit
        return fit(name, kind, Path(folder))
    heads = f"{'peak / data':>13}{'cache':>7}{'atoms':>7}{'the rest':>10}"
    print(f"{'estimator':28}{'data':8}{'MB':>5}{heads}")
    for name in arguments.only:
        case = cases()[name]
        for kind in (kind for kind in case.kinds if kind in arguments.kinds):
            with tempfile.TemporaryDirectory() as folder:
                for part, megabytes in ((".", arguments.mb), ("warm-up", WARM_UP)):
                    write(case, kind, megabytes, arguments.turned, Path(folder, part))
                command = [sys.executable, __file__, "--fit", name, kind, folder]
                said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            total, peak, atoms, cache = map(float, said.split())
            print(
                f"{name:28}{kind:8}{total / MB:5.0f}{peak / total:13.2f}{cache / total:7.2f}"
                f"{atoms / total:7.2f}{(peak - cache - atoms) / total:10.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
