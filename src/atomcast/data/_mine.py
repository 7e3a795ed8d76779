"""`Shards.mine`: the share of this process, in a job where every process has its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from atomcast.data._blocks import MatrixShards, contiguous_bounds
from atomcast.data.alignment import checked_ids, row_digest
from atomcast.data.matrices import IntArray, oriented, ready
from atomcast.data.party_names import checked_party_names
from atomcast.data.preparing import Preparing
from atomcast.data.shards import Shard, Shards


class LocalShards(MatrixShards):
    """Say that this matrix is the share of this process in an MPI job.

    Parameters
    ----------
    X_local : array-like, scipy sparse or DataFrame of shape (rows, columns)
        This process's own atoms. The cluster numbers them after those of the lower ranks.
    names : iterable of str, optional
        Names of the columns; default: the columns of a DataFrame, else none.
    row_ids : iterable of int or str, optional
        Ids of the rows, of which a hash is compared between the processes.
    party_name : str, optional
        What accounts call this process, if all processes have a name; default: its rank.
    prepare : Preparation, optional
        How this process makes numbers of its DataFrame.
    """

    kind = "mine"

    def __init__(
        self,
        X_local: Any,
        *,
        names: Iterable[str] | None = None,
        row_ids: Iterable[Any] | None = None,
        party_name: str | None = None,
        prepare: Preparing | None = None,
    ) -> None:
        super().__init__(X_local, names, "X_local", prepare)
        self._party = None if party_name is None else checked_party_names([party_name], 1)
        self._digest = None if row_ids is None else self._checked_digest(row_ids)

    def __repr__(self) -> str:
        rows, columns = self._matrix.shape
        return f"Shards.mine(X_local of {rows} x {columns})"

    @property
    def nodes(self) -> int:
        return 1

    @property
    def party_names(self) -> tuple[str, ...] | None:
        return self._party

    def _held(self, i: int) -> str:
        return f"{self.rows():,} rows, {self.count():,} columns"

    def _bounds(self, axis: int) -> IntArray:
        return contiguous_bounds([self.count(axis)])

    def shard(self, i: int = 0, axis: int = 1) -> Shard:
        self._check_node(i)
        ids = np.arange(self.count(axis), dtype=np.int64)
        names = self._names if axis == 1 else None
        matrix = ready(oriented(self._matrix, axis))
        return Shard(matrix, ids, names, "the shard of this process", self._digest)

    def _checked_digest(self, row_ids: Iterable[Any]) -> str:
        if isinstance(row_ids, str):
            raise TypeError(
                f"row_ids={row_ids!r} is one text, but one id per row is needed: "
                "give the ids themselves, e.g. row_ids=frame.pop('row_id')"
            )
        ids = np.asarray(list(row_ids))
        if len(ids) != self._matrix.shape[0]:
            raise ValueError(
                f"row_ids has {len(ids)} entries, but X_local has {self._matrix.shape[0]} rows: "
                "give one id per row"
            )
        return row_digest(checked_ids(ids, "row_ids"))


Shards.mine = LocalShards
