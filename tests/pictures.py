"""What experiments leave behind, looked at by tests."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check_pictures(folder: Path, name: str) -> None:
    """Check that a figure was written in both formats."""
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / f"{name}.svg").read_text()


def check_legible(figure: Figure) -> None:
    """Check that panels of a drawn figure have at most six labels, and legends beside them."""
    for ax in figure.axes:
        assert len(ax.get_legend_handles_labels()[1]) <= 6
        assert not re.search(r"\b(?<!\\)(s_alpha|alpha|beta|rho)\b", ax.get_title())
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes)]
    for legend in filter(None, legends):
        box = legend.get_window_extent()
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(ax.get_window_extent()) for ax in figure.axes)
