"""Where tests find the real data sets; tests that need one skip, saying why, if it is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[1]


def root() -> Path:
    """Return the folder of the data sets: ATOMCAST_DATA, else a folder beside the repository."""
    chosen = os.environ.get("ATOMCAST_DATA")
    return Path(chosen).expanduser() if chosen else _REPOSITORY.parent / "shared" / "data"


def folder(name: str) -> Path:
    """Return the folder of one data set, e.g. "dorothea", or skip the test that asks."""
    found = root() / name
    if not found.is_dir():
        pytest.skip(
            f"the data set {name!r} is not in {root()}; set ATOMCAST_DATA to have it tested"
        )
    return found


def use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `atomcast.data.load_...` find one data set, or skip the test that asks."""
    monkeypatch.setenv("ATOMCAST_DATA", str(folder(name).parent))
