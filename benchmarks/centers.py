"""Greedy m-centers of one node: a pass over all atoms for each center, beside what atomcast does.

    python benchmarks/centers.py                # all of them, about two minutes
    python benchmarks/centers.py speech adult   # some of them

The first way is kept here as a reference. Seconds of computation of one thread, waiting for a core
not counted; the last column says how many centers are the same, and whether the radius is. (A pass
over single-precision data sums in single precision: two that are nearly tied may change places.)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
from atomcast.atoms.kernel import KernelAtoms
from atomcast.data import load_adult
from atomcast.data.generators import make_speech_like
from atomcast.experiments.runs.kernel_runs import mean_distance_gamma, one_thread
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.storage import Storage
from atomcast.known.kernels.sums import kernel_sums
from atomcast.messages.proposals import TIE
from atomcast.selection.m_centers import GreedyCenters

#: From one atom to all, shape (n,).
Pass = Callable[[int], Any]
#: What is compared: the atoms, a pass of the reference, and the number of centers.
Case = tuple[Any, Pass, int]


def in_kernel_space(X: Any, y: Any, m: int, cost: float = 100.0) -> Case:
    """Examples of the paper's kernel SVM; a pass is a fused loop, as when they are scored."""
    gamma, code = mean_distance_gamma(X), LabelCode(2, np.full(2, cost))
    labels, n = (y > 0).astype(np.uint8), X.shape[0]
    active = KernelActiveSet(KernelSpec("rbf", gamma), code, Storage(2**20))
    atoms = KernelAtoms(X, labels, np.arange(n), Storage(2**20))
    active.append([atoms.atom(0, 0)])
    atoms.follow(active)
    sums = kernel_sums(X, active.kernel, code, labels)
    length = 2.0 + 1.0 / cost

    def one_pass(j: int) -> Any:
        column = np.zeros(n)
        sums.add(column, 0.0, X[j : j + 1], labels[j : j + 1], np.ones(1))
        return np.sqrt(np.maximum(2.0 * length - 2.0 * column, 0.0))

    return atoms, one_pass, m


def dense_columns(A: Any, m: int) -> Case:
    """Columns in l1, a pass in pieces that stay in cache."""
    width = max((1 << 17) // A.shape[0], 1)

    def one_pass(j: int) -> Any:
        centre = A[:, j, None]
        parts = range(0, A.shape[1], width)
        return np.concatenate([np.abs(A[:, k : k + width] - centre).sum(axis=0) for k in parts])

    return DenseAtoms(A), one_pass, m


def sparse_columns(A: Any, m: int) -> Case:
    """Sparse columns in l1, a pass over the rows where the center is not zero."""
    by_rows, lengths = A.tocsr(), np.asarray(abs(A).sum(axis=0)).ravel()

    def one_pass(j: int) -> Any:
        part = slice(A.indptr[j], A.indptr[j + 1])
        near, centre = by_rows[A.indices[part]].tocsc(), A.data[part]
        there = centre[near.indices]
        gain = np.abs(near.data - there) - np.abs(near.data) - np.abs(there)
        column = np.repeat(np.arange(A.shape[1]), np.diff(near.indptr))
        return lengths + np.abs(centre).sum() + np.bincount(column, gain, minlength=A.shape[1])

    return SparseAtoms(A), one_pass, m


def pass_by_pass(one_pass: Pass, n: int, m: int) -> tuple[list[int], float]:
    """Centers and radius by the definition of Algorithm 4."""
    distance, centers = np.full(n, np.inf), [0]
    while True:
        np.minimum(distance, one_pass(centers[-1]), out=distance)
        distance[centers[-1]] = -1.0
        top = float(distance.max())
        if len(centers) == m:
            return centers, top
        centers.append(int(np.argmax(distance >= top * (1 - TIE))))


def speech(n: int, m: int) -> Case:
    """The stand-in for the speech data; figure 5(b)'s large node has 80,000 examples."""
    data = make_speech_like(n, random_state=0)
    return in_kernel_space(data.X, data.y, m)


def adult() -> Case:
    """Adult: binary data, where distances are few numbers and most of them are tied."""
    data = load_adult()
    return in_kernel_space(data.X, data.y, 3_000)


def alike(n: int, d: int, m: int) -> Case:
    """Points on a sphere of many dimensions: all distances are alike, there is little to skip."""
    X = np.random.default_rng(0).standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return in_kernel_space(X.astype(np.float32), np.arange(n) % 2, m)


def columns(d: int, n: int, m: int) -> Case:
    """Columns in clusters."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((d, 50))[:, rng.integers(0, 50, n)]
    return dense_columns(A + rng.standard_normal((d, n)), m)


def sparse_random(d: int, n: int, m: int) -> Case:
    """Sparse columns like those of Dorothea, with real values."""
    return sparse_columns(sparse.random_array((d, n), density=0.01, rng=0, format="csc"), m)


CASES: dict[str, tuple[str, Callable[[], Case]]] = {
    "speech": ("speech stand-in, 80,000 x 120, RBF", lambda: speech(80_000, 8_889)),
    "speech-small": ("speech stand-in, 20,000 x 120, RBF", lambda: speech(20_000, 2_222)),
    "adult": ("Adult, 32,561 x 123 (binary), RBF", adult),
    "alike": ("sphere, 20,000 x 300, RBF", lambda: alike(20_000, 300, 1_000)),
    "columns": ("dense columns, 20,000 of 200, l1", lambda: columns(200, 20_000, 1_000)),
    "sparse": ("sparse columns, 50,000 of 800, l1", lambda: sparse_random(800, 50_000, 1_000)),
}


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--repeats", type=int, default=2, help="the fastest one counts")
    args = parser.parse_args()
    unknown = sorted(set(args.cases) - set(CASES))
    if unknown:
        parser.error(f"no case {unknown[0]!r}: there are {', '.join(CASES)}")
    print(f"{'':38s}{'centers':>8s}{'by passes':>11s}{'atomcast':>10s}{'ratio':>7s}  the same")
    for name in args.cases or CASES:
        title, make = CASES[name]
        atoms, one_pass, m = make()
        rows, (slow, fast) = np.arange(atoms.n), ([], [])
        with one_thread():
            one_pass(0)  # compiles
            GreedyCenters(atoms.space(), rows).grow(50)
            for _ in range(args.repeats):
                start = time.thread_time()
                expected, radius = pass_by_pass(one_pass, atoms.n, m)
                slow.append(time.thread_time() - start)
                start = time.thread_time()
                greedy = GreedyCenters(atoms.space(), rows)
                greedy.grow(m)
                same_radius = np.isclose(greedy.radius, radius, rtol=1e-5)
                fast.append(time.thread_time() - start)
        common = len(set(greedy.centers) & set(expected))
        same = "all" if common == m else f"{common:,}"
        print(
            f"{title:38s}{m:8,d}{min(slow):9.2f} s{min(fast):8.2f} s{min(slow) / min(fast):7.1f}"
            f"  {same}, radius {'too' if same_radius else 'not'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
