"""What a file says it unfolds to, beside what it holds: a few bytes must not ask for gigabytes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: What any file may unfold to, in bytes.
ALWAYS = 1 << 30
#: How many bytes a byte of a larger file may unfold to: numbers that are mostly zero come to 100.
RATIO = 200
#: What a row or a column takes in a fit even if nothing is stored in it, in bytes.
LINE = 64

_DEFLATE = 1032  # no byte of gzip unfolds to more
_CHUNK = 1 << 20


def check_promise(promised: int, path: Path, what: str) -> None:
    """Raise ValueError if a file promises more bytes than what it holds makes believable."""
    held = os.stat(path).st_size
    if promised > max(ALWAYS, RATIO * held):
        raise ValueError(
            f"{what} would take {promised / 2**30:,.1f} GiB, but the file has {held:,} bytes: "
            f"it is damaged or made to exhaust memory (more than {ALWAYS >> 30} GiB, and more than "
            f"{RATIO} bytes from one); if it is right, store it unpacked, for instance as .npy"
        )


def check_shape(shape: Sequence[int], path: Path) -> None:
    """Raise ValueError if a file promises more rows or columns than it can have."""
    if min(shape, default=0) < 0:
        raise ValueError(
            f"its shape is {tuple(shape)}, but no number of rows or columns is below 0"
        )
    check_promise(LINE * max(shape, default=0), path, f"a matrix of shape {tuple(shape)}")


def text_vector(texts: Sequence[str]) -> NDArray[np.str_]:
    """Texts as an array, in which each takes as much memory as the longest.

    Raises
    ------
    ValueError
        If a few long ones among many short ones would take far more than all of them together.
    """
    longest, together = max(map(len, texts), default=0), sum(map(len, texts))
    if 4 * longest * len(texts) > max(ALWAYS, RATIO * together):
        raise ValueError(f"one of {len(texts):,} texts has {longest:,} characters: shorten it")
    return np.array(texts, dtype=np.str_)


def check_gzip(path: Path) -> None:
    """Raise ValueError if a .gz file unfolds to more than is believable."""
    about = os.stat(path)
    if _DEFLATE * about.st_size > ALWAYS:
        check_promise(_unpacked(path, about.st_size, about.st_mtime_ns), path, "unpacked, it")


@lru_cache(maxsize=64)
def _unpacked(path: Path, size: int, changed: int) -> int:
    """How many bytes come out, as far as it matters; a file that has changed is read again."""
    total = 0
    with gzip.open(path) as file:
        while total <= max(ALWAYS, RATIO * size) and (chunk := file.read(_CHUNK)):
            total += len(chunk)
    return total
