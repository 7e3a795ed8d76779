"""The claims of the paper and their verdicts as a Markdown table, written into a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from atomcast.experiments.page import reports
from atomcast.experiments.page.reports import Kept
from atomcast.experiments.runs.jobs import replace_text

#: What the table stands between in a page.
BEGIN, END = "<!-- claims: begin -->", "<!-- claims: end -->"


def table(kept: Sequence[Kept]) -> str:
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


def in_order(folder: Path, names: Iterable[str]) -> list[Kept]:
    """What is kept in a folder, in the order of the paper."""
    return sorted(reports.find(folder, list(names)), key=lambda one: one.report.title)


def write_into(page: Path, kept: Sequence[Kept]) -> Path:
    """Write the table into a page, between the two marks that it has."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the claims: put {BEGIN} and {END} into it")
    return replace_text(page, f"{before}{BEGIN}\n{table(kept)}\n{END}{after}")


def _cell(text: str) -> str:
    """Text that is neither markup nor the end of a cell."""
    return " ".join(escape(text, quote=False).replace("|", "\\|").split())
