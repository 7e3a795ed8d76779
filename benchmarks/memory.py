"""Peak memory of a fit over the size of its data, for each estimator: dense, sparse, in a file.

    python benchmarks/memory.py                      all
    python benchmarks/memory.py --only Lasso KernelSVC --mb 400

Every fit has a process of its own, which first fits a few rows, so that libraries and compiled code
are there, then reads the data. "peak" is how far memory rises above that point (VmHWM), divided by
the bytes of the data: 1.00 is nothing but the data itself. "cache" is what a parameter of the
estimator lets it keep beside, and "atoms" what was broadcast, of which every node keeps a copy;
both are part of the peak, and "the rest" is without them. Data in a mapped file counts as far as it
is in memory at the same time. Stumps keep each feature in order, 5 bytes a value.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

MB = 1 << 20
CACHE = 50 * MB
DENSITY = 0.02


def models():
    """By name: what makes the estimator for n columns, rows for each column, and its cache."""
    import atomcast as ac

    common = {"solver": ac.Solver(max_rounds=30, tol=1e-3), "cluster": ac.LocalCluster(4)}

    def grouped(n):
        return ac.GroupLasso(5.0, groups=np.arange(n).reshape(-1, 5).tolist(), **common)

    return {
        "Lasso": (lambda n: ac.Lasso(5.0, **common), 0.2, 0),
        "LassoCV": (lambda n: ac.LassoCV(cv=3, n_betas=5, **common), 0.2, 0),
        "GroupLasso": (grouped, 0.2, 0),
        "SparseLogisticRegression": (lambda n: ac.SparseLogisticRegression(5.0, **common), 0.2, 0),
        "MatchingPursuit": (lambda n: ac.MatchingPursuit(n_nonzero=20, cluster=4), 0.2, 0),
        "L1AdaBoost": (lambda n: ac.L1AdaBoost(**common), 20.0, 0),
        # Few rows, each of them long, so that their kernel matrix fits in the cache.
        "KernelSVC": (lambda n: ac.KernelSVC(cache_bytes=CACHE, **common), 0.04, 2 * CACHE),
        "StructuredSVM": (lambda n: ac.StructuredSVM(**common), 20.0, 0),
    }


def data(kind, megabytes, rows_a_column, folder):
    """Write a matrix of so many megabytes; returns its bytes."""
    rng = np.random.default_rng(0)
    size = megabytes * MB / (8 if kind != "sparse" else 12 * DENSITY)
    n = int(np.sqrt(size / rows_a_column)) // 5 * 5
    d = int(size / n)
    if kind == "sparse":
        X = sparse.random_array((d, n), density=DENSITY, rng=rng, format="csc")
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        sparse.save_npz(folder / "X.npz", X, compressed=False)
        total = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float64, (d, n))
        for start in range(0, d, 1000):
            X[start : start + 1000] = rng.standard_normal(X[start : start + 1000].shape)
        total = X.nbytes
    y = X[:, :5] @ np.ones(5) + 0.1 * rng.standard_normal(d)
    np.save(folder / "y.npy", y)
    return total


def status(name):
    """A figure of this process in bytes."""
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def fit(name, kind, folder):
    """In a process of its own: print how far a fit raises the memory, in bytes."""
    warnings.simplefilter("ignore")
    make, _, _ = models()[name]
    rng = np.random.default_rng(1)
    head = rng.standard_normal((60, 40))
    if kind == "sparse":
        head = sparse.random_array((60, 40), density=0.3, rng=rng, format="csc")
    classes = is_classifier(make(40))
    make(40).fit(head, np.arange(60) % 2 if classes else np.arange(60.0))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = status("VmRSS")
    y = np.load(folder / "y.npy")
    y = (y > np.median(y)).astype(int) if classes else y
    if kind == "sparse":
        X = sparse.load_npz(folder / "X.npz")
    else:
        X = np.load(folder / "X.npy", mmap_mode="r" if kind == "mapped" else None)
    model = make(X.shape[1]).fit(X, y)
    atoms = 8 * sum(told.values for told in model.result_.ledger.disclosures if told.kind == "atom")
    print(status("VmHWM") - before, atoms)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(models()))
    parser.add_argument("--mb", type=int, default=200, help="size of the data")
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        name, kind, folder = arguments.fit
        return fit(name, kind, Path(folder))
    heads = f"{'peak / data':>13}{'cache':>7}{'atoms':>7}{'the rest':>10}"
    print(f"{'estimator':26}{'data':8}{'MB':>6}{heads}")
    for name in arguments.only:
        _, rows_a_column, cache = models()[name]
        for kind in ("dense", "sparse", "mapped"):
            with tempfile.TemporaryDirectory() as folder:
                total = data(kind, arguments.mb, rows_a_column, Path(folder))
                command = [sys.executable, __file__, "--fit", name, kind, folder]
                said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            peak, atoms = map(int, said.split())
            print(
                f"{name:26}{kind:8}{total / MB:6.0f}{peak / total:13.2f}{cache / total:7.2f}"
                f"{atoms / total:7.2f}{(peak - cache - atoms) / total:10.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
