"""What kinds of shards share: nodes that hold a block of the atoms each, matrices in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from atomcast.data.matrices import IntArray, Matrix, as_matrix, check_axis
from atomcast.data.prepared import Prepared
from atomcast.data.preparing import Preparing, for_each_party
from atomcast.data.shards import Shards
from atomcast.data.sparse_format import check_sparse
from atomcast.data.tables import is_table, table_names, table_to_matrix


class BlockShards(Shards):
    """Shards whose atoms are numbered node by node."""

    @abstractmethod
    def _bounds(self, axis: int) -> IntArray:
        """Where the atoms of each node begin and end, shape (nodes + 1,)."""

    def count(self, axis: int = 1) -> int:
        return int(self._bounds(axis)[-1])

    def assignment(self, axis: int = 1) -> IntArray:
        return np.repeat(np.arange(self.nodes), np.diff(self._bounds(axis)))


class MatrixShards(BlockShards):
    """Shards of a matrix that is in this process."""

    def __init__(
        self, X: Any, names: Iterable[str] | None, parameter: str, prepare: Preparing | None = None
    ) -> None:
        self._prepared: tuple[Prepared, ...] | None = None
        for how in (prepare and for_each_party(prepare, [parameter])) or ():
            self._prepared = (how.learned(X, parameter),)
            X, names = self._prepared[0].matrix(X, parameter), self._prepared[0].names
        check_sparse(X, parameter=parameter)
        if is_table(X):
            names = table_names(X) if names is None else names
            X = table_to_matrix(X, source=parameter)
        self._matrix: Matrix = as_matrix(X, parameter=parameter)
        self._names = None if names is None else _checked_names(names, self._matrix.shape[1])

    @property
    def prepared(self) -> tuple[Prepared, ...] | None:
        return self._prepared

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        check_axis(axis)
        return self._names

    def count(self, axis: int = 1) -> int:
        check_axis(axis)
        return int(self._matrix.shape[axis])

    def rows(self, axis: int = 1) -> int:
        check_axis(axis)
        return int(self._matrix.shape[1 - axis])


def _checked_names(names: Iterable[str], columns: int) -> tuple[str, ...]:
    """Return names as a tuple of str, refusing a number of names other than `columns`."""
    if isinstance(names, str):
        raise TypeError(f"names={names!r} is one text, but one name per column is needed: a list")
    result = tuple(str(name) for name in names)
    if len(result) != columns:
        raise ValueError(
            f"names has {len(result)} entries, but X has {columns} columns: give one name each"
        )
    return result


def contiguous_bounds(sizes: Sequence[int] | IntArray) -> IntArray:
    """Return where blocks of these sizes begin and end, shape (len(sizes) + 1,)."""
    return np.concatenate(([0], np.cumsum(np.asarray(sizes, dtype=np.int64))))


def joined_names(parts: Sequence[Sequence[str] | None], axis: int) -> tuple[str, ...] | None:
    """Return the names of all columns, from those of each node's; None if some have none."""
    if axis == 0:  # then all nodes have the same columns
        parts = parts[:1]
    known = [part for part in parts if part is not None]
    return tuple(chain.from_iterable(known)) if len(known) == len(parts) else None
