"""What a party has learned of its table, and how that makes numbers of this table and of others.

It is made of texts and numbers alone, so that a model file can hold it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.alignment import check_unique, is_missing, shown
from atomcast.data.matrices import Matrix
from atomcast.data.tables import is_table, numeric_column, table_labels, table_names

Floats = NDArray[np.float64]

#: Below this share of values that are other than zero, a matrix is stored as a sparse one.
SPARSE = 0.25


class Column(NamedTuple):
    """What was learned of one column.

    Attributes
    ----------
    name : str
    values : tuple of str or None
        The values of a category, of which each becomes a column; None for a column of numbers.
    fill : float, str or None
        What stands in for a missing value.
    centre, scale : float
        Numbers become (number - centre) / scale.
    """

    name: str
    values: tuple[str, ...] | None
    fill: float | str | None = None
    centre: float = 0.0
    scale: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called that it becomes."""
        if self.values is None:
            return (self.name,)
        return tuple(f"{self.name}={value}" for value in self.values)

    def description(self) -> str:
        """What is done with it, in words."""
        shown = f"{self.fill:.6g}" if isinstance(self.fill, float) else self.fill
        fill = "" if shown is None else f", missing: {shown}"
        if self.values is None:
            scaled = (self.centre, self.scale) != (0.0, 1.0)
            shift = f"{'+' if self.centre < 0 else '-'} {abs(self.centre):.6g}"
            number = f"(x {shift}) / {self.scale:.6g}" if scaled else "x"
            return number + fill
        return f"0 or 1 for each of {', '.join(self.values)}{fill}"

    def block(self, column: Any, source: str) -> Matrix:
        """The numbers that it becomes, shape (rows, names): sparse if it is a category."""
        if self.values is None:
            numbers = numeric_column(column, self.name, source).astype(np.float64)
            if self.fill is not None:
                numbers[np.isnan(numbers)] = self.fill
            return ((numbers - self.centre) / self.scale)[:, None]
        place: dict[Any, int] = {value: k for k, value in enumerate(self.values)}
        texts = (self.fill if text is None else text for text in texts_in(column))
        codes = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
        rows = np.flatnonzero(codes >= 0)
        shape = (len(codes), len(self.values))
        return sparse.csc_array((np.ones(len(rows)), (rows, codes[rows])), shape=shape)


@dataclass(frozen=True)
class Prepared:
    """What a `Preparation` has learned of the table of a party.

    Parameters
    ----------
    columns : tuple of Column
        In the order of the table.
    prefix : str, default=""
        What stands before the names of the columns of the matrix, but not of the table.
    """

    columns: tuple[Column, ...]
    prefix: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns of the matrix are called."""
        return tuple(self.prefix + name for column in self.columns for name in column.names)

    def learned(self, table: Any, source: str) -> Prepared:
        """Nothing more than what is known, whatever the table."""
        return self

    def matrix(self, table: Any, source: str) -> Matrix:
        """A table with these columns, and perhaps others, as numbers, shape (rows, names)."""
        labels = checked_labels(table, [column.name for column in self.columns], source)
        blocks = [column.block(table[labels[column.name]], source) for column in self.columns]
        if not blocks:
            return np.empty((len(table), 0))
        if len(blocks) < SPARSE * len(self.names):  # of a category, one column in a row is not 0
            return sparse.hstack(blocks, format="csc")
        return np.hstack([b.toarray() if sparse.issparse(b) else b for b in blocks])

    def plain(self) -> list[Any]:
        """All of it as a list that JSON can hold."""
        return [self.prefix, *map(list, self.columns)]

    @staticmethod
    def of(plain: Any) -> Prepared:
        """What was made `plain`, or ValueError."""
        prefix, *columns = plain
        return Prepared(tuple(_column_of(*entry) for entry in columns), str(prefix))


def together(parties: Iterable[Prepared]) -> Prepared:
    """What several parties have learned, for one table that has the columns of all of them."""
    return Prepared(
        tuple(c._replace(name=one.prefix + c.name) for one in parties for c in one.columns)
    )


def described(parties: Iterable[Prepared]) -> list[tuple[str, str]]:
    """The columns of all parties, and what is done with each, in words."""
    return [(p.prefix + column.name, column.description()) for p in parties for column in p.columns]


def texts_in(column: Any) -> list[str | None]:
    """The values of a column as texts, whole numbers without a point; None where one is missing."""
    return [None if is_missing(v) else _text(v) for v in np.asarray(column).tolist()]


def _text(value: Any) -> str:
    # A missing value makes floats of whole numbers, which must not make another category of them.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def checked_labels(table: Any, wanted: Sequence[str], source: str) -> dict[str, Any]:
    """What a table itself calls its columns, or ValueError if it has no names, or lacks some."""
    if not is_table(table):
        raise ValueError(
            f"{source} has no names of columns, which preparing it needs: use a DataFrame, or "
            "a .csv or .parquet file, or leave prepare out"
        )
    check_unique(table_names(table), what=f"{source}: the column name")
    labels = table_labels(table)
    missing = [name for name in wanted if name not in labels]
    if missing:
        raise ValueError(
            f"{source} has no column {shown(missing)}; its columns are {shown(list(labels))}: "
            "correct the names, or the table"
        )
    return labels


def _column_of(name: Any, values: Any, fill: Any, centre: Any, scale: Any) -> Column:
    numbers = [centre, scale] if fill is None or isinstance(fill, str) else [centre, scale, fill]
    texts = [name, *(values or ())]
    if not all(isinstance(n, float | int) and math.isfinite(n) for n in numbers) or not scale:
        raise ValueError(f"the preparation of column {name!r} holds {numbers}: no finite numbers")
    if not all(isinstance(text, str) for text in texts) or isinstance(fill, str) > bool(values):
        raise ValueError(f"the preparation of column {name!r} makes no sense")
    return Column(name, None if values is None else tuple(values), fill, centre, scale)
