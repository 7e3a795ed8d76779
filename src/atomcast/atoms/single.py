"""Products of columns in single precision, and how far they may be off.

Columns that are stored in single precision are multiplied as they are: to widen them first takes
several times as long. What rounding does to the sums follows from the norms of the columns.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._threads import LARGE, ranges, run_all, thread_count

Floats = NDArray[np.float64]

#: So many products are summed in single precision, and these sums in double precision: the fewer,
#: the closer the bounds. Those of a row-major matrix are as quick in small blocks.
OF_ROWS, OF_COLUMNS = 256, 2048
#: So many rows are squared and summed in the precision of the data.
SQUARED = 1 << 16


def single_bounds(matrix: NDArray[np.float32], vector: Floats, norms: Floats) -> tuple[Any, Any]:
    """The product of each column with a vector, and how far it may be off; shape (n,) each.

    The matrix of shape (d, n) is contiguous in one order; norms are no smaller than those of its
    columns.
    """
    d, n = matrix.shape
    size = float(np.linalg.norm(vector))
    if not 1e-150 < size < 1e150:  # squares would be lost
        return np.zeros(n), np.full(n, np.inf)
    short, found = (vector / size).astype(np.float32), np.zeros(n)
    height = OF_ROWS if matrix.flags.c_contiguous else OF_COLUMNS
    parts = ranges(n, thread_count() if 8 * matrix.size >= LARGE else 1)
    with np.errstate(over="ignore", invalid="ignore"):
        run_all([partial(_add, matrix[:, p], short, height, found[p]) for p in parts])
    numbers = np.finfo(np.float32)
    # Each sum, the vector that is rounded, too, and what is too small to be a number.
    share = (min(height, d) + 4) * float(numbers.eps)
    off = size * (share * norms + 2 * d * float(numbers.tiny))
    lost = ~np.isfinite(found)
    if lost.any():
        found[lost], off[lost] = 0.0, np.inf
    found *= size
    return found, off


def _add(matrix: NDArray[Any], vector: NDArray[Any], height: int, to: Floats) -> None:
    """Add the products of columns with a vector, so many rows at a time."""
    for start in range(0, len(matrix), height):
        rows = slice(start, start + height)
        to += vector[rows] @ matrix[rows]


def norm_bounds(matrix: NDArray[Any]) -> Floats:
    """Numbers that are no smaller than the norms of the columns, and larger by rounding alone."""
    squares = np.zeros(matrix.shape[1])
    with np.errstate(over="ignore"):  # an infinite bound is one
        for start in range(0, len(matrix), SQUARED):
            rows = matrix[start : start + SQUARED]
            squares += np.einsum("ij,ij->j", rows, rows)
    return _rounded_up(squares, min(len(matrix), SQUARED), len(matrix), matrix.dtype)


def sparse_norm_bounds(matrix: sparse.csc_array) -> Floats:
    """The same of a compressed sparse matrix."""
    data, starts = matrix.data, matrix.indptr
    squares, step = np.zeros(matrix.shape[1]), max(SQUARED * matrix.shape[1] // (data.size + 1), 1)
    with np.errstate(over="ignore"):
        for j in range(0, matrix.shape[1], step):  # few at a time take little memory
            cuts = starts[j : j + step + 1]
            some = np.append(np.square(data[cuts[0] : cuts[-1]], dtype=np.float64), 0.0)
            sums = np.add.reduceat(some, cuts[:-1] - cuts[0])
            squares[j : j + step] = np.where(np.diff(cuts) > 0, sums, 0.0)
    return _rounded_up(squares, matrix.shape[0], matrix.shape[0], np.dtype(np.float64))


def _rounded_up(squares: Floats, summed: int, terms: int, dtype: np.dtype[Any]) -> Floats:
    """Norms from sums of so many squares, with all that rounding may have taken from them.

    So many were summed in their own precision, and these sums in double precision.
    """
    numbers = np.finfo(dtype)
    share = 2.0 * (summed + 4) * float(numbers.eps)
    return np.sqrt(squares * (1.0 + share) + terms * float(numbers.tiny))
