"""What an experiment found: tables and findings, printed at once and kept for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from atomcast.experiments.findings import Finding, print_findings
from atomcast.report.tables import print_table


class Table(NamedTuple):
    """A table as it was printed: cells are texts, and `text_columns` stand to the left."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Sequence[int] = (0,)

    def printed(self) -> Self:
        """Print it to stdout, and return it."""
        print_table(self.title, self.header, self.rows, text_columns=self.text_columns)
        return self


@dataclass(frozen=True)
class Record:
    """What an experiment found.

    Parameters
    ----------
    title : str
        Begins with the figure or the section of the paper.
    note : str
        What was run: data, sizes, number of runs.
    tables : sequence of Table
    findings : sequence of Finding
    """

    title: str
    note: str
    tables: Sequence[Table]
    findings: Sequence[Finding]

    @property
    def holds(self) -> bool:
        """Whether all that must hold, whatever the data, does."""
        return not any(finding.broken for finding in self.findings)

    def printed(self) -> Self:
        """Print the findings (tables are printed as they are made), and return the record."""
        print_findings(self.findings)
        return self
