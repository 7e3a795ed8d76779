"""The rows of files: which they are, whether they agree, and how they come into one order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._checks import check_choice
from atomcast.data.alignment import checked_ids
from atomcast.data.joining import Alignment, check_same_ids, inner_join
from atomcast.data.matrices import Matrix
from atomcast.data.parts import DEFAULT_ROW_IDS, Part
from atomcast.data.readers import read_row_ids
from atomcast.data.vectors import Vector, read_vector_with_ids


class FileRows:
    """The rows of the files of `Shards.files`, and of a target.

    Parameters
    ----------
    paths : sequence of Path
    sources : sequence of str
        How messages call each file.
    row_ids, align, target
        As `Shards.files` has them.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        sources: Sequence[str],
        row_ids: str | None,
        align: str | None,
        target: Any,
    ) -> None:
        self._paths = paths
        self._sources = sources
        self._row_ids = row_ids
        self.column = row_ids or DEFAULT_ROW_IDS
        self.align = None if align is None else check_choice("align", align, ("inner",))
        self._given = target

    def take(self, alignment: Alignment | None) -> None:
        """Use an alignment that was found before."""
        self.align = None if alignment is None else "inner"
        self.__dict__["alignment"] = alignment  # where the cached property looks first

    @cached_property
    def alignment(self) -> Alignment | None:
        """The order of the parts and, last, of the target; None if none is wanted.

        Finding it reads the row ids of all files, and warns of rows that have to be dropped.
        """
        if self.align is None:
            return None
        sources = list(self._sources)
        ids = [self._ids_to_align_by(i) for i in range(len(sources))]
        if self._vector is not None:
            sources.append("the target")
            ids.append(self._known(self._vector.row_ids, "the target"))
        return inner_join(ids, sources)

    @cached_property
    def target(self) -> NDArray[Any] | None:
        """The target, in the order of the rows."""
        if self._vector is None:
            return None
        values, ids = self._vector
        if self.alignment is not None:
            aligned: NDArray[Any] = values[self.alignment.orders[-1]]
            return aligned
        reference = None if ids is None else self._reference(len(ids))
        if ids is not None and reference is not None:
            check_same_ids(ids, "the target", *reference)
        return values

    def labels(self, axis: int = 1) -> NDArray[Any] | None:
        """The ids of all rows; where files hold examples of their own, one file after the other."""
        if self.alignment is not None:
            return self.alignment.ids
        everything = (self._read(i) for i in range(len(self._paths)))
        known = (ids for ids in everything if ids is not None)
        if axis == 1:
            return next(known, None)
        parts = list(known)
        return np.concatenate(parts) if len(parts) == len(self._paths) else None

    def check(self) -> None:
        """Raise ValueError, naming the file, unless all have the same rows in the same order."""
        if self.alignment is not None:
            return
        reference: tuple[NDArray[Any], str] | None = None
        for i, source in enumerate(self._sources):
            ids = self._read(i)
            if ids is not None:
                reference = reference or (ids, source)
                check_same_ids(ids, source, *reference)

    def in_order(self, i: int, part: Part) -> tuple[Matrix, NDArray[Any] | None]:
        """The matrix and the row ids of a part, aligned if that is wanted."""
        if self.alignment is None:
            return part.matrix, part.row_ids
        ids, order = self.alignment.ids, self.alignment.orders[i]
        own = checked_ids(self._known(part.row_ids, self._sources[i]), self._sources[i])
        if ids.dtype.kind == "U":
            own = own.astype(np.str_)
        if order.max(initial=-1) >= len(own) or not np.array_equal(own[order], ids):
            raise ValueError(
                f"{self._sources[i]} now holds other rows than when these Shards first looked: do "
                "not change files during a run, or make new Shards"
            )
        return ordered(part.matrix, order), ids

    def _read(self, i: int) -> NDArray[Any] | None:
        return read_row_ids(self._paths[i], row_ids=self._row_ids)

    def _ids_to_align_by(self, i: int) -> NDArray[Any]:
        if not os.access(self._paths[i], os.R_OK):
            raise FileNotFoundError(
                f"{self._paths[i]} cannot be read here: check its name and folder; align="
                f"{self.align!r} needs the row ids of all parts where the program runs"
            )
        return self._known(self._read(i), self._sources[i])

    def _known(self, ids: NDArray[Any] | None, source: str) -> NDArray[Any]:
        """Row ids that an alignment cannot do without."""
        if ids is None:
            more = "" if self._row_ids else ", or name one by row_ids (--row-ids)"
            raise ValueError(
                f"{source} has no row ids to align by: it needs a column {self.column!r}{more}"
            )
        return np.asarray(ids)

    def _reference(self, rows: int) -> tuple[NDArray[Any], str] | None:
        """The ids that a target of so many rows must have, and whose they are."""
        first = self.labels()
        if first is not None and len(first) != rows:  # are they of examples, some in each file?
            everything = self.labels(axis=0)
            if everything is not None and len(everything) == rows:
                return everything, "the parts, one after the other"
        return None if first is None else (first, "the parts")

    @cached_property
    def _vector(self) -> Vector | None:
        given = self._given
        if given is None:
            return None
        if isinstance(given, str | os.PathLike):
            return read_vector_with_ids(given, row_ids=self._row_ids)
        labels = getattr(given, "index", None)  # of a pandas Series; of a list, it is a method
        known = labels is not None and not callable(labels)
        return Vector(np.asarray(given), np.asarray(labels) if known else None)


def ordered(matrix: Matrix, order: NDArray[np.int64]) -> Matrix:
    """The rows of a matrix in an order, uncopied if it is theirs already."""
    if np.array_equal(order, np.arange(matrix.shape[0])):
        return matrix
    return (matrix.tocsr() if sparse.issparse(matrix) else matrix)[order]
