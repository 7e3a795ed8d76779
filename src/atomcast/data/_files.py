"""`Shards.files`: one file per node, read by the node that owns it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.data.alignment import (
    check_same_length,
    check_unique,
    explain_difference,
    misaligned,
    row_digest,
)
from atomcast.data.matrices import IntArray, check_axis, oriented, ready
from atomcast.data.parts import PartInfo
from atomcast.data.party_names import checked_party_names, names_of_files
from atomcast.data.readers import describe, read_part, read_row_ids
from atomcast.data.shards import Shard, Shards, contiguous_bounds


class FileShards(Shards):
    """Shards that are files; made by `Shards.files`."""

    kind = "files"

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]],
        *,
        row_ids: str | None = None,
        n_features: int | None = None,
    ) -> None:
        if isinstance(paths, str | os.PathLike):
            raise TypeError(
                f"paths={os.fspath(paths)!r} is one path, but a list with one file per node is "
                f"needed: [{os.fspath(paths)!r}] for one node, sorted(glob(...)) for many"
            )
        # Absolute, because a worker process may run in another folder.
        places = paths.values() if isinstance(paths, Mapping) else paths
        self._paths = [Path(path).expanduser().absolute() for path in places]
        if not self._paths:
            raise ValueError("paths is empty: give at least one file, one per node")
        self._party_names = (
            checked_party_names(paths, self.nodes)
            if isinstance(paths, Mapping)
            else names_of_files(self._paths)
        )
        self._row_ids = row_ids
        self._n_features = n_features

    def __repr__(self) -> str:
        return f"Shards.files({[path.name for path in self._paths]})"

    @property
    def nodes(self) -> int:
        return len(self._paths)

    @property
    def party_names(self) -> tuple[str, ...]:
        return self._party_names

    def only(self, i: int) -> FileShards:
        """Return the file of one node alone, so that no other file need be within reach."""
        self._check_node(i)
        own = {self._party_names[i]: self._paths[i]}
        return FileShards(own, row_ids=self._row_ids, n_features=self._n_features)

    def within_reach(self) -> bool:
        """Return whether this process can read all files."""
        return all(os.access(path, os.R_OK) for path in self._paths)

    def with_infos(self, infos: Iterable[PartInfo]) -> FileShards:
        """Return the same shards with what others have found in the files, one info for each."""
        same = FileShards(**self.arguments())
        same.__dict__["infos"] = list(infos)  # where the cached property looks first
        return same

    def arguments(self) -> dict[str, Any]:
        """Return what `Shards.files` must be given to make these shards again, as plain data."""
        paths = dict(zip(self._party_names, map(str, self._paths), strict=True))
        return {"paths": paths, "row_ids": self._row_ids, "n_features": self._n_features}

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        check_axis(axis)
        names = [info.names for info in self.infos]
        if axis == 0:
            return names[0]
        known = [part for part in names if part is not None]
        if len(known) < len(names):
            return None
        return tuple(name for part in known for name in part)

    def count(self, axis: int = 1) -> int:
        return int(self._bounds(axis)[-1])

    def rows(self, axis: int = 1) -> int:
        check_axis(axis)
        return _shape(self.infos[0])[1 - axis]

    def assignment(self, axis: int = 1) -> IntArray:
        return np.repeat(np.arange(self.nodes), np.diff(self._bounds(axis)))

    def shard(self, i: int, axis: int = 1) -> Shard:
        self._check_node(i)
        start, stop = (int(bound) for bound in self._bounds(axis)[i : i + 2])
        part = read_part(self._paths[i], row_ids=self._row_ids, n_features=self._n_features)
        if part.matrix.shape[axis] != stop - start:
            raise ValueError(
                f"{self.source(i)} now holds {part.matrix.shape[axis]} atoms, but {stop - start} "
                "when these Shards first looked: do not change files during a run, or make new "
                "Shards"
            )
        return Shard(
            matrix=ready(oriented(part.matrix, axis)),
            ids=np.arange(start, stop, dtype=np.int64),
            names=part.names if axis == 1 else None,
            source=self.source(i),
            row_digest=None if part.row_ids is None else row_digest(part.row_ids),
            origin=start,
        )

    def validate(self, axis: int = 1) -> None:
        check_axis(axis)
        sources = [self.source(i) for i in range(self.nodes)]
        check_same_length([_shape(info)[1 - axis] for info in self.infos], sources, axis=axis)
        self._check_names(axis, sources)
        if axis == 1:
            self._check_row_ids(sources)

    def _check_names(self, axis: int, sources: list[str]) -> None:
        known = [
            (info.names, source)
            for info, source in zip(self.infos, sources, strict=True)
            if info.names is not None
        ]
        if axis == 1:
            _check_unique_across(known)
            return
        for names, source in known:
            for j, (name, expected) in enumerate(zip(names, known[0][0], strict=True)):
                if name != expected:
                    raise ValueError(
                        f"{source}: column {j} is named {name!r}, but {expected!r} in "
                        f"{known[0][1]}: all parts need the same columns in the same order"
                    )

    def _check_row_ids(self, sources: list[str]) -> None:
        reference: tuple[str, NDArray[Any], str] | None = None
        for path, source in zip(self._paths, sources, strict=True):
            ids = read_row_ids(path, row_ids=self._row_ids)
            if ids is None:
                continue
            digest = row_digest(ids)
            if reference is None:
                reference = digest, ids, source
            elif digest != reference[0]:
                difference = explain_difference(ids, reference[1])
                raise ValueError(misaligned(source, reference[2], difference))

    @cached_property
    def infos(self) -> list[PartInfo]:
        """What is in each file; found by looking at all of them."""
        return [
            describe(path, row_ids=self._row_ids, n_features=self._n_features)
            for path in self._paths
        ]

    def _bounds(self, axis: int) -> IntArray:
        check_axis(axis)
        return contiguous_bounds([_shape(info)[axis] for info in self.infos])

    def source(self, i: int) -> str:
        """Return how messages call the shard of node `i`."""
        return f"shard {i} ({self._paths[i].name})"


def _check_unique_across(known: list[tuple[tuple[str, ...], str]]) -> None:
    """Raise ValueError, naming both shards, if a column name occurs twice."""
    holder: dict[str, str] = {}
    for names, source in known:
        check_unique(names, what=f"{source}: the column name")
        for name in names:
            if name in holder:
                raise ValueError(
                    f"the column name {name!r} occurs in {holder[name]} and in {source}: names "
                    "must be unique over all shards; rename one of the two columns or drop it"
                )
            holder[name] = source


def _shape(info: PartInfo) -> tuple[int, int]:
    return info.rows, info.columns
