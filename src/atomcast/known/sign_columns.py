"""Columns of which every value is 1 or -1, as stumps and other classifiers say: a byte a value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from atomcast.known.columns import Chosen, Columns, DenseColumns, Floats, SparseColumns
from atomcast.messages.atom import Atom, AtomBatch

#: So many values are turned into floating point numbers at a time, which stay in the cache: to read
#: a byte and convert it takes no longer than to read eight.
PIECE = 1 << 17
#: Columns of fewer values take little memory, and less time as they are.
LONG = 1 << 14


def all_signs(atoms: Sequence[Atom]) -> bool:
    """Whether atoms are dense, long, and say nothing but 1 and -1."""
    parts = [atoms] if isinstance(atoms, AtomBatch) else atoms
    return all(
        part.indices is None
        and part.d >= LONG
        and (part.values.dtype == np.int8 or bool(np.all(np.abs(part.values) == 1.0)))
        for part in parts
    )


class SignColumns(DenseColumns):
    """Columns of 1 and -1, stored in bytes, one after the other in memory."""

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

    def measured(self, start: int, stop: int, vector: Floats) -> tuple[Floats, Floats]:
        """The products of columns start to stop with a vector, and the norms of these columns."""
        parts = self._parts(slice(start, stop))
        products = np.asarray(sum(rows @ vector[part] for part, rows in parts))
        return products, np.full(stop - start, math.sqrt(self.d))

    def measured_one(self, position: int, vector: Floats) -> tuple[float, float]:
        """The same of a single column."""
        return float(self.column(position) @ vector), math.sqrt(self.d)

    def atoms(self) -> list[Atom]:
        """The columns as atoms again; their ids are their positions."""
        return [Atom(k, self.d, self.column(k)) for k in range(self.count)]

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
        if left is right:
            return super().cross(left, right, diagonal)
        parts = self._parts()
        return np.asarray(sum((rows[left] * diagonal[p]) @ rows[right].T for p, rows in parts))


def with_appended(columns: Columns | None, d: int, atoms: Sequence[Atom]) -> Columns:
    """Append atoms to a store of the right kind; the first dense atom makes the store dense.

    Which kind that is depends on the values alone, so that it is the same on every node.
    """
    parts = [atoms] if isinstance(atoms, AtomBatch) else atoms
    any_dense = any(part.indices is None for part in parts)
    signs = (columns is None or isinstance(columns, SignColumns)) and all_signs(atoms)
    if columns is None and any_dense:
        columns = SignColumns(d) if signs else DenseColumns(d)
    elif columns is None:
        columns = SparseColumns(d)
    elif any_dense and (isinstance(columns, SparseColumns) or not signs):
        columns = as_dense(columns)
    columns.append(atoms)
    return columns


def as_dense(columns: Columns) -> Columns:
    """The same columns, ready for others that are neither sparse nor signs."""
    if not isinstance(columns, SparseColumns | SignColumns):
        return columns
    dense = DenseColumns(columns.d)
    dense.append(columns.atoms())
    return dense
