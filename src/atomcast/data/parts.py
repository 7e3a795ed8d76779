"""What a reader returns: a part of the data, or a description of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from atomcast.data.matrices import Matrix
from atomcast.data.prepared import Prepared

DEFAULT_ROW_IDS = "row_id"
"""Column taken as row ids when the user names none."""


@dataclass(frozen=True, eq=False)
class Part:
    """The content of one file.

    Attributes
    ----------
    matrix : ndarray, memory-map or scipy sparse of shape (rows, columns)
        A DataFrame if a table was to be read as it is.
    names : tuple of str or None
        Names of the columns, if the file has them.
    row_ids : array of shape (rows,) or None
        Ids of the rows, if the file has them.
    """

    matrix: Matrix
    names: tuple[str, ...] | None = None
    row_ids: NDArray[Any] | None = None


@dataclass(frozen=True)
class PartInfo:
    """What is known of a file: its shape, its names, and how its party prepares it, if at all."""

    rows: int
    columns: int
    names: tuple[str, ...] | None = None
    prepared: Prepared | None = None


class ReadOptions(NamedTuple):
    """What a user may say about files; see `Shards.files`.

    A raw table is one as it is, for its party to prepare.
    """

    row_ids: str | None = None
    n_features: int | None = None
    raw: bool = False


@dataclass(frozen=True)
class Format:
    """How to read one kind of file.

    Parameters
    ----------
    title : str
    read : callable
        All of a file.
    row_ids : callable, optional
        The row ids alone; None where a format has no place for them.
    describe : callable, optional
        What can be known without the values; None where it takes the whole file, or costs nothing.
    """

    title: str
    read: Callable[[Path, ReadOptions], Part]
    row_ids: Callable[[Path, ReadOptions], NDArray[Any] | None] | None = None
    describe: Callable[[Path, ReadOptions], PartInfo] | None = None
