"""What an experiment found: tables and findings, printed at once and kept as JSON for the page."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from atomcast.experiments.page.findings import Finding, print_findings
from atomcast.experiments.page.verdicts import Verdict
from atomcast.experiments.runs.jobs import replace_text
from atomcast.report.printing import print_table

#: Files of another version are not read.
SCHEMA = 1


class PrintedTable(NamedTuple):
    """A table as it is printed: cells are texts, and `text_columns` stand to the left."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Sequence[int] = (0,)


@dataclass(frozen=True)
class Report:
    """What an experiment found."""

    title: str  # begins with the figure or the section of the paper
    note: str  # what was run: data, sizes, number of runs
    tables: Sequence[PrintedTable]
    findings: Sequence[Finding]

    @property
    def holds(self) -> bool:
        """Whether all that must hold, whatever the data, does."""
        return not any(finding.broken for finding in self.findings)

    def printed(self) -> Self:
        """Print it to stdout, and return it."""
        for table in self.tables:
            print_table(table.title, table.header, table.rows, text_columns=table.text_columns)
        print_findings(self.findings)
        return self


@dataclass(frozen=True)
class Kept:
    """A report, and how it came about."""

    name: str  # of the experiment, as on the command line
    command: str  # repeats it
    made: dict[str, str]  # when, with which versions, on how many cores
    report: Report

    @property
    def about(self) -> str:
        """What was run, and whether that is less than it could be."""
        quick = "--quick" in self.command.split()
        return self.report.note + ("; made smaller or shorter by --quick" if quick else "")


def circumstances(seconds: float | None = None) -> dict[str, str]:
    """Date, versions and cores, and how long it took."""
    from atomcast import __version__

    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "atomcast": __version__,
        "NumPy": np.__version__,
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": str(len(os.sched_getaffinity(0))),
    }
    return facts if seconds is None else {**facts, "took": f"{seconds:,.0f} s"}


def keep(kept: Kept, out: Path) -> Path:
    """Write NAME.json into a folder; an older one is replaced once the new one is complete."""
    report = kept.report
    content = {
        "schema": SCHEMA,
        "name": kept.name,
        "command": kept.command,
        "made": kept.made,
        "title": report.title,
        "note": report.note,
        "tables": [table._asdict() for table in report.tables],
        "findings": [finding._asdict() for finding in report.findings],
    }
    return replace_text(out / f"{kept.name}.json", json.dumps(content, indent=1) + "\n")


def discard_outdated(name: str, out: Path, began: float) -> None:
    """Remove the report of an earlier run if one that has failed has replaced its numbers."""
    if any(path.stat().st_mtime >= began for path in out.glob(f"{name}*.csv")):
        (out / f"{name}.json").unlink(missing_ok=True)


def find(out: Path, names: list[str]) -> list[Kept]:
    """What is kept in a folder of the experiments of these names.

    A file that is not a report, or one of another schema, is named on stderr and left out.
    """
    found = []
    for name in names:
        path = out / f"{name}.json"
        try:
            found.append(_read(path, name))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            reason = str(error) or type(error).__name__
            again = f"atomcast reproduce {name} writes it anew"
            line = f"atomcast: warning: {path} is left out of the page: {reason}; {again}"
            print(" ".join(line.split()), file=sys.stderr)
    return found


def _read(path: Path, name: str) -> Kept:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or "schema" not in content:
        raise ValueError("it is not a record of an experiment")
    if content["schema"] != SCHEMA:
        raise ValueError(f"its schema is {content['schema']!r}, and {SCHEMA} is read here")
    missing = {"command", "made", "title", "note", "tables", "findings"} - set(content)
    if missing:
        raise ValueError(f"it has no {', '.join(sorted(missing))}")
    made = {_text(key): _text(value) for key, value in dict(content["made"]).items()}
    tables = [_table(table) for table in content["tables"]]
    findings = [_finding(finding) for finding in content["findings"]]
    report = Report(_text(content["title"]), _text(content["note"]), tables, findings)
    return Kept(name, _text(content["command"]), made, report)


def _table(content: Any) -> PrintedTable:
    header = [_text(cell) for cell in content["header"]]
    rows = [[_text(cell) for cell in row] for row in content["rows"]]
    if any(len(row) != len(header) for row in rows):
        raise ValueError("a table has rows of different lengths")
    return PrintedTable(
        _text(content["title"]), header, rows, [int(j) for j in content["text_columns"]]
    )


def _finding(content: Any) -> Finding:
    texts = {name: _text(content[name]) for name in ("claim", "where", "rule", "measured")}
    return Finding(**texts, verdict=Verdict(content["verdict"]), must=bool(content["must"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} stands where a text is expected")
    return value
