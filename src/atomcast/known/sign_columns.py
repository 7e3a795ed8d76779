"""Columns of which every value is 1 or -1, as stumps and other classifiers say: a byte a value."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from atomcast.known.columns import Chosen, DenseColumns, Floats

#: So many values are turned into floating point numbers at a time, which stay in the cache: to read
#: a byte and convert it takes no longer than to read eight.
PIECE = 1 << 17


class SignColumns(DenseColumns):
    """Columns of 1 and -1, stored in bytes, one after the other in memory."""

    signs = True

    def __init__(self, d: int) -> None:
        super().__init__(d)
        self._rows: NDArray[np.int8] = np.empty((4, d), dtype=np.int8)  # type: ignore[assignment]

    def _parts(self, some: Chosen = slice(None)) -> Iterator[tuple[slice, Floats]]:
        """Some of the columns, from the first of their values to the last, a few at a time."""
        rows = self._rows[: self.count]
        step = max(PIECE // max(len(rows), 1), 64)
        for part in (slice(k, k + step) for k in range(0, self.d, step)):
            yield part, rows[some, part].astype(np.float64)

    def combine(self, weights: Floats) -> Floats:
        """The weighted sum of the columns, shape (d,), or m of them, shape (m, d)."""
        image = np.empty((*weights.shape[:-1], self.d))
        for part, rows in self._parts():
            image[..., part] = weights @ rows
        return image

    def scores(self, vector: Floats) -> Floats:
        """The inner product of every column with a vector, shape (count,)."""
        return self.products(vector)

    def products(self, block: Floats) -> Floats:
        """The inner products of every column with the columns of a block, shape (count, m)."""
        return np.asarray(sum(rows @ block[part] for part, rows in self._parts()))

    def among(self, start: int) -> Floats:
        """The inner products of every column with those from start on, shape (count, m)."""
        return self.products(self.block(start, self.count))

    def measured(self, start: int, stop: int, vector: Floats) -> tuple[Floats, Floats]:
        """The products of columns start to stop with a vector, and the norms of these columns."""
        parts = self._parts(slice(start, stop))
        products = np.asarray(sum(rows @ vector[part] for part, rows in parts))
        return products, np.full(stop - start, math.sqrt(self.d))

    def measured_one(self, position: int, vector: Floats) -> tuple[float, float]:
        """The same of a single column."""
        return float(self.column(position) @ vector), math.sqrt(self.d)

    def block(self, start: int, stop: int) -> Floats:
        """Columns start to stop as a dense array, shape (d, stop - start)."""
        return self._rows[start:stop].astype(np.float64).T

    def column(self, position: int) -> Floats:
        """A single column as a dense array, shape (d,), not to be changed."""
        return self._rows[position].astype(np.float64)

    def lengths(self, diagonal: Floats, start: int = 0) -> Floats:
        """The product a_j' diag(diagonal) a_j of each column from start on with itself."""
        return np.full(self.count - start, diagonal.sum())

    def thin(self, count: int) -> bool:
        """Products are to be those of `cross`, which makes no block of numbers."""
        return True

    def cross(self, left: Chosen, right: Chosen, diagonal: Floats) -> Floats:
        """The products a_j' diag(diagonal) a_k of some columns with others, shape (l, r)."""
        diagonal = np.broadcast_to(diagonal, self.d)  # in bytes, products would overflow
        if left is right:
            return super().cross(left, right, diagonal)
        parts = self._parts()
        return np.asarray(sum((rows[left] * diagonal[p]) @ rows[right].T for p, rows in parts))
