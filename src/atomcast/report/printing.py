"""Tables on a terminal, plain text elsewhere, and JSON for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from atomcast._checks import visible

Rows = Sequence[Sequence[str]]


def print_table(
    title: str, header: Sequence[str] | None, rows: Rows, *, text_columns: Sequence[int] = (0,)
) -> None:
    """Print a table to stdout.

    Parameters
    ----------
    title : str
    header : sequence of str or None
    rows : sequence of rows
        Control characters, which a name in a file might contain, are made visible.
    text_columns : sequence of int
        Columns that stand to the left; the others are numbers and stand to the right.
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(visible(title), header, rows, text_columns)
    else:
        _print_plain(visible(title), header, rows, text_columns)


def _print_rich(
    title: str, header: Sequence[str] | None, rows: Rows, text_columns: Sequence[int]
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        show_header=header is not None,
        box=box.SIMPLE_HEAD if header is not None else None,
        padding=(0, 1),
    )
    width = len(rows[0]) if rows else len(header or ())
    for j in range(width):
        left = j in text_columns
        table.add_column(
            Text(header[j]) if header is not None else "",
            justify="left" if left else "right",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console()
    console.print(Text(title, style="bold"))
    console.print(table)
    if header is None:
        console.print()


def _print_plain(
    title: str, header: Sequence[str] | None, rows: Rows, text_columns: Sequence[int]
) -> None:
    lines = [*([header] if header is not None else []), *rows]
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))] if lines else []
    print(title)
    for line in lines:
        cells = [
            cell.ljust(width) if j in text_columns else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print(("  " + "  ".join(cells)).rstrip())
    print()


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that are not finite become null."""
    print(json.dumps(_strict(value), indent=2, ensure_ascii=False, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return value
