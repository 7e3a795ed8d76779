"""Claims with verdicts, and the tables of experiments, written into a Markdown page.

The page has places for them: `<!-- claims: begin -->` and `<!-- claims: end -->`, and the same with
the name of an experiment for its tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from atomcast.experiments.page import reports
from atomcast.experiments.page.reports import Kept, PrintedTable
from atomcast.experiments.runs.jobs import replace_text


def in_order(folder: Path, names: Iterable[str]) -> list[Kept]:
    """What is kept in a folder, in the order of the paper."""
    return sorted(reports.find(folder, list(names)), key=lambda one: one.report.title)


def write_into(page: Path, kept: Sequence[Kept]) -> Path:
    """Fill the places of a page, of which there must be one for the claims."""
    text = page.read_text(encoding="utf-8")
    if not re.search(_place("claims"), text, re.DOTALL):
        begin, end = _marks("claims")
        raise ValueError(f"{page} has no place for the claims: put {begin} and {end} into it")
    return replace_text(page, filled(text, kept))


def filled(text: str, kept: Sequence[Kept]) -> str:
    """A page with all that is known in its places."""
    parts = {"claims": claims(kept), **{one.name: tables(one) for one in kept}}
    for name, part in parts.items():
        begin, end = _marks(name)
        new = f"{begin}\n{part}\n{end}".replace("\\", r"\\")
        text = re.sub(_place(name), new, text, flags=re.DOTALL)
    return text


def claims(kept: Sequence[Kept]) -> str:
    """All statements with their verdicts, and how each experiment was run."""
    lines = ["| the paper says | where | measured | verdict |", "|---|---|---|---|"]
    for one in kept:
        lines.append(f"| **{_cell(one.report.title)}** | | {_cell(one.about)} | |")
        for found in one.report.findings:
            cells = (found.claim, found.where, found.measured, f"**{found.verdict}**")
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
    lines += ["", "Run r has seed r. Again, and with what it was made:", ""]
    for one in kept:
        made = ", ".join(f"{name} {value}" for name, value in one.made.items())
        lines.append(f"- `{one.command}` ({_cell(made)})")
    return "\n".join(lines)


def tables(one: Kept) -> str:
    """The tables of an experiment."""
    return "\n\n".join(_table(table) for table in one.report.tables)


def _table(table: PrintedTable) -> str:
    texts = set(table.text_columns)
    rule = "|".join("---" if j in texts else "---:" for j in range(len(table.header)))
    rows = [f"| {' | '.join(map(_cell, row))} |" for row in (table.header, *table.rows)]
    return "\n".join([f"*{_cell(table.title)}*", "", rows[0], f"|{rule}|", *rows[1:]])


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def _place(name: str) -> str:
    begin, end = map(re.escape, _marks(name))
    return f"{begin}.*?{end}"


def _cell(text: str) -> str:
    """Text that is neither markup nor the end of a cell."""
    return " ".join(escape(text, quote=False).replace("|", "\\|").split())
