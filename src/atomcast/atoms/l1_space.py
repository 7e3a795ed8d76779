"""Explicit atoms at l1 distance from each other, for m-centers: Lemma 1 of the paper is in l1."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._threads import ranges, run_all, thread_count

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
    parts : arrays indptr, indices and data of the matrix, and the l1 length of each column
    d : int
        Its number of rows.
    compiled : bool
        Whether there are so many values that compiling pays.
    """

    def __init__(self, parts: tuple[Any, Any, Any, Floats], d: int, compiled: bool) -> None:
        self.parts, self.d, self.compiled = parts, d, compiled
        self.width = -(-len(parts[2]) // max(len(parts[3]), 1))

    @classmethod
    def of(cls, matrix: sparse.csc_array) -> SparseSpace:
        """The space of all columns of a matrix."""
        column = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
        sums = np.bincount(column, np.abs(matrix.data), minlength=matrix.shape[1])
        lengths = sums.astype(np.float64)  # an empty matrix has whole numbers
        parts = matrix.indptr, matrix.indices, matrix.data, lengths
        return cls(parts, matrix.shape[0], matrix.nnz >= COMPILE_FROM)

    def take(self, rows: Rows) -> SparseSpace:
        """Some of the columns."""
        indptr, indices, data, lengths = self.parts
        counts = indptr[rows + 1] - indptr[rows]
        starts = np.concatenate(([0], np.cumsum(counts)))
        places = np.arange(starts[-1]) + np.repeat(indptr[rows] - starts[:-1], counts)
        values = data[places].astype(np.float64)
        return SparseSpace((starts, indices[places], values, lengths[rows]), self.d, self.compiled)

    def nearest(self, others: SparseSpace) -> Floats:
        """How far each column is from the nearest of some others, shape (n,)."""
        starts, places, values, lengths = self.parts
        least, other = np.full(len(lengths), np.inf), np.zeros(self.d)
        if self.compiled:
            from atomcast._nearest import sparse_sums

            sparse_sums(self.parts, others.parts, other, least)
            return least
        column = np.repeat(np.arange(len(lengths)), np.diff(starts))
        for j, length in enumerate(others.parts[3].tolist()):
            part = slice(others.parts[0][j], others.parts[0][j + 1])
            other[others.parts[1][part]] = others.parts[2][part]
            both = np.flatnonzero(there := other[places])
            # Where both have something, the distance is less than the sum of their lengths.
            mine, his = values[both], there[both]
            gain = np.abs(mine - his) - np.abs(mine) - np.abs(his)
            total = lengths + length
            away = total + np.bincount(column[both], gain, minlength=len(lengths))
            np.minimum(least, np.where(away > ROUNDING * total, away, 0.0), out=least)
            other[others.parts[1][part]] = 0.0
        return least
