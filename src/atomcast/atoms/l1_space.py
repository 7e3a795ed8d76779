"""Explicit atoms at l1 distance from each other, for m-centers: Lemma 1 of the paper is in l1."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.kernels.threads import ranges, run_all, thread_count

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Atoms with fewer values than this in all are compared without compiling anything.
COMPILE_FROM = 1 << 20
#: So many differences in all are worth several threads.
MANY = 1 << 22
#: A distance this much smaller than the lengths is rounding.
ROUNDING = 1e-14


class DenseSpace:
    """Columns of a dense array.

    Parameters
    ----------
    rows : array of shape (n, d)
        The transpose.
    compiled : bool
        Whether there are so many that compiling pays.
    """

    def __init__(self, rows: NDArray[Any], compiled: bool) -> None:
        self.rows, self.compiled = rows, compiled
        self.width = int(rows.shape[1])

    def take(self, rows: Rows) -> DenseSpace:
        """Some of the columns."""
        return DenseSpace(np.ascontiguousarray(self.rows[rows]), self.compiled)

    def nearest(self, others: DenseSpace) -> Floats:
        """How far each column is from the nearest of some others, shape (n,)."""
        if not self.compiled:
            from scipy.spatial.distance import cdist

            distances: Floats = cdist(self.rows, others.rows, "cityblock")
            return distances.min(axis=1)
        from atomcast._nearest import sum_extremes

        n = len(self.rows)
        least, most = np.full(n, np.inf), np.zeros(n)
        parts = thread_count() if n * others.rows.size >= MANY else 1
        run_all([
            partial(sum_extremes, self.rows[part], others.rows, least[part], most[part])
            for part in ranges(n, parts)
        ])  # fmt: skip
        return least


class SparseSpace:
    """Columns of a compressed sparse matrix (CSC).

    Parameters
    ----------
    matrix : CSC matrix of shape (d, n)
    compiled : bool
        Whether there are so many values that compiling pays.
    """

    def __init__(self, matrix: sparse.csc_array, compiled: bool) -> None:
        self.matrix, self.compiled = matrix, compiled
        self.width = -(-matrix.nnz // max(matrix.shape[1], 1))

    def take(self, rows: Rows) -> SparseSpace:
        """Some of the columns."""
        return SparseSpace(self.matrix[:, rows], self.compiled)

    def nearest(self, others: SparseSpace) -> Floats:
        """How far each column is from the nearest of some others, shape (n,)."""
        least = np.full(self.matrix.shape[1], np.inf)
        if self.compiled:
            from atomcast._nearest import sparse_sums

            sparse_sums(self._parts, others._parts, self.matrix.shape[0], least)
            return least
        starts, places, values, lengths = self._parts
        column = np.repeat(np.arange(len(lengths)), np.diff(starts))
        for j in range(others.matrix.shape[1]):
            centre = others.matrix[:, [j]].toarray().ravel()
            there = centre[places]
            # Where both have something, the distance is less than the sum of their lengths.
            gain = np.abs(values - there) - np.abs(values) - np.abs(there)
            total = lengths + np.abs(centre).sum()
            away = total + np.bincount(column, gain, minlength=len(lengths))
            np.minimum(least, np.where(away > ROUNDING * total, away, 0.0), out=least)
        return least

    @cached_property
    def _parts(self) -> tuple[Rows, Rows, Floats, Floats]:
        matrix = self.matrix
        lengths = np.asarray(abs(matrix).sum(axis=0), dtype=np.float64).ravel()
        return matrix.indptr, matrix.indices, matrix.data.astype(np.float64), lengths
