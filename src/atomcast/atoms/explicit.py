"""Atoms that are columns of a matrix, dense or sparse; the matrix is used as it was given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._threads import product
from atomcast.atoms.held import Bounds
from atomcast.atoms.kept_rows import KeptRows
from atomcast.atoms.l1_space import COMPILE_FROM, DenseSpace, SparseSpace
from atomcast.atoms.rounded import RoundedColumns
from atomcast.atoms.single import norm_bounds, single_bounds, sparse_norm_bounds
from atomcast.data.matrices import ready
from atomcast.data.shards import Shard
from atomcast.data.sparse_format import is_sparse
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.sparse_products import dots, some
from atomcast.messages.atom import NO_EXTRAS, Atom, AtomBatch

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: What is read in pieces is read in some of about this many numbers, which stay in cache.
PIECE = 1 << 17
#: Of a row-major matrix, so many columns at a time are widened to double precision.
WIDE = 1 << 12
#: Where a column and all of them have so many numbers, it pays not to read all in every round.
LONG, SOME = 128, 1 << 20
#: Where all of them have so many, to bound scores takes about a quarter of the time that it takes
#: to find them.
MUCH = 1 << 24
#: The copy that is needed for it is made when so many passes and so many numbers more were read: to
#: make it, and to load what makes it, takes about as long as that.
PASSES, START = 3, 1 << 30
#: Beyond this share of the columns, it is quicker to read all: of a matrix in row order, and else.
VAIN_ROWS, VAIN = 0.1, 0.3
#: What it takes of a pass to bound scores from a byte an entry, or in single precision.
BYTE, SINGLE = 0.25, 0.4
#: Bounds that were vain so often are no longer looked for.
TRIALS = 3
#: A sparse column of fewer values takes no longer to read than to think about.
THICK = 64


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
        self._norms: Floats | None = None
        real = matrix.dtype in (np.float64, np.float32)
        self.large = real and self.d >= LONG and matrix.size >= SOME
        self.vain = VAIN if matrix.flags.f_contiguous else VAIN_ROWS
        # To widen columns takes longer than to read them: that pays for more of them alone.
        self._single = bool(matrix.dtype == np.float32 and matrix.flags.forc)
        self.vain *= 2 if self._single else 1
        self.pace, self._trials = SINGLE if self._single else 1.0, TRIALS
        self._unread = PASSES * matrix.size + START if matrix.size >= MUCH else math.inf

    def scores(self, replica: Replica) -> Floats:
        """The inner product of each column with the gradient, shape (n,)."""
        return self.products(gradient_of(replica))

    def bounds(self, replica: Replica) -> Bounds | None:
        """Scores and how far each may be off; None before a copy pays, and where none does."""
        gradient = gradient_of(replica)
        self._unread -= self.matrix.size
        if self._unread <= 0.0:
            if self._rounded is None:
                self._rounded, self.pace = RoundedColumns(self.matrix), BYTE
            return Bounds(*self._rounded.bounds(gradient))
        if self._single:
            return Bounds(*single_bounds(self.matrix, gradient, self.lengths()), unread=False)
        return None

    def give_up(self) -> None:
        """Hear that bounds were vain; if that was so often, look for no more."""
        self._trials -= 1
        if not self._trials:
            self._single, self._rounded, self._unread, self.pace = False, None, math.inf, 1.0

    def read(self, replica: Replica, columns: NDArray[np.int64]) -> Floats:
        """The scores of some columns, shape (k,)."""
        gradient, rows = gradient_of(replica), self.matrix.T
        if not self.matrix.flags.f_contiguous:
            return DenseAtoms(rows[columns].T).products(gradient)
        step, found = max(PIECE // max(self.d, 1), 1), np.empty(len(columns))
        for k in range(0, len(columns), step):
            found[k : k + step] = rows.take(columns[k : k + step], axis=0) @ gradient
        return found

    def lengths(self, columns: NDArray[np.int64] | None = None) -> Floats:
        """Numbers that are no smaller than the norms of all columns, or of some."""
        if columns is not None:
            return norm_bounds(self.matrix[:, columns])
        if self._norms is None:
            self._norms = norm_bounds(self.matrix)
        return self._norms

    def products(self, vector: Floats) -> Floats:
        """The inner product of each column with a vector, shape (n,), or with m, shape (m, n)."""
        if self.matrix.dtype == np.float64:
            return product(self.matrix.T, vector).T
        result = np.zeros((*vector.shape[1:], self.n))
        by_columns = self.matrix.flags.f_contiguous
        width = max(PIECE // max(self.d, 1), 1) if by_columns else WIDE
        height = self.d if by_columns else max(PIECE // min(max(self.n, 1), WIDE), 1)
        for i in range(0, self.d, max(height, 1)):
            rows = slice(i, i + height)
            for j in range(0, self.n, width):
                part = self.matrix[rows, j : j + width].astype(np.float64)
                result[..., j : j + width] += vector[rows].T @ part
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
        return Atom(id, self.d, np.array(self.matrix[:, j]), None, NO_EXTRAS, name)

    def batch(self, places: NDArray[np.int64], ids: list[int]) -> AtomBatch:
        """Several columns in one piece."""
        names = None if self.names is None else [self.names[j] for j in places]
        return AtomBatch(ids, self.d, np.ascontiguousarray(self.matrix[:, places].T), names=names)


class SparseAtoms:
    """Columns of a compressed sparse matrix (CSC), with sorted indices of 32 or 64 bits.

    Those of all columns may fall instead: only atoms that are handed out are turned round.
    """

    slopes: Literal[True] = True

    def __init__(
        self,
        matrix: sparse.csc_array,
        names: tuple[str, ...] | None = None,
        falls: bool = False,
    ) -> None:
        self.matrix = matrix
        self.names = names
        self.falls = falls
        self.d, self.n = matrix.shape
        self.large = matrix.nnz >= max(SOME, THICK * self.n)
        self.vain, self.pace = VAIN, 1.0

    def scores(self, replica: Replica) -> Floats:
        """The inner product of each column with the gradient, shape (n,)."""
        return self.products(gradient_of(replica))

    def bounds(self, replica: Replica) -> None:
        """There is no rough copy of them."""

    def give_up(self) -> None:
        """There is nothing to give up."""

    def read(self, replica: Replica, columns: NDArray[np.int64]) -> Floats:
        """The scores of some columns, shape (k,)."""
        return SparseAtoms(self.matrix[:, columns]).products(gradient_of(replica))

    def lengths(self, columns: NDArray[np.int64] | None = None) -> Floats:
        """Numbers that are no smaller than the norms of all columns, or of some."""
        matrix = self.matrix if columns is None else self.matrix[:, columns]
        return sparse_norm_bounds(matrix)

    def products(self, vector: Floats) -> Floats:
        """The inner product of each column with a vector, shape (n,), or with m, shape (m, n)."""
        if vector.ndim == 1 and self.matrix.dtype == np.float64:
            return dots(self.matrix.data, self.matrix.indices, self.matrix.indptr, vector)
        result: Floats = self.matrix.T @ vector
        return result.T

    def take(self, rows: NDArray[np.int64]) -> SparseAtoms:
        """Some of the columns."""
        names = None if self.names is None else tuple(self.names[j] for j in rows)
        return SparseAtoms(self.matrix[:, rows], names, self.falls)

    def space(self) -> SparseSpace:
        """The columns at l1 distance from each other."""
        return SparseSpace.of(ready(self.matrix))

    def atom(self, j: int, id: int) -> Atom:
        """The nonzeros of the j-th column."""
        part = slice(self.matrix.indptr[j], self.matrix.indptr[j + 1])
        indices, values = self.matrix.indices[part], self.matrix.data[part]
        if self.falls:
            indices, values = indices[::-1], values[::-1]
        if np.count_nonzero(values) < len(values):  # scipy may store zeros; they need not travel
            indices, values = indices[values != 0], values[values != 0]
        name = "" if self.names is None else self.names[j]
        return Atom(id, self.d, np.array(values), np.array(indices), name=name)

    def batch(self, places: NDArray[np.int64], ids: list[int]) -> AtomBatch:
        """The nonzeros of several columns in one piece."""
        parts = self.matrix.data, self.matrix.indices, self.matrix.indptr
        if self.falls:  # the last comes first, and is turned round with all others
            values, indices, starts = some(parts, places[::-1].copy())
            values, indices = values[::-1].copy(), indices[::-1].copy()
            starts = len(values) - starts[::-1]
        else:
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
    in_columns = is_sparse(shard.matrix)
    matrix = shard.matrix.tocsc() if in_columns else shard.matrix
    columns: DenseAtoms | SparseAtoms
    if in_columns:
        columns = SparseAtoms(matrix, shard.names, shard.falls)
    else:
        columns = DenseAtoms(matrix, shard.names)
    return columns if shard.kept is None else KeptRows(columns, shard.kept)
