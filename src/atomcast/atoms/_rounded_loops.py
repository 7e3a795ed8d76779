"""The numba loops behind rounded columns. Imported only where there is much to read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

uint64: Any = uint64_type
#: Sums may be reordered and maxima taken as if there were no NaN, which vectorises both.
FAST = {"reassoc", "contract", "nsz", "nnan"}
#: The largest number that stands for an entry.
LARGEST = 127.0
#: Smaller units than this are none.
SMALLEST = 1e-300


@njit(cache=True, nogil=True)
def transpose(block: Any, rows: Any) -> None:  # pragma: no cover - compiled
    """Write the columns of a block, shape (d, w), as rows; several times faster than NumPy does."""
    for i in range(uint64(block.shape[0])):
        for j in range(uint64(block.shape[1])):
            rows[j, i] = block[i, j]


@njit(cache=True, nogil=True, fastmath=FAST)
def round_rows(
    rows: Any, whole: Any, unit: Any, lost: Any, kept: Any
) -> None:  # pragma: no cover - compiled
    """Round each row to multiples of a unit of its own.

    Parameters
    ----------
    rows : array of shape (n, d)
    whole : int8 array of shape (n, d)
        How many units each entry has.
    unit, lost, kept : arrays of shape (n,)
        The unit of each row, the norm of what rounding takes from it, and that of what it leaves.
    """
    for j in range(uint64(len(rows))):
        row, to = rows[j], whole[j]
        top = row.dtype.type(0)
        for i in range(uint64(len(row))):
            top = max(top, abs(row[i]))
        step = np.float64(top) / LARGEST
        if step < SMALLEST:  # what cannot be divided by is all lost
            to[:], unit[j], lost[j], kept[j] = 0, 0.0, top * math.sqrt(len(row)), 0.0
            continue
        inverse = 1.0 / step
        gone = left = 0.0  # in units, so that no square is too small
        for i in range(uint64(len(row))):
            exact = np.float64(row[i]) * inverse
            near = np.rint(exact)
            to[i] = np.int8(np.int32(near))
            gone += (exact - near) * (exact - near)
            left += near * near
        unit[j], lost[j], kept[j] = step, step * math.sqrt(gone), step * math.sqrt(left)


@njit(cache=True, nogil=True, fastmath=FAST)
def products(whole: Any, vector: Any, out: Any) -> None:  # pragma: no cover - compiled
    """The product of each row with a vector, in single precision."""
    for j in range(uint64(len(whole))):
        row, total = whole[j], np.float32(0.0)
        for i in range(uint64(len(row))):
            total += np.float32(row[i]) * vector[i]
        out[j] = total
