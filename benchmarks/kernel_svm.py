"""The kernel SVM: columns, communication, training time and scale. All figures of one run.

    python benchmarks/kernel_svm.py columns
    OMP_NUM_THREADS=1 taskset -c 1 python benchmarks/kernel_svm.py classic
    python benchmarks/kernel_svm.py rounds --rows 4000 --C 100 --nodes 10
    python benchmarks/kernel_svm.py rounds --nodes 10 --steps classic,corrective --seconds 60
    python benchmarks/kernel_svm.py accuracy --rows 4000 --C 100
    python benchmarks/kernel_svm.py training --C 1
    python benchmarks/kernel_svm.py training --C 100 --svc-iterations 200000
    python benchmarks/kernel_svm.py scale --n 1000000
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/kernel_svm.py classes
    python benchmarks/kernel_svm.py costs --seed 1
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/kernel_svm.py binary --n 6500

The data sets a9a, letter and usps are looked for in the folder ATOMCAST_DATA. Compiling is not part
of any time.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kernel_svm_binary import binary
from kernel_svm_classes import classes, costs
from kernel_svm_rounds import accuracy, rounds
from numba import njit, uint64
from rows import Figure, tell

from atomcast import KernelSVC, Solver
from atomcast._threads import ranges, run_all, thread_count
from atomcast.data import load_adult, make_speech_like
from atomcast.known.kernels.functions import RBF
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.sums import BinarySums, DenseSums, SparseSums


def best_times(*calls: Callable[[], Any], repeat: int = 9) -> list[float]:
    """The least time of each of some calls, taken in turn: what slows one down slows down all."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeat + 1):
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [min(own[1:]) for own in times]


def best_time(call: Callable[[], Any], repeat: int = 9) -> float:
    return best_times(call, repeat=repeat)[0]


@njit(fastmath=True, nogil=True)
def read(values):
    total = values.dtype.type(0)
    for i in range(uint64(len(values))):
        total += values[i]
    return total


def read_all(X):
    """Read every value once, on as many threads as kernel columns use."""
    flat = X.reshape(-1)
    run_all([partial(read, flat[part]) for part in ranges(len(flat), thread_count())])


def columns(args) -> None:
    """One kernel column: fused, scattered and by bits, against NumPy and SciPy."""
    gamma, code = 0.01, LabelCode(2, np.ones(2))
    X, y = make_speech_like(args.n or 400_000)
    labels, total = (y > 0).astype(np.uint8), np.zeros(len(y))
    signs, weight = y.astype(float), np.array([0.3])
    norms = np.einsum("ij,ij->i", X, X)

    def naive():
        total[:] = 0.5 * total + 0.3 * signs * (np.exp(-gamma * ((X - X[5]) ** 2).sum(axis=1)) + 1)

    def products():
        squares = norms + norms[5] - 2 * (X @ X[5])
        total[:] = 0.5 * total + 0.3 * signs * (np.exp(-gamma * squares) + 1)

    fused = DenseSums(X, RBF(gamma), code, labels)
    ways = {
        "NumPy, differences": naive,
        "NumPy, one product": products,
        "fused": lambda: fused.add(total, 0.5, X[5:6], labels[5:6], weight),
    }
    slow = best_times(naive, products)
    limit, quick = best_times(lambda: read_all(X), ways["fused"], repeat=40)
    print(f"dense {X.shape[0]:,} x {X.shape[1]} float32, {thread_count()} threads")
    print(
        f"  reading the data once      {1e3 * limit:8.2f} ms  ({X.nbytes / limit / 1e9:.1f} GB/s)"
    )
    for name, seconds in zip(ways, [*slow, quick], strict=True):
        print(f"  {name:26s} {1e3 * seconds:8.2f} ms  {limit / seconds:5.2f} of the read limit")
    speed = f"{X.nbytes / limit / 1e9:.1f} GB/s on {thread_count()} threads"
    what, unit = f"dense kernel column, {len(X):,} x {X.shape[1]}", "of the read limit"
    found = [Figure(what, limit / quick, unit, f"reading {speed}", at_least=0.9)]

    data = load_adult()
    A, labels = data.X, (data.y > 0).astype(np.uint8)
    signs, total = data.y.astype(float), np.zeros(A.shape[0])
    norms = np.asarray(A.multiply(A).sum(axis=1)).ravel()

    point, dense_point = A[5:6], A[5].toarray().ravel()

    def scipy_column():
        squares = norms + norms[5] - 2 * (A @ dense_point)
        total[:] = 0.5 * total + 0.3 * signs * (np.exp(-gamma * squares) + 1)

    base = best_time(scipy_column, 30)
    print(
        f"a9a {A.shape[0]:,} x {A.shape[1]}, CSR\n  SciPy                      {1e3 * base:8.3f} ms"
    )
    for name, way in [("scatter over columns", SparseSums), ("bits", BinarySums)]:
        sums = way(A, RBF(gamma), code, labels)
        seconds = best_time(lambda s=sums: s.add(total, 0.5, point, labels[5:6], weight), 30)
        print(f"  {name:26s} {1e3 * seconds:8.3f} ms  {base / seconds:5.1f} x SciPy")
    beside = f"SciPy {1e3 * base:.3f} ms"
    found.append(Figure("a9a column, bits", base / seconds, "x SciPy", beside, at_least=6.0))
    if args.json:
        for figure in found:
            tell(figure)


def classic(args) -> None:
    """A classic round of one node, from its score to its step, beside reading the data once."""
    X, y = make_speech_like(args.n or 40_000)
    stamps: list[float] = []
    solver = Solver(
        "classic",
        max_rounds=min(args.max_rounds, 400),
        callbacks=[lambda state: stamps.append(time.perf_counter()) and None],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is not meant to converge
        KernelSVC(C=100.0, gamma=0.004, solver=solver).fit(X, y)
    rounds, limit = np.diff(stamps)[5:], best_time(lambda: read_all(X), 100)
    print(
        f"{X.shape[0]:,} x {X.shape[1]} float32, {thread_count()} threads: a classic round "
        f"{1e3 * rounds.min():.2f} ms at least, {1e3 * float(np.median(rounds)):.2f} ms in the "
        f"median of {len(rounds)}; reading the data once {1e3 * limit:.2f} ms"
    )
    if args.json:
        what = f"classic kernel round, {len(X):,} x {X.shape[1]}, {thread_count()} thread"
        beside = f"reading once {1e3 * limit:.2f} ms"
        tell(Figure(what, 1e3 * float(rounds.min()), "ms", beside, at_most=1.3))


def training(args) -> None:
    """Training time, accuracy and support vectors against scikit-learn.

    The time of SVC grows with C: --svc-iterations bounds it, and the line then says whether it
    converged; if not, it needs at least the time shown.
    """
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC, LinearSVC

    data = load_adult()
    X, y = data.X[: args.rows], data.y[: args.rows]
    warm = KernelSVC(C=args.C, solver=Solver(tol=args.tol))
    warm.fit(X[:4000], y[:4000])  # compiles
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five rounds are enough to compile for single precision
        KernelSVC(solver=Solver(tol=1e-2, max_rounds=5)).fit(X, y)
    gamma = warm.gamma_
    print(
        f"a9a, {X.shape[0]:,} rows, C = {args.C:g}, gamma = {gamma:.4f}, {thread_count()} threads"
    )
    models = [
        (f"KernelSVC, gap {args.tol:g}", KernelSVC(C=args.C, gamma=gamma, solver=warm.solver)),
        (
            "SVC",
            SVC(C=args.C, gamma=gamma, cache_size=2000, max_iter=args.svc_iterations or -1),
        ),
        (
            "Nystroem 500 + LinearSVC",
            make_pipeline(
                Nystroem(gamma=gamma, n_components=500, random_state=0), LinearSVC(C=args.C / 2)
            ),
        ),
    ]
    ours = None
    for name, model in models:
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        ours = seconds if ours is None else ours
        extra = ""
        if hasattr(model, "support_"):
            extra = f"  {len(model.support_):6d} support vectors"
        if isinstance(model, KernelSVC):
            r = model.result_
            extra += f"  {r.rounds} rounds, {r.trace.atoms[-1]} atoms, gap {r.relative_gap:.1e}"
            extra += f", objective {r.objective:.6g}"
        if isinstance(model, SVC) and model.fit_status_:
            extra += "  (did not converge: stopped)"
        accuracy = model.score(data.X_test, data.y_test)
        print(
            f"  {name:26s}{seconds:8.1f} s  (KernelSVC / this: {ours / seconds:5.2f})  "
            f"accuracy {accuracy:.4f}{extra}",
            flush=True,
        )


def scale(args) -> None:
    """Classic rounds over data of the size of the paper's speech data, memory-mapped."""
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        X, y = make_speech_like(args.n or 1_000_000, out=Path(folder) / "speech.npy")
        read_all(X)  # from disk into the page cache
        limit = best_time(lambda: read_all(X), 3)
        KernelSVC(C=100.0, gamma=0.004, solver=Solver("classic", max_rounds=2)).fit(
            np.asarray(X[:200_000]), y[:200_000]
        )  # compiles
        stamps: list[float] = []
        solver = Solver(
            "classic",
            max_rounds=args.max_rounds if args.max_rounds < 4000 else 12,
            callbacks=[lambda state: stamps.append(time.perf_counter()) and None],
        )
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        model = KernelSVC(C=100.0, gamma=0.004, cluster=args.nodes, solver=solver).fit(X, y)
        seconds = float(np.median(np.diff(stamps)[2:]))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"{X.shape[0]:,} x {X.shape[1]} float32 ({X.nbytes / 1e9:.2f} GB), {args.nodes} nodes, "
            f"{thread_count()} threads\n"
            f"  reading the data once {limit:.3f} s ({X.nbytes / limit / 1e9:.1f} GB/s)\n"
            f"  a classic round       {seconds:.3f} s = {limit / seconds:.2f} of the read limit\n"
            f"  peak memory           {peak * 1024 / 1e9:.2f} GB = "
            f"{peak * 1024 / X.nbytes:.2f} x the data (before: {before * 1024 / 1e9:.2f} GB)\n"
            f"  {model.result_.rounds} rounds, objective {model.result_.objective:.6g}, accuracy "
            f"on the first 20,000 {model.score(X[:20_000], y[:20_000]):.4f}"
        )


SECTIONS = {
    "columns": columns,
    "classic": classic,
    "rounds": rounds,
    "accuracy": accuracy,
    "training": training,
    "scale": scale,
    "binary": binary,
    "classes": classes,
    "costs": costs,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("section", choices=list(SECTIONS))
    parser.add_argument("--rows", type=int, default=None, help="rows of a9a; 0: all")
    parser.add_argument("--n", type=int, default=None, help="synthetic examples")
    parser.add_argument("--seed", type=int, default=0, help="the first of two, of synthetic data")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--max-rounds", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=120.0, help="that a run may take")
    parser.add_argument("--steps", default="paper,classic,pairwise,blended-pairwise,corrective")
    parser.add_argument("--svc-iterations", type=int, default=0, help="bound for SVC; 0: none")
    parser.add_argument("--json", action="store_true", help="columns, classic: figures as JSON")
    parser.add_argument("--folder", default=None, help="where the memory-mapped file goes")
    args = parser.parse_args()
    args.rows = args.rows or None  # all
    SECTIONS[args.section](args)


if __name__ == "__main__":
    main()
