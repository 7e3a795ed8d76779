"""Points: rows of a dense array or of a CSR matrix, and the log of those that were broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.sparse_format import is_sparse
from atomcast.known.columns import LARGE, grown
from atomcast.messages.atom import Atom, AtomBatch

#: So many values are moved at a time.
MOVED = 1 << 20
#: Points as rows: a dense array or a CSR matrix of shape (n, d).
Points: TypeAlias = Any


def dense_rows(points: Points) -> NDArray[np.float64]:
    """The points as a dense array in double precision."""
    if is_sparse(points):
        points = points.toarray()
    return np.asarray(points, dtype=np.float64)


def is_binary(points: Points) -> bool:
    """Whether every value is zero or one."""
    values = points.data if is_sparse(points) else points
    flat = values.reshape(-1) if values.ndim > 1 and values.flags.c_contiguous else values
    if flat.ndim == 1 and len(flat) > 4096 and not _all_bits(flat[:4096]):
        return False  # as the first few mostly settle
    return _all_bits(flat)


def _all_bits(values: NDArray[Any]) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def moved_to_front(points: Points, rows: NDArray[np.int64]) -> Points:
    """Some of the points, each once, in this order; dense ones in the memory that they are in.

    What was in it is lost. Where few are chosen they are copied, so that the rest can be freed.
    """
    count = len(rows)
    if is_sparse(points) or 2 * count < len(points):
        return points[rows]
    width = max(MOVED // max(count, 1), 1)
    for start in range(0, points.shape[1], width):
        part = slice(start, start + width)
        points[:count, part] = points[rows, part]
    return points[:count]


class PointLog:
    """The points received so far, in order of arrival; dense unless all of them came sparse.

    Appending never copies what is there, except when a buffer has to grow.
    """

    def __init__(self) -> None:
        self.count = 0
        self._dense: NDArray[Any] | None = None
        self._d = 0
        self._data: NDArray[np.float64] = np.empty(256)
        self._indices: NDArray[Any] = np.empty(256, dtype=np.int32)
        self._starts: NDArray[np.int64] = np.zeros(17, dtype=np.int64)
        self._view: sparse.csr_array | None = None

    def append(self, atoms: Sequence[Atom]) -> None:
        """Add the points of newly received atoms."""
        self._d = atoms[0].d
        batch = atoms if type(atoms) is AtomBatch else None
        parts = atoms if batch is None else [batch]
        if self._dense is None and all(part.indices is not None for part in parts):
            self._append_sparse(atoms)
        elif batch is not None and batch.indices is None:
            self._append_dense(batch.values)
        else:
            self._append_dense([_values(atom) for atom in atoms])
        self.count += len(atoms)

    def _append_sparse(self, atoms: Sequence[Atom]) -> None:
        used = int(self._starts[self.count])
        if type(atoms) is AtomBatch:
            assert atoms.starts is not None
            values, indices, ends = atoms.values, np.asarray(atoms.indices), atoms.starts[1:]
        else:
            values = np.concatenate([atom.values for atom in atoms])
            indices = np.concatenate([np.asarray(atom.indices) for atom in atoms])
            ends = np.cumsum([atom.values.size for atom in atoms])
        stop = used + len(values)
        if indices.dtype.itemsize > self._indices.dtype.itemsize:
            self._indices = self._indices.astype(indices.dtype)
        self._data = grown(self._data, used, stop)
        self._indices = grown(self._indices, used, stop)
        self._starts = grown(self._starts, self.count + 1, self.count + 1 + len(atoms))
        self._data[used:stop] = values
        self._indices[used:stop] = indices
        self._starts[self.count + 1 : self.count + 1 + len(atoms)] = used + ends
        self._view = None

    def _append_dense(self, rows: NDArray[Any] | list[NDArray[Any]]) -> None:
        if self._dense is None:
            kinds = {rows.dtype} if isinstance(rows, np.ndarray) else {row.dtype for row in rows}
            nothing = np.empty((0, self._d), np.result_type(*kinds))
            self._dense = dense_rows(self._joined()) if self.count else nothing
        self._make_room(self.count + len(rows))
        if isinstance(rows, np.ndarray):
            self._dense[self.count : self.count + len(rows)] = rows
            return
        for k, row in enumerate(rows, self.count):  # a block of them would be one copy more
            self._dense[k] = row

    def _make_room(self, needed: int) -> None:
        """Let the buffer grow where it is, if nobody looks at it: a copy takes as much again."""
        assert self._dense is not None
        if needed * self._d < LARGE:
            self._dense = grown(self._dense, self.count, needed)
        elif needed > len(self._dense):
            room = max(needed, len(self._dense) + len(self._dense) // 8)
            try:
                self._dense.resize((room, self._d))
            except ValueError:  # somebody does
                self._dense = grown(self._dense, self.count, needed)

    def _joined(self) -> sparse.csr_array:
        if self._view is None:
            stop = self._starts[self.count]
            starts = self._starts[: self.count + 1].astype(self._indices.dtype)
            parts = self._data[:stop], self._indices[:stop], starts
            self._view = sparse.csr_array(parts, shape=(self.count, self._d), copy=False)
        return self._view

    @property
    def points(self) -> Points:
        """All points received, shape (count, d)."""
        return self._joined() if self._dense is None else self._dense[: self.count]


def _values(atom: Atom) -> NDArray[Any]:
    return atom.dense() if atom.is_sparse else atom.values
