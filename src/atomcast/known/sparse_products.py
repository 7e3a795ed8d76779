"""Products of compressed sparse columns with a vector, or with each other, without matrix objects.

SciPy's own loops do the work. Called through its matrices, they take longer to reach than to run
on the few columns that most rounds are about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

try:
    from scipy.sparse._sparsetools import (
        csc_matvec,
        csr_matmat,
        csr_matvec,
        csr_tocsc,
        csr_todense,
    )
except ImportError:  # they are not part of what SciPy promises
    csc_matvec = csr_matvec = csr_matmat = None

Floats = NDArray[np.float64]
#: The values of some columns, the rows that they stand in, and where each column begins.
Parts = tuple[Floats, NDArray[Any], NDArray[Any]]

#: Up to so many products of columns have room for all of them, though most may be zero.
ROOM = 1 << 22


def dots(values: Floats, rows: NDArray[Any], starts: NDArray[Any], vector: Floats) -> Floats:
    """The inner product of every column with a vector of length d, shape (k,).

    Column j has the values from starts[j] to starts[j + 1], in these rows; rows and starts are of
    one type, and the vector is contiguous.
    """
    k, d = len(starts) - 1, len(vector)
    if csr_matvec is None:
        result: Floats = sparse.csr_array((values, rows, starts), shape=(k, d)) @ vector
        return result
    result = np.zeros(k)
    csr_matvec(k, d, starts, rows, values, vector, result)
    return result


def mixed(
    values: Floats, rows: NDArray[Any], starts: NDArray[Any], weights: Floats, d: int
) -> Floats:
    """The weighted sum of the columns, shape (d,); all as for `dots`."""
    k = len(starts) - 1
    if csc_matvec is None:
        result: Floats = sparse.csc_array((values, rows, starts), shape=(d, k)) @ weights
        return result
    result = np.zeros(d)
    csc_matvec(d, k, starts, rows, values, weights, result)
    return result


def crossed(left: Parts, right: Parts, diagonal: Floats) -> Floats:
    """The products a_j' diag(diagonal) b_k of some columns with others, shape (l, r)."""
    (values, rows, starts), d = left, len(diagonal)
    m, k = len(starts) - 1, len(right[2]) - 1
    scaled = values * diagonal[rows]
    if csr_matmat is None or m * k > ROOM:
        by_column = sparse.csr_array((scaled, rows, starts), shape=(m, d))
        result: Floats = (by_column @ sparse.csc_array(right, shape=(d, k))).toarray()
        return result
    kind = starts.dtype
    by_row = np.empty(d + 1, kind), np.empty(len(right[0]), kind), np.empty(len(right[0]))
    csr_tocsc(k, d, right[2], right[1], right[0], *by_row)
    found = np.empty(m + 1, kind), np.empty(m * k, kind), np.empty(m * k)
    csr_matmat(m, k, starts, rows, scaled, *by_row, *found)
    result = np.zeros((m, k))
    csr_todense(m, k, *found, result)
    return result


def filled(columns: Parts, d: int) -> Floats:
    """The columns with their zeros, one after the other, shape (k, d)."""
    values, rows, starts = columns
    k = len(starts) - 1
    if csr_matmat is None:
        result: Floats = sparse.csr_array((values, rows, starts), shape=(k, d)).toarray()
        return result
    result = np.zeros((k, d))
    csr_todense(k, d, starts, rows, values, result)
    return result
