"""Columns of which only some rows count, as in a fold of a cross-validation: nothing is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom, AtomBatch

if TYPE_CHECKING:
    from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: Rows of dense columns that are in so many pieces are looked at piece by piece.
PIECES = 8


class KeptRows:
    """Some rows of columns, as atoms.

    Of dense columns whose rows are in few pieces, as those of consecutive folds are, no other rows
    are read. Else products are with a vector that is zero in all others.

    Parameters
    ----------
    columns : DenseAtoms or SparseAtoms
        With all rows.
    rows : array of shape (d,)
        Which of them count, rising.
    """

    slopes: Literal[True] = True

    def __init__(self, columns: DenseAtoms | SparseAtoms, rows: NDArray[np.int64]) -> None:
        self.columns, self.rows = columns, rows
        self.d, self.n = len(rows), columns.n
        cuts = np.flatnonzero(np.diff(rows) > 1) + 1
        self._pieces: list[tuple[slice, DenseAtoms]] | None = None
        if isinstance(columns.matrix, np.ndarray) and len(cuts) < PIECES:
            make: Any = type(columns)
            bounds = zip([0, *cuts.tolist()], [*cuts.tolist(), self.d], strict=True)
            self._pieces = [
                (slice(i, j), make(columns.matrix[rows[i] : rows[j - 1] + 1])) for i, j in bounds
            ]

    def scores(self, replica: Replica) -> Floats:
        """The inner product of each column with the gradient, shape (n,)."""
        active = replica.active
        assert isinstance(active, ExplicitActiveSet)
        return self.products(active.gradient)

    def products(self, vector: Floats) -> Floats:
        """The inner product of each column with a vector, shape (n,), or with m, shape (m, n)."""
        if self._pieces is not None:
            return np.sum([piece.products(vector[part]) for part, piece in self._pieces], axis=0)
        whole = np.zeros((self.columns.d, *vector.shape[1:]))
        whole[self.rows] = vector
        return self.columns.products(whole)

    def take(self, rows: NDArray[np.int64]) -> KeptRows:
        """Some of the columns."""
        return KeptRows(self.columns.take(rows), self.rows)

    def space(self) -> Any:
        """The columns at l1 distance from each other."""
        return type(self.columns)(self.columns.matrix[self.rows]).space()

    def atom(self, j: int, id: int) -> Atom:
        """The rows that count of the j-th column."""
        whole = self.columns.atom(j, id)
        if whole.indices is None:
            return Atom(id, self.d, whole.values[self.rows], name=whole.name)
        places, counts = self._places(whole.indices)
        return Atom(id, self.d, whole.values[counts], places[counts], name=whole.name)

    def batch(self, places: NDArray[np.int64], ids: list[int]) -> AtomBatch:
        """The same of several columns in one piece."""
        whole = self.columns.batch(places, ids)
        if whole.indices is None or whole.starts is None:
            return AtomBatch(ids, self.d, whole.values.take(self.rows, axis=1), names=whole.names)
        at, counts = self._places(whole.indices)
        starts = np.concatenate([[0], np.cumsum(counts)])[whole.starts]
        return AtomBatch(ids, self.d, whole.values[counts], at[counts], starts, whole.names)

    def _places(self, indices: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Where some of all rows stand among those that count, and whether they do."""
        at = np.minimum(np.searchsorted(self.rows, indices), self.d - 1)
        return at.astype(indices.dtype), self.rows[at] == indices
