"""Products of compressed sparse columns, and some of them, without a matrix object around them.

SciPy's own loops do the work. Called through its matrices, they take longer to reach than to run
on the few columns that most rounds are about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

try:
    from scipy.sparse import _sparsetools as scipys
except ImportError:  # they are not part of what SciPy promises
    scipys = None

Floats = NDArray[np.float64]
#: Products with fewer columns than these are found for each of them by itself.
FEW = 8
#: Values, rows and starts of columns.
Compressed = tuple[Floats, NDArray[Any], NDArray[Any]]


def dots(values: Floats, rows: NDArray[Any], starts: NDArray[Any], vector: Floats) -> Floats:
    """The inner product of every column with a vector of length d, shape (k,).

    Column j has the values from starts[j] to starts[j + 1], in these rows; rows and starts are of
    one type, and the vector is contiguous.
    """
    k, d = len(starts) - 1, len(vector)
    if scipys is None:
        result: Floats = sparse.csr_array((values, rows, starts), shape=(k, d)) @ vector
        return result
    result = np.zeros(k)
    scipys.csr_matvec(k, d, starts, rows, values, vector, result)
    return result


def mixed(
    values: Floats, rows: NDArray[Any], starts: NDArray[Any], weights: Floats, d: int
) -> Floats:
    """The weighted sum of the columns, shape (d,); all as for `dots`."""
    k = len(starts) - 1
    if scipys is None:
        result: Floats = sparse.csc_array((values, rows, starts), shape=(d, k)) @ weights
        return result
    result = np.zeros(d)
    scipys.csc_matvec(d, k, starts, rows, values, weights, result)
    return result


def some(columns: Compressed, chosen: NDArray[np.int64]) -> Compressed:
    """Some of the columns."""
    values, rows, starts = columns
    lengths = starts[chosen + 1] - starts[chosen]
    places = np.zeros(len(chosen) + 1, dtype=starts.dtype)
    lengths.cumsum(out=places[1:])
    if scipys is None or rows.dtype != starts.dtype:
        each = np.repeat(starts[chosen] - places[:-1], lengths) + np.arange(places[-1])
        return values[each], rows[each], places
    picked = np.empty(places[-1], values.dtype), np.empty(places[-1], rows.dtype)
    of = chosen.astype(rows.dtype, copy=False)
    scipys.csr_row_index(len(of), of, starts, rows, values, picked[1], picked[0])
    return *picked, places


def spread(values: Floats, rows: NDArray[Any], starts: NDArray[Any], d: int) -> Floats:
    """The columns as rows of a dense array, shape (k, d)."""
    k = len(starts) - 1
    if scipys is None:
        return sparse.csr_array((values, rows, starts), shape=(k, d)).toarray()
    result = np.zeros((k, d))
    scipys.csr_todense(k, d, starts, rows, values, result)
    return result


def crossed(left: Compressed, right: Compressed, d: int) -> Floats:
    """The inner product of every column on the left with every one on the right, shape (l, r).

    It takes less time with fewer of them on the left.
    """
    k, m, nnz = len(left[2]) - 1, len(right[2]) - 1, int(right[2][-1])
    if k < FEW:
        each = [dots(*right, column) for column in spread(*left, d)]
        return np.array(each).reshape(k, m)
    if scipys is None:
        one, other = sparse.csr_array(left, shape=(k, d)), sparse.csc_array(right, shape=(d, m))
        product: Floats = (one @ other).toarray()
        return product
    values, rows, starts = right
    kind = rows.dtype
    by_row = np.empty(d + 1, kind), np.empty(nnz, kind), np.empty(nnz)
    scipys.csr_tocsc(m, d, starts, rows, values, *by_row)
    # There is room for every product: how many are not zero need not be counted first.
    cuts, places, found = np.empty(k + 1, kind), np.empty(k * m, kind), np.empty(k * m)
    scipys.csr_matmat(k, m, left[2], left[1], left[0], *by_row, cuts, places, found)
    result = np.zeros((k, m))
    scipys.csr_todense(k, m, cuts, places, found, result)
    return result
