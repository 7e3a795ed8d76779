"""The kernel SVM of the paper's experiments: RBF with the mean distance, C = 100."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.atoms.kernel import LocalLabels
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode
from atomcast.loop.solver import Solver
from atomcast.problems.examples import kernel_problem
from atomcast.problems.problem import Problem

#: The paper's cost of margin errors.
C = 100.0
#: The memory that kernel values may take, once for known points and once for own columns.
CACHE_BYTES = 2**30


def mean_distance_gamma(X: Any) -> float:
    """1 / the mean squared distance between two examples, of all pairs."""
    rows = X.shape[0]
    if sparse.issparse(X):
        lengths, mean = float(X.multiply(X).sum()), np.asarray(X.mean(axis=0)).ravel()
    else:
        mean = X.mean(axis=0, dtype=np.float64)
        pieces = np.array_split(X, -(-rows // 65536))
        lengths = sum(float(np.square(piece, dtype=np.float64).sum()) for piece in pieces)
    # Over pairs of different rows it is twice the summed variance.
    return (rows - 1) / (2.0 * (lengths - rows * float(mean @ mean)))


def svm_problem(y: NDArray[Any], gamma: float, step: str, tol: float, cost: float = C) -> Problem:
    """Problem (4) of the paper for labels -1 and 1; known points are few at first."""
    solver = Solver(step, tol=tol)
    labels = LocalLabels((np.asarray(y) > 0).astype(np.uint8))
    return kernel_problem(
        KernelSpec("rbf", gamma), LabelCode(2, np.full(2, cost)), labels, solver, CACHE_BYTES,
        n=len(y),
    )  # fmt: skip


@contextmanager
def one_thread() -> Iterator[None]:
    """Let a node use a single core, as in the paper, also where it could use more."""
    from threadpoolctl import threadpool_limits

    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
