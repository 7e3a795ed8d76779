"""Shards in a folder: how data goes to other processes of this machine, without pickling.

Every shard is a folder of .npy files, which its owner maps into memory, and a JSON text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.matrices import IntArray
from atomcast.data.shards import Shard, Shards

#: Files below this size are read, not mapped: mapping an empty one would fail.
MAP_FROM = 1 << 16


def store(shards: Shards, axis: int, folder: Path) -> None:
    """Write all shards, cut for atoms along `axis`, into a folder."""
    for i in range(shards.nodes):
        shard = shards.shard(i, axis)
        place = folder / str(i)
        place.mkdir()
        matrix = shard.matrix
        if sparse.issparse(matrix):
            form = matrix.format
            for name in ("data", "indices", "indptr"):
                np.save(place / f"{name}.npy", getattr(matrix, name))
        else:
            form = "dense"
            np.save(place / "dense.npy", matrix)
        np.save(place / "ids.npy", shard.ids)
        about = {
            "form": form,
            "shape": matrix.shape,
            "names": shard.names,
            "source": shard.source,
            "row_digest": shard.row_digest,
            "origin": shard.origin,
        }
        (place / "about.json").write_text(json.dumps(about), encoding="utf-8")
    names = shards.column_names(axis)
    whole = {"nodes": shards.nodes, "axis": axis, "count": shards.count(axis), "names": names}
    whole["parties"] = shards.party_names
    (folder / "shards.json").write_text(json.dumps(whole), encoding="utf-8")


class StoredShards(Shards):
    """Shards that `store` wrote."""

    kind = "split"  # cut by one process, which knows them all: ids are global already

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._whole: dict[str, Any] = json.loads((folder / "shards.json").read_bytes())

    @property
    def nodes(self) -> int:
        """How many shards were written."""
        return int(self._whole["nodes"])

    @property
    def party_names(self) -> tuple[str, ...] | None:
        """The names of the nodes, if they have any."""
        names = self._whole["parties"]
        return None if names is None else tuple(names)

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        """The names of all columns."""
        names = self._whole["names"]
        return None if names is None else tuple(names)

    def count(self, axis: int = 1) -> int:
        """How many atoms all shards have."""
        self._check_axis(axis)
        return int(self._whole["count"])

    def rows(self, axis: int = 1) -> int:
        """How long an atom is."""
        self._check_axis(axis)
        return int(self._about(0)["shape"][1 - axis])

    def assignment(self, axis: int = 1) -> IntArray:
        """The shard that holds each atom."""
        owners = np.empty(self.count(axis), dtype=np.int64)
        for i in range(self.nodes):
            owners[_load(self._folder / str(i) / "ids.npy")] = i
        return owners

    def shard(self, i: int, axis: int = 1) -> Shard:
        """One shard, mapped into memory."""
        self._check_node(i)
        self._check_axis(axis)
        place, about = self._folder / str(i), self._about(i)
        if about["form"] == "dense":
            matrix = _load(place / "dense.npy")
        else:
            parts = tuple(_load(place / f"{name}.npy") for name in ("data", "indices", "indptr"))
            make = {"csc": sparse.csc_array, "csr": sparse.csr_array}[about["form"]]
            matrix = make(parts, shape=tuple(about["shape"]), copy=False)
        names = None if about["names"] is None else tuple(about["names"])
        ids = np.array(_load(place / "ids.npy"))
        return Shard(
            matrix, ids, names, about["source"], about["row_digest"], origin=about["origin"]
        )

    def _about(self, i: int) -> dict[str, Any]:
        return json.loads((self._folder / str(i) / "about.json").read_bytes())

    def _check_axis(self, axis: int) -> None:
        if axis != self._whole["axis"]:
            raise ValueError(f"these shards were cut along axis {self._whole['axis']}, not {axis}")


def _load(path: Path) -> NDArray[Any]:
    small = path.stat().st_size < MAP_FROM
    return np.load(path, mmap_mode=None if small else "r", allow_pickle=False)
