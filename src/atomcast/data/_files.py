"""`Shards.files`: one file per node, read by the node that owns it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.data._blocks import BlockShards, contiguous_bounds, joined_names
from atomcast.data.alignment import check_same_length, check_unique_across, row_digest
from atomcast.data.file_rows import FileRows
from atomcast.data.joining import Alignment
from atomcast.data.matrices import IntArray, check_axis, oriented, ready
from atomcast.data.parts import Part, PartInfo, ReadOptions
from atomcast.data.party_names import checked_party_names, checked_prefixes, names_of_files
from atomcast.data.prepared import Prepared, together
from atomcast.data.preparing import Preparing, for_each_party
from atomcast.data.readers import describe, read_part
from atomcast.data.shards import Shard, Shards


class FileShards(BlockShards):
    """Let every node read a file of its own; ids count through the files in their order.

    Parameters
    ----------
    paths : iterable of path, one per node, or dict of name to path
        The nodes have these names in accounts and pictures; default: what the files are
        called, without suffix.
        .npy (memory-mapped), .npz (dense or scipy sparse), .parquet, .csv, .csv.gz, or
        svmlight (.svm, .svmlight, .libsvm, .txt, also .gz).
    row_ids : str, optional
        Column that holds row ids; default: "row_id" where it exists. It is no feature; it
        serves to check that all parts describe the same rows in the same order.
    n_features : int, optional
        Number of columns of svmlight files, which do not say it themselves.
    align : {"inner"}, optional
        Put all parts, and the target, into one order by their row ids, that of the first
        part. Rows that are not in all of them are dropped, with a warning;
        `alignment.dropped` has their ids. By default other rows are an error.
    target : path, "file.csv:column" or pandas Series, optional
        The target, checked or aligned by its row ids (the index of a Series). It is then
        there as the attribute `target`: `Lasso(1.0).fit(shards, shards.target)`.
    prefix : bool or sequence of str, default=False
        Put the party's name (the file's without its suffix, or those given, one for each
        file) and a dot before the names of its columns, which may then be the same in
        several files.
    prepare : Preparation, dict of name to Preparation or list, optional
        How each party makes numbers of its table (.csv or .parquet). A dict: those that it does not
        name only make 0/1 columns of texts. A list: the `preparation_` of a fitted model.
    """

    kind = "files"

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]],
        *,
        row_ids: str | None = None,
        n_features: int | None = None,
        align: str | None = None,
        target: Any = None,
        prefix: bool | Sequence[str] = False,
        prepare: Preparing | None = None,
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
        self._prefixes = checked_prefixes(prefix, self._party_names)
        self._prepare = for_each_party(prepare, self._party_names)
        sources = [self.source(i) for i in range(self.nodes)]
        self._rows = FileRows(self._paths, sources, row_ids, align, target)

    def __repr__(self) -> str:
        return f"Shards.files({[path.name for path in self._paths]})"

    @property
    def nodes(self) -> int:
        return len(self._paths)

    @property
    def party_names(self) -> tuple[str, ...]:
        return self._party_names

    @property
    def shape(self) -> tuple[int, int]:
        """Files have columns of the same rows, unless heights or names say otherwise."""
        heights = {info.rows for info in self.infos}
        names = {info.names for info in self.infos}
        rows_apart = len(heights) > 1 or (self.nodes > 1 and len(names) == 1 and None not in names)
        return (self.count(0), self.rows(0)) if rows_apart else (self.rows(), self.count())

    def only(self, i: int) -> FileShards:
        """Return the file of one node alone, so that no other file need be within reach."""
        self._check_node(i)
        own = self.arguments()
        own["paths"] = {self._party_names[i]: own["paths"][self._party_names[i]]}
        own["prefix"] = self._prefixes and self._prefixes[i : i + 1]
        own["prepare"] = self._prepare and self._prepare[i : i + 1]
        own["alignment"] = None if self.alignment is None else self.alignment.only(i)
        return FileShards.again(**own)

    def within_reach(self) -> bool:
        """Return whether this process can read all files."""
        return all(os.access(path, os.R_OK) for path in self._paths)

    def with_infos(self, infos: Iterable[PartInfo]) -> FileShards:
        """Return the same shards with what others have found in the files, one info for each."""
        same = FileShards.again(**self.arguments())
        same.__dict__["infos"] = list(infos)  # where the cached property looks first
        return same

    def arguments(self) -> dict[str, Any]:
        """Return what `again` must be given to make these shards elsewhere, as plain data.

        The order of the rows is handed on as it is, so that nobody has to find it again; the
        target stays here.
        """
        return {
            "paths": dict(zip(self._party_names, map(str, self._paths), strict=True)),
            "row_ids": self._row_ids,
            "n_features": self._n_features,
            "prefix": self._prefixes,
            "prepare": self._prepare,
            "alignment": self.alignment,
        }

    @classmethod
    def again(
        cls, *, alignment: Alignment | None = None, prefix: Any, **options: Any
    ) -> FileShards:
        """Return the shards that have these `arguments`."""
        shards = cls(prefix=prefix or False, **options)
        shards._rows.take(alignment)
        return shards

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        self._check_axis(axis)
        return joined_names([info.names for info in self.infos], axis)

    def rows(self, axis: int = 1) -> int:
        self._check_axis(axis)
        return _shape(self.infos[0])[1 - axis]

    def shard(self, i: int, axis: int = 1) -> Shard:
        self._check_node(i)
        start, stop = (int(bound) for bound in self._bounds(axis)[i : i + 2])
        part = self._part(i)
        if part.matrix.shape[axis] != stop - start:
            raise ValueError(
                f"{self.source(i)} now holds {part.matrix.shape[axis]} atoms, but {stop - start} "
                "when these Shards first looked: do not change files during a run, or make new "
                "Shards"
            )
        matrix, row_ids = self._rows.in_order(i, part)
        names = self.infos[i].names
        return Shard(
            matrix=ready(oriented(matrix, axis)),
            ids=np.arange(start, stop, dtype=np.int64),
            names=names if axis == 1 else None,
            source=self.source(i),
            row_digest=None if row_ids is None else row_digest(row_ids),
            origin=start,
            entry_names=names if axis == 0 else None,
        )

    @property
    def alignment(self) -> Alignment | None:
        """How the parts, and the target, were put into one order of rows; None without `align`."""
        return self._rows.alignment

    @property
    def target(self) -> NDArray[Any] | None:
        """The target in the order of the rows, shape (rows,); None if none was given."""
        return self._rows.target

    def row_labels(self, name: Any, axis: int = 1) -> NDArray[Any] | None:
        self._check_axis(axis)
        if name != self._rows.column or not self.within_reach():
            return None
        return self._rows.labels(axis)

    def validate(self, axis: int = 1) -> None:
        self._check_axis(axis)
        sources = [self.source(i) for i in range(self.nodes)]
        check_same_length([_shape(info)[1 - axis] for info in self.infos], sources, axis=axis)
        self._check_names(axis, sources)
        if axis == 1:
            self._rows.check()

    def _check_names(self, axis: int, sources: list[str]) -> None:
        known = [
            (info.names, source)
            for info, source in zip(self.infos, sources, strict=True)
            if info.names is not None
        ]
        if axis == 1:
            check_unique_across(known)
            return
        for names, source in known:
            for j, (name, expected) in enumerate(zip(names, known[0][0], strict=True)):
                if name != expected:
                    raise ValueError(
                        f"{source}: column {j} is named {name!r}, but {expected!r} in "
                        f"{known[0][1]}: all parts need the same columns in the same order"
                    )

    def _prefixed(self, i: int, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if self._prefixes is None or names is None:
            return names
        return tuple(f"{self._prefixes[i]}.{name}" for name in names)

    @cached_property
    def infos(self) -> list[PartInfo]:
        """What is in each file, or is left of it; found by looking at all of them."""
        rows = None if self.alignment is None else len(self.alignment.ids)
        infos = [self._info(i) for i in range(self.nodes)]
        return infos if rows is None else [dataclasses.replace(info, rows=rows) for info in infos]

    def _info(self, i: int) -> PartInfo:
        if self._prepare is None:
            info = describe(self._paths[i], row_ids=self._row_ids, n_features=self._n_features)
            return dataclasses.replace(info, names=self._prefixed(i, info.names))
        table = self._read(i).matrix
        prepared = self._prepare[i].learned(table, self.source(i))
        if self._prefixes is not None:
            prepared = dataclasses.replace(prepared, prefix=f"{self._prefixes[i]}.")
        return PartInfo(len(table), len(prepared.names), prepared.names, prepared)

    def _part(self, i: int) -> Part:
        """What is in the file of a party, as numbers."""
        part, prepared = self._read(i), self.infos[i].prepared
        if prepared is None:
            return part
        return dataclasses.replace(part, matrix=prepared.matrix(part.matrix, self.source(i)))

    def _read(self, i: int) -> Part:
        how = ReadOptions(self._row_ids, self._n_features, raw=self._prepare is not None)
        return read_part(self._paths[i], **how._asdict())

    @property
    def prepared(self) -> tuple[Prepared, ...] | None:
        known = tuple(info.prepared for info in self.infos if info.prepared is not None)
        return None if self._prepare is None else known

    def prepared_as(self, prepared: tuple[Prepared, ...]) -> FileShards:
        if self._prepare is not None and self.prepared == prepared:
            return self
        how = [together(prepared)] if self.nodes == 1 else list(prepared)
        return FileShards.again(**{**self.arguments(), "prefix": None, "prepare": how})

    def _bounds(self, axis: int) -> IntArray:
        self._check_axis(axis)
        return contiguous_bounds([_shape(info)[axis] for info in self.infos])

    def _check_axis(self, axis: int) -> None:
        check_axis(axis)
        of_columns = {"align": self._rows.align, "prefix": self._prefixes, "prepare": self._prepare}
        for name, given in of_columns.items():
            if axis == 0 and given is not None:
                raise ValueError(
                    f"{name} is for files that hold columns of the same rows, but here each file "
                    f"holds rows of its own, with the same columns: leave {name} out"
                )

    def _held(self, i: int) -> str:
        if "infos" not in self.__dict__:
            return self._paths[i].name
        rows, columns = _shape(self.infos[i])
        return f"{self._paths[i].name}: {rows:,} rows, {columns:,} columns"

    def source(self, i: int) -> str:
        """Return how messages call the shard of node `i`."""
        return f"shard {i} ({self._paths[i].name})"


def _shape(info: PartInfo) -> tuple[int, int]:
    return info.rows, info.columns


Shards.files = FileShards
