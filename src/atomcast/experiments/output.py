"""What experiments leave behind: rows as CSV, pictures as PNG and SVG."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from atomcast._replacing import replacing

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
