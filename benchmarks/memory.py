"""Peak memory of a fit over the size of its data, for each estimator: dense, sparse, in a file.

    python benchmarks/memory.py                      all
    python benchmarks/memory.py --only Lasso KernelSVC --mb 400 --kinds dense mapped

Every fit has a process of its own, which first fits less data of the same kind, so that libraries
and compiled code are there, and has the data when the measurement begins. "peak" is how far the
resident memory rises above that level while it fits (VmHWM, reset just before), plus the data,
divided by the data: 1.00 is nothing but the data itself, and what the interpreter and libraries
take is not in it. Data in a mapped file counts as far as it is in memory at the same time, and not
before it is read. What `SparseCoder` has as its data are the signals; its dictionary is 100 of
them.

Of the peak, "stated" is what the documentation says that an estimator takes beside the data:

cache   orders of features (stumps), kernel values, of which there are at most twice `cache_bytes`,
        kernel matrices of views; where sparse data is "turned", the copy that is made of it
atoms   what was broadcast, of which every node keeps a copy, as it keeps it
model   what the fit returns, by the size of its pickle: support vectors, codes

"the rest" is without the cache, and without the larger of atoms and model, for a model is made of
atoms: that one should be at most 1.3. Sparse data is by columns where
features are atoms, by rows where examples are; "turned" is the other way round, of which a
converted copy is made.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import ctypes
import gc
import pickle
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
from rows import Figure, tell
from scipy import sparse
from sklearn.base import is_classifier

MB = 1 << 20
CACHE = 50 * MB
DENSITY = 0.02
#: Megabytes that are fitted first: enough for everything that is compiled only where it pays.
WARM_UP = 8
KINDS = ("dense", "sparse", "turned", "mapped")
#: What takes minutes on sparse data, or hours, and so is measured only where it is named.
LONG = ("SparseCoder, balls", "DictionaryLearning", "MultipleKernelClassifier")
LONG += ("MultipleKernelRegressor",)


class Case(NamedTuple):
    """An estimator, and the data to fit it to.

    Parameters
    ----------
    make : callable
        The estimator for n columns.
    rows_a_column : float
        The shape of the data.
    cache : callable
        The bytes that it keeps, from the number of rows, of values, and of known atoms.
    by_rows : bool
        Whether examples are atoms, and not features.
    atom_bytes : int
        What a value of an atom takes, of dense data; sparse ones take 12, but for stumps.
    """

    make: Callable[[int], Any]
    rows_a_column: float
    cache: Callable[[int, int, int], float] = lambda rows, values, atoms: 0.0
    by_rows: bool = False
    atom_bytes: int = 8


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
        width = max(500, n // 20)  # sparse data has many columns, and each view takes its time
        return [list(range(start, min(start + width, n))) for start in range(0, n, width)]

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
        "L1AdaBoost": Case(lambda n: ac.L1AdaBoost(**short), 20.0, orders, atom_bytes=1),
        "L1BoostRegressor": Case(
            lambda n: ac.L1BoostRegressor(5.0, **short), 200.0, orders, atom_bytes=1
        ),
        "StructuredSVM": Case(lambda n: ac.StructuredSVM(**common), 20.0, by_rows=True),
        "KernelSVC": Case(lambda n: ac.KernelSVC(**kernel), 20.0, single, by_rows=True),
        # Few rows, each of them long: most of them are broadcast.
        "KernelSVC, long rows": Case(lambda n: ac.KernelSVC(**kernel), 0.04, single, by_rows=True),
        "KernelSVR": Case(lambda n: ac.KernelSVR(**kernel), 20.0, double, by_rows=True),
        # Few rows, for a kernel matrix takes their square.
        "MultipleKernelClassifier": Case(
            lambda n: ac.MultipleKernelClassifier(beta=1.0, views=views(n), **kernel),
            0.02,
            matrices,
        ),
        "MultipleKernelRegressor": Case(
            lambda n: ac.MultipleKernelRegressor(beta=1.0, views=views(n), **kernel),
            0.02,
            matrices,
        ),
        "SparseCoder": Case(lambda n: ac.SparseCoder(n_nonzero=3, cluster=4), 400.0, by_rows=True),
        "SparseCoder, balls": Case(
            lambda n: ac.SparseCoder(beta=2.0, cluster=4), 400.0, by_rows=True
        ),
        "DictionaryLearning": Case(
            lambda n: ac.DictionaryLearning(50, n_nonzero=3, max_iter=3, cluster=4),
            400.0,
            by_rows=True,
        ),
    }


def is_sparse(kind: str) -> bool:
    """Whether data of this kind is sparse."""
    return kind in ("sparse", "turned")


def shape_of(case: Case, kind: str, megabytes: int) -> tuple[int, int]:
    """How many rows and columns have so many megabytes."""
    size = megabytes * MB / (12 * DENSITY if is_sparse(kind) else 8)
    n = int(np.sqrt(size / case.rows_a_column)) // 5 * 5
    return int(size / n), n


def write(case: Case, kind: str, megabytes: int, folder: Path) -> None:
    """Write a matrix of so many megabytes, and a target."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    d, n = shape_of(case, kind, megabytes)
    if is_sparse(kind):
        form = "csr" if case.by_rows != (kind == "turned") else "csc"
        X = sparse.random_array((d, n), density=DENSITY, rng=rng, format=form)
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
    if not is_sparse(kind):
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


def work(name: str, model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Fit, or code signals where that is what a model is for; what it returns, and the result."""
    if name.startswith("SparseCoder"):
        atoms = X[:100]
        model.dictionary = atoms.toarray() if sparse.issparse(atoms) else atoms + 0.0
        encoded = model.encode(X)
        return encoded, encoded.result
    model.fit(X, y)
    return model, model.result_


def data(kind: str, folder: Path, classes: bool) -> tuple[Any, Any]:
    """What was written, as it is fitted."""
    y = np.load(folder / "y.npy")
    return read(kind, folder), (y > np.median(y)).astype(int) if classes else y


def fit(name: str, kind: str, folder: Path) -> None:
    """In a process of its own: print bytes of data, peak, caches, atoms and model."""
    warnings.simplefilter("ignore")
    numba.njit(lambda x: x)(1.0)  # the compiler itself
    case = cases()[name]
    classes = is_classifier(case.make(5))
    X, y = data(kind, folder / "warm-up", classes)
    work(name, case.make(X.shape[1]), X, y)
    X, y = data(kind, folder, classes)
    total = X.data.nbytes
    if is_sparse(kind):
        total += X.indices.nbytes + X.indptr.nbytes
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = status("VmRSS")
    returned, result = work(name, case.make(X.shape[1]), X, y)
    peak = status("VmHWM") - before + (0 if kind == "mapped" else total)
    sent = [told for told in result.ledger.disclosures if told.kind == "atom"]
    known = np.cumsum(np.bincount([told.round for told in sent] or [0]))
    values = X.nnz if is_sparse(kind) else X.size
    # A matrix that does not fit any more is let go: what counts is the round that has most.
    cache = max(case.cache(X.shape[0], values, int(count)) for count in known)
    value_bytes = 12 if is_sparse(kind) and case.atom_bytes > 1 else case.atom_bytes
    atoms = value_bytes * sum(told.values for told in sent)
    print(total, peak, cache + (total if kind == "turned" else 0), atoms, pickled(returned))


def pickled(model: Any) -> int:
    """How large what a fit returns is: its pickle, and every piece of memory that it holds once."""
    buffers: list[pickle.PickleBuffer] = []
    size = len(pickle.dumps(model, protocol=5, buffer_callback=buffers.append))
    pieces = (np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers if buffer.raw().nbytes)
    held = {piece.ctypes.data: piece.nbytes for piece in pieces}
    return size + sum(held.values())


def main() -> None:
    """Print a row for each estimator and kind of data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--mb", type=int, default=150, help="size of the data")
    parser.add_argument("--json", action="store_true", help="figures as JSON, too")
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        name, kind, folder = arguments.fit
        return fit(name, kind, Path(folder))
    heads = f"{'peak / data':>13}{'cache':>7}{'atoms':>7}{'model':>7}{'the rest':>10}"
    print(f"{'estimator':28}{'data':8}{'MB':>5}{heads}")
    for name in arguments.only or cases():
        case = cases()[name]
        for kind in arguments.kinds:
            if name in LONG and is_sparse(kind) and not arguments.only:
                continue
            with tempfile.TemporaryDirectory() as folder:
                for part, megabytes in ((".", arguments.mb), ("warm-up", WARM_UP)):
                    write(case, kind, megabytes, Path(folder, part))
                command = [sys.executable, __file__, "--fit", name, kind, folder]
                said = subprocess.run(command, stdout=subprocess.PIPE, check=False)
            if said.returncode:  # the others are of use all the same
                print(f"{name:28}{kind:8} failed", flush=True)
                continue
            total, peak, cache, atoms, model = map(float, said.stdout.split())
            rest = (peak - cache - max(atoms, model)) / total
            print(
                f"{name:28}{kind:8}{total / MB:5.0f}{peak / total:13.2f}{cache / total:7.2f}"
                f"{atoms / total:7.2f}{model / total:7.2f}"
                f"{rest:10.2f}",
                flush=True,
            )
            if arguments.json:
                beside = f"with caches, atoms and model {peak / total:.2f}"
                what = f"peak memory, {name}, {kind}, {total / MB:.0f} MB"
                tell(Figure(what, rest, "x data", beside, at_most=1.3))


if __name__ == "__main__":
    main()
