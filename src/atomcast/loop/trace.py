"""The trace: one row a round, as columns."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast._replacing import replacing
from atomcast.plots.drawing import plot_trace
from atomcast.plots.page.html_tables import HtmlTable

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

#: Rounds that a notebook shows of the beginning, and of the end.
SHOWN = 5
#: What is told in whole numbers.
COUNTS = ("round", "atoms", "values", "bytes", "unread")


class Row(NamedTuple):
    """What the trace says of a round: its state before the step, and the traffic so far."""

    round: int
    seconds: float
    objective: float
    gap: float
    atoms: int
    values: int
    bytes: int
    #: Simulated time so far, where a network has latencies or nodes take time to compute.
    simulated_seconds: float = 0.0
    #: Atoms of all nodes that were not read in this round: bounds of their scores told enough.
    unread: int = 0


class Trace:
    """How a run went. Columns are NumPy arrays: `trace.gap`, `trace["gap"]`."""

    columns = Row._fields

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        # Eight bytes a number: a run may have a million rounds.
        self._parts: list[array[Any]] = [
            array("q" if name in COUNTS else "d") for name in self.columns
        ]
        for row in rows:
            self.append(row)

    def append(self, row: Row) -> None:
        """Add a round."""
        for part, number in zip(self._parts, row, strict=True):
            part.append(number)

    def __len__(self) -> int:
        return len(self._parts[0])

    def __iter__(self) -> Iterator[Row]:
        return map(Row, *self._parts)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return np.array(self._parts[self.columns.index(column)])

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name in Row._fields:
            return self[name]
        raise AttributeError(name)

    def to_pandas(self) -> pandas.DataFrame:
        """The trace as a DataFrame."""
        from atomcast.data.table_files import load_pandas

        return load_pandas("trace.to_pandas").DataFrame(list(self), columns=list(self.columns))

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the trace to a file, with a header."""
        with replacing(path, newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self)

    def plot(self, x: str = "values", y: str = "gap", ax: Axes | None = None) -> Axes:
        """Draw one column against another, on logarithmic axes; returns the matplotlib axes.

        These are `ax`, or else the current ones of pyplot.
        """
        return plot_trace(self, x=x, y=y, ax=ax)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first and the last rounds."""
        rows = list(self)
        rows = rows if len(rows) <= 2 * SHOWN else [*rows[:SHOWN], *rows[-SHOWN:]]
        return HtmlTable(f"Trace of {len(self):,} rounds", self.columns, rows).html()

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows of {', '.join(self.columns)})"
