"""Records as JSON, one file an experiment, so that a page can show what was run at any time."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from atomcast._replacing import replacing
from atomcast.experiments.findings import Finding, Verdict
from atomcast.experiments.record import Record, Table

#: Files of another version are not read.
SCHEMA = 1


@dataclass(frozen=True)
class Kept:
    """A record, and how it came about.

    Parameters
    ----------
    name : str
        Of the experiment, as on the command line.
    command : str
        The command that repeats it.
    made : dict
        When, with which versions, on how many cores: texts by what they are.
    record : Record
    """

    name: str
    command: str
    made: dict[str, str]
    record: Record


def circumstances(seconds: float | None = None) -> dict[str, str]:
    """Date, versions and cores, and how long it took."""
    from atomcast import __version__

    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "atomcast": __version__,
        "NumPy": np.__version__,
        "Python": platform.python_version(),
        "cores": str(len(os.sched_getaffinity(0))),
    }
    return facts if seconds is None else {**facts, "took": f"{seconds:,.0f} s"}


def keep(kept: Kept, out: Path) -> Path:
    """Write NAME.json into a folder; an older one is replaced once the new one is complete."""
    record = kept.record
    content = {
        "schema": SCHEMA,
        "name": kept.name,
        "command": kept.command,
        "made": kept.made,
        "title": record.title,
        "note": record.note,
        "tables": [table._asdict() for table in record.tables],
        "findings": [finding._asdict() for finding in record.findings],
    }
    return replace_text(out / f"{kept.name}.json", json.dumps(content, indent=1) + "\n")


def discard_outdated(name: str, out: Path, began: float) -> None:
    """Remove the record of an earlier run if one that has failed has replaced its numbers."""
    if any(path.stat().st_mtime >= began for path in out.glob(f"{name}*.csv")):
        (out / f"{name}.json").unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> Path:
    """Write a file in one go: whoever reads it sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, encoding="utf-8") as file:
        file.write(text)
    return path


def find(out: Path, names: list[str]) -> list[Kept]:
    """What is kept in a folder of the experiments of these names.

    A file that is not a record, or one of another schema, is named on stderr and left out.
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
    record = Record(_text(content["title"]), _text(content["note"]), tables, findings)
    return Kept(name, _text(content["command"]), made, record)


def _table(content: Any) -> Table:
    header = [_text(cell) for cell in content["header"]]
    rows = [[_text(cell) for cell in row] for row in content["rows"]]
    if any(len(row) != len(header) for row in rows):
        raise ValueError("a table has rows of different lengths")
    return Table(_text(content["title"]), header, rows, [int(j) for j in content["text_columns"]])


def _finding(content: Any) -> Finding:
    texts = {name: _text(content[name]) for name in ("claim", "where", "rule", "measured")}
    return Finding(**texts, verdict=Verdict(content["verdict"]), must=bool(content["must"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} stands where a text is expected")
    return value
