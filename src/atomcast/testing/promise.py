"""Promises: what a suite holds a part to."""

from __future__ import annotations

from typing import Any

import numpy as np


def promise(kept: Any, sentence: str) -> None:
    """Raise AssertionError with the sentence unless it is kept; also under `python -O`."""
    if not bool(kept):
        raise AssertionError(sentence)


def equal(found: Any, expected: Any, sentence: str, rtol: float = 1e-7, atol: float = 0.0) -> None:
    """Raise AssertionError unless two arrays have one shape and, to rounding, the same values."""
    one, other = np.asarray(found), np.asarray(expected)
    same = one.shape == other.shape and np.allclose(one, other, rtol, atol)
    promise(same, f"{sentence}: found {found!r}, expected {expected!r}")
