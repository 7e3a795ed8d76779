"""What experiments leave behind, looked at by tests."""

from __future__ import annotations

import csv
from pathlib import Path


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check_pictures(folder: Path, name: str) -> None:
    """Check that a figure was written in both formats."""
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / f"{name}.svg").read_text()
