"""Rows of a sparse matrix, some of which are replaced one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class RowsInOrder:
    """A copy of a sparse matrix in the making, in memory that grows as it is needed.

    Nothing of it is there twice: how many numbers there will be is known only at the end, and to
    keep the parts until then would take as much again.

    Parameters
    ----------
    old : sparse array of shape (m, n)
        By rows.
    more : int
        So many numbers more than it has are likely: to grow may take a copy.
    """

    def __init__(self, old: sparse.csr_array, more: int = 0) -> None:
        self._old, self._next = old, 0
        # How many numbers each row has, which become the starts of rows where they stand.
        self._starts = np.zeros(old.shape[0] + 1, dtype=old.indptr.dtype)
        self._counts = self._starts[1:]
        np.subtract(old.indptr[1:], old.indptr[:-1], out=self._counts)
        size = old.nnz + more
        self._data, self._indices = np.empty(size), np.empty(size, dtype=np.int32)
        self._used = 0

    def replace(self, rows: NDArray[np.int64], part: sparse.csr_array) -> None:
        """Put a part in the place of some rows, in increasing order and after those before."""
        if not len(rows):
            return
        self._copy(int(rows[-1]) + 1, rows - self._next, part)

    def finished(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Numbers, columns and the starts of all rows."""
        none = np.zeros(0, dtype=np.int64)
        self._copy(len(self._counts), none, sparse.csr_array((0, self._old.shape[1])))
        self._resize(self._used)
        # Starts of another type than columns would make SciPy convert both.
        whole = self._indices.dtype if self._used < 1 << 31 else np.int64
        starts = self._starts.astype(whole, copy=False)
        np.cumsum(starts, out=starts)
        return self._data, self._indices, starts

    def _copy(self, stop: int, new: NDArray[np.int64], part: sparse.csr_array) -> None:
        """The old rows up to one, but for the new ones among them."""
        counts = self._counts[self._next : stop]
        stay = np.ones(len(counts), dtype=bool)
        stay[new] = False
        before = slice(*self._old.indptr[[self._next, stop]].tolist())
        kept = np.repeat(stay, counts)
        counts[new] = np.diff(part.indptr)
        place = np.repeat(stay, counts)
        start, self._used = self._used, self._used + len(place)
        if self._used > len(self._data):
            self._resize(self._used + self._used // 8)
        for mine, old, put in (
            (self._data, self._old.data, part.data),
            (self._indices, self._old.indices, part.indices),
        ):
            room = mine[start : self._used]
            room[place] = old[before][kept]
            room[~place] = put
        self._next = stop

    def _resize(self, size: int) -> None:
        """Have room for so many numbers; nobody else looks at the arrays meanwhile."""
        self._data.resize(size, refcheck=False)
        self._indices.resize(size, refcheck=False)
