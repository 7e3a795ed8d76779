"""Checks of parameters that several modules share: the error names parameter, value and remedy."""

from __future__ import annotations

import math
from numbers import Integral, Real
from pathlib import Path
from typing import Any


def check_positive(name: str, value: Any, meaning: str) -> float:
    """Return `value` as a float if it is a finite number above zero, else raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number > 0 ({meaning}), got {value!r}")
    return float(value)


def check_count(name: str, value: Any, meaning: str, minimum: int = 1) -> int:
    """Return `value` as an int if it is a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
        raise ValueError(f"{name} must be a whole number >= {minimum} ({meaning}), got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, else raise a ValueError that lists them."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
    return value


def check_folder(name: str, path: Path) -> None:
    """Raise OSError unless a file can be made beside `path`: better before the work than after."""
    import tempfile

    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {folder}: create it first")
    try:
        tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.", suffix=".part").close()
    except OSError as error:
        raise OSError(
            f"{name}: nothing can be written to the folder {folder} ({error.strerror}): "
            "give a path in another one, or make this one writable"
        ) from error
