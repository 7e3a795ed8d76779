"""`Shards.mine`: the share of this process, in a job where every process has its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from atomcast.data.alignment import checked_ids, row_digest
from atomcast.data.matrices import IntArray, Matrix, as_matrix, check_axis, oriented, ready
from atomcast.data.party_names import checked_party_names
from atomcast.data.shards import Shard, Shards, checked_names
from atomcast.data.tables import is_table, table_names, table_to_matrix


class LocalShards(Shards):
    """The one shard of this process; made by `Shards.mine`."""

    kind = "mine"

    def __init__(
        self,
        X_local: Any,
        *,
        names: Iterable[str] | None = None,
        row_ids: Iterable[Any] | None = None,
        party_name: str | None = None,
    ) -> None:
        if is_table(X_local):
            names = table_names(X_local) if names is None else names
            X_local = table_to_matrix(X_local, source="X_local")
        self._local: Matrix = as_matrix(X_local, parameter="X_local")
        self._names = None if names is None else checked_names(names, self._local.shape[1])
        self._party = None if party_name is None else checked_party_names([party_name], 1)
        self._digest = None if row_ids is None else self._checked_digest(row_ids)

    def __repr__(self) -> str:
        rows, columns = self._local.shape
        return f"Shards.mine(X_local of {rows} x {columns})"

    @property
    def nodes(self) -> int:
        return 1

    @property
    def party_names(self) -> tuple[str, ...] | None:
        return self._party

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        check_axis(axis)
        return self._names

    def count(self, axis: int = 1) -> int:
        check_axis(axis)
        return int(self._local.shape[axis])

    def rows(self, axis: int = 1) -> int:
        check_axis(axis)
        return int(self._local.shape[1 - axis])

    def assignment(self, axis: int = 1) -> IntArray:
        return np.zeros(self.count(axis), dtype=np.int64)

    def shard(self, i: int = 0, axis: int = 1) -> Shard:
        self._check_node(i)
        ids = np.arange(self.count(axis), dtype=np.int64)
        names = self._names if axis == 1 else None
        matrix = ready(oriented(self._local, axis))
        return Shard(matrix, ids, names, "the shard of this process", self._digest)

    def _checked_digest(self, row_ids: Iterable[Any]) -> str:
        if isinstance(row_ids, str):
            raise TypeError(
                f"row_ids={row_ids!r} is one text, but one id per row is needed: "
                "give the ids themselves, e.g. row_ids=frame.pop('row_id')"
            )
        ids = np.asarray(list(row_ids))
        if len(ids) != self._local.shape[0]:
            raise ValueError(
                f"row_ids has {len(ids)} entries, but X_local has {self._local.shape[0]} rows: "
                "give one id per row"
            )
        return row_digest(checked_ids(ids, "row_ids"))
