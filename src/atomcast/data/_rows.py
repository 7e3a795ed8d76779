"""Some of the rows of shards, as if the others were not there."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from atomcast.data._split import SplitShards
from atomcast.data.matrices import IntArray
from atomcast.data.shards import Shard, Shards


class ShardsOfRows(Shards):
    """A selection of the rows of shards that are not in one piece.

    Nodes that hold columns keep these rows of them; nodes that hold rows keep theirs of these,
    which are numbered anew.
    """

    kind = "files"

    def __init__(self, shards: Shards, rows: IntArray) -> None:
        self._shards = shards
        self._rows = rows

    @property
    def nodes(self) -> int:
        """As many nodes as before."""
        return self._shards.nodes

    @property
    def party_names(self) -> tuple[str, ...] | None:
        """The same parties as before."""
        return self._shards.party_names

    @property
    def shape(self) -> tuple[int, int]:
        """As many columns as before."""
        return len(self._rows), self._shards.shape[1]

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        """The same names as before."""
        return self._shards.column_names(axis)

    def count(self, axis: int = 1) -> int:
        """As many columns as before, or how many rows were selected."""
        return self._shards.count(axis) if axis == 1 else len(self._rows)

    def rows(self, axis: int = 1) -> int:
        """How many rows were selected, or as many columns as before."""
        return len(self._rows) if axis == 1 else self._shards.rows(axis)

    def assignment(self, axis: int = 1) -> IntArray:
        """The same owners as before."""
        owners = self._shards.assignment(axis)
        return owners if axis == 1 else owners[self._rows]

    def shard(self, i: int, axis: int = 1) -> Shard:
        """The selected rows of a node's shard."""
        shard = self._shards.shard(i, axis)
        if axis == 1:
            return dataclasses.replace(shard, matrix=shard.matrix[self._rows])
        place = np.full(self._shards.count(axis), -1)
        place[self._rows] = np.arange(len(self._rows))
        order = np.argsort(place[shard.ids])[np.count_nonzero(place[shard.ids] < 0) :]
        ids = place[shard.ids[order]]
        return dataclasses.replace(shard, matrix=shard.matrix[order], ids=ids, origin=0)


def selected(shards: Shards, key: Any) -> Shards:
    """The same shards with only some of their rows, which an index, a mask or a slice names."""
    rows = key[0] if isinstance(key, tuple) else key
    rows = np.arange(shards.shape[0])[rows]
    if isinstance(shards, SplitShards) and not shards.cuts_rows:
        return shards.with_rows(rows)
    if len(np.unique(rows)) < len(rows):
        raise ValueError("rows of shards can be selected once each: drop those that repeat")
    return ShardsOfRows(shards, rows)


Shards.selected = staticmethod(selected)
