"""Atoms that are columns of a matrix, dense or sparse; the matrix is used as it was given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._threads import product
from atomcast.atoms.kept_rows import KeptRows
from atomcast.atoms.l1_space import COMPILE_FROM, DenseSpace, SparseSpace
from atomcast.atoms.rounded import RoundedColumns
from atomcast.data.shards import Shard
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.sparse_products import dots, some
from atomcast.messages.atom import Atom, AtomBatch

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: Single-precision data is widened in pieces of about this many numbers, which stay in cache.
PIECE = 1 << 17
#: Where a column and all of them have at least so many numbers, to bound scores takes about a
#: quarter of the time that it takes to find them.
LONG, MUCH = 128, 1 << 24
#: The copy that is needed for it is made when so many passes and so many numbers more were read: to
#: make it, and to load what makes it, takes about as long as that.
PASSES, START = 3, 1 << 30
#: Beyond this share of columns that bounds leave open, it is quicker to read all of them.
VAIN = 0.2


def gradient_of(replica: Replica) -> Floats:
    """The gradient that explicit atoms are scored with, shape (d,)."""
    active = replica.active
    assert isinstance(active, ExplicitActiveSet)
    return active.gradient


class DenseAtoms:
    """Columns of a dense array, in single or double precision, in either memory order.

    Products are accumulated in double precision without a double-precision copy of the data.
    """

    slopes: Literal[True] = True

    def __init__(self, matrix: NDArray[Any], names: tuple[str, ...] | None = None) -> None:
        self.matrix = matrix
        self.names = names
        self.d, self.n = matrix.shape
        self._rounded: RoundedColumns | None = None
        self.large = self.d >= LONG and matrix.size >= MUCH
        self._unread: float = PASSES * matrix.size + START

    def scores(self, replica: Replica) -> Floats:
        """The inner product of each column with the gradient, shape (n,)."""
        return self.products(gradient_of(replica))

    def bounds(self, replica: Replica) -> tuple[Floats, Floats] | None:
        """Scores and how far each may be off; None before the copy pays, and where it does not."""
        if self._unread > 0:
            self._unread -= self.matrix.size
            return None
        gradient = gradient_of(replica)
        if gradient.ndim > 1:
            return None
        if self._rounded is None:
            self._rounded = RoundedColumns(self.matrix)
        return self._rounded.bounds(gradient)

    def read(self, replica: Replica, columns: NDArray[np.int64]) -> Floats | None:
        """The scores of some columns, shape (k,); None if they are so many that bounds are vain."""
        if len(columns) > VAIN * self.n:
            self._rounded, self._unread = None, math.inf
            return None
        return DenseAtoms(self.matrix.T[columns].T).products(gradient_of(replica))

    def products(self, vector: Floats) -> Floats:
        """The inner product of each column with a vector, shape (n,), or with m, shape (m, n)."""
        if self.matrix.dtype == np.float64:
            return product(self.matrix.T, vector).T
        result = np.zeros((*vector.shape[1:], self.n))
        if self.matrix.flags.f_contiguous:
            width = max(PIECE // max(self.d, 1), 1)
            for j in range(0, self.n, width):
                part = self.matrix[:, j : j + width].astype(np.float64)
                result[..., j : j + width] = vector.T @ part
        else:
            height = max(PIECE // max(self.n, 1), 1)
            for i in range(0, self.d, height):
                part = self.matrix[i : i + height].astype(np.float64)
                result += vector[i : i + height].T @ part
        return result

    def take(self, rows: NDArray[np.int64]) -> DenseAtoms:
        """Some of the columns."""
        names = None if self.names is None else tuple(self.names[j] for j in rows)
        return DenseAtoms(self.matrix[:, rows], names)

    def space(self) -> DenseSpace:
        """The columns at l1 distance from each other."""
        return DenseSpace(self.matrix.T, self.matrix.size >= COMPILE_FROM)

    def atom(self, j: int, id: int) -> Atom:
        """The j-th column."""
        name = "" if self.names is None else self.names[j]
        return Atom(id, self.d, np.array(self.matrix[:, j]), name=name)

    def batch(self, places: NDArray[np.int64], ids: list[int]) -> AtomBatch:
        """Several columns in one piece."""
        names = None if self.names is None else [self.names[j] for j in places]
        return AtomBatch(ids, self.d, np.ascontiguousarray(self.matrix[:, places].T), names=names)


class SparseAtoms:
    """Columns of a compressed sparse matrix (CSC), with sorted indices of 32 or 64 bits."""

    slopes: Literal[True] = True

    def __init__(self, matrix: sparse.csc_array, names: tuple[str, ...] | None = None) -> None:
        self.matrix = matrix
        self.names = names
        self.d, self.n = matrix.shape

    def scores(self, replica: Replica) -> Floats:
        """The inner product of each column with the gradient, shape (n,)."""
        return self.products(gradient_of(replica))

    def products(self, vector: Floats) -> Floats:
        """The inner product of each column with a vector, shape (n,), or with m, shape (m, n)."""
        if vector.ndim == 1 and self.matrix.dtype == np.float64:
            return dots(self.matrix.data, self.matrix.indices, self.matrix.indptr, vector)
        result: Floats = self.matrix.T @ vector
        return result.T

    def take(self, rows: NDArray[np.int64]) -> SparseAtoms:
        """Some of the columns."""
        names = None if self.names is None else tuple(self.names[j] for j in rows)
        return SparseAtoms(self.matrix[:, rows], names)

    def space(self) -> SparseSpace:
        """The columns at l1 distance from each other."""
        return SparseSpace.of(self.matrix)

    def atom(self, j: int, id: int) -> Atom:
        """The nonzeros of the j-th column."""
        part = slice(self.matrix.indptr[j], self.matrix.indptr[j + 1])
        indices, values = self.matrix.indices[part], self.matrix.data[part]
        if np.count_nonzero(values) < len(values):  # scipy may store zeros; they need not travel
            indices, values = indices[values != 0], values[values != 0]
        name = "" if self.names is None else self.names[j]
        return Atom(id, self.d, np.array(values), np.array(indices), name=name)

    def batch(self, places: NDArray[np.int64], ids: list[int]) -> AtomBatch:
        """The nonzeros of several columns in one piece."""
        parts = self.matrix.data, self.matrix.indices, self.matrix.indptr
        values, indices, starts = some(parts, places)
        if np.count_nonzero(values) < len(values):
            kept = values != 0
            starts = np.concatenate([[0], np.cumsum(kept)])[starts]
            indices, values = indices[kept], values[kept]
        names = None if self.names is None else [self.names[j] for j in places]
        return AtomBatch(ids, self.d, values, indices, starts, names)


ColumnAtoms = DenseAtoms | SparseAtoms | KeptRows


def explicit_atoms(shard: Shard) -> ColumnAtoms:
    """The columns of a node's shard as atoms."""
    is_sparse = sparse.issparse(shard.matrix)
    matrix = shard.matrix.tocsc() if is_sparse else shard.matrix
    columns = (SparseAtoms if is_sparse else DenseAtoms)(matrix, shard.names)
    return columns if shard.kept is None else KeptRows(columns, shard.kept)
