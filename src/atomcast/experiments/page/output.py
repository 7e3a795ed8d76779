"""What experiments leave behind: rows as CSV, pictures as PNG and SVG, tables on the terminal."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from atomcast._replacing import replacing
from atomcast.experiments.page.reports import PrintedTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_rows(rows: Sequence[NamedTuple], path: Path) -> Path:
    """Write rows of one kind as CSV, with a header."""
    with replacing(path, newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        writer.writerows(rows)
    return path


def write_figure(figure: Figure, path: Path) -> list[Path]:
    """Write a picture twice, as PNG and as SVG; `path` has no suffix."""
    metadata: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".png": {}}
    written = [path.with_suffix(suffix) for suffix in metadata]
    for file in written:
        figure.savefig(file, dpi=150, metadata=metadata[file.suffix])
    return written


def shown(value: str | float, form: str = ",.0f") -> str:
    """A number for a table; a dash where there is none."""
    if isinstance(value, str):
        return value
    return format(value, form) if abs(value) < float("inf") else "-"  # also for NaN


#: What stands above a column of a table, where that is not the name of the field.
WORDS = {
    "above": "above the optimum",
    "allowed": "rounds allowed",
    "bound": "bound (values)",
    "break_cauchy_schwarz": "pairs that break Cauchy-Schwarz",
    "break_footnote": "pairs that break the footnote",
    "catches_up": "to half-way of exact (s)",
    "certified": "certified objective",
    "distance": "distance (edges)",
    "formula": "values by formula",
    "hops": "hops in a row",
    "how": "measured by",
    "loss": "probability of loss",
    "ms_a_round": "a round (ms)",
    "nearest_break": "nearest neighbours that do",
    "needed": "atoms to exceed (3d/4)",
    "preparing": "clustering (s)",
    "ratio": "to classic without loss",
    "reached": "to the classic step's end (s)",
    "repair": "repairs, of all values",
    "round": "rounds",
    "support": "atoms with a weight",
    "values": "values sent",
    "work": "own computation (s)",
    "worst": "largest ratio to the footnote",
}


def plain(names: str) -> dict[str, str]:
    """The forms of some columns of whole numbers and texts."""
    return dict.fromkeys(names.split(), "")


class TableForm(NamedTuple):
    """Which fields of rows a table shows, each in its form ("" for whole numbers and texts).

    The title may name the sizes of an experiment and its note; `words` stand above columns instead
    of the usual ones.
    """

    title: str
    forms: Mapping[str, str]
    text_columns: Sequence[int] = (0,)
    words: Mapping[str, str] = {}
    sorted_by: str = ""

    def made(self, rows: Sequence[NamedTuple], **said: Any) -> PrintedTable:
        """The table of some rows."""
        cells = [
            [shown(getattr(row, name), form or ",.0f") for name, form in self.forms.items()]
            for row in (sorted(rows, key=attrgetter(self.sorted_by)) if self.sorted_by else rows)
        ]
        words = {**WORDS, **self.words}
        header = [words.get(name, name) for name in self.forms]
        return PrintedTable(self.title.format(**said), header, cells, self.text_columns)
