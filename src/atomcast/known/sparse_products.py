"""Products of compressed sparse columns with a vector, without a matrix object around them.

SciPy's own loops do the work. Called through its matrices, they take longer to reach than to run
on the few columns that most rounds are about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

try:
    from scipy.sparse._sparsetools import csc_matvec, csr_matvec
except ImportError:  # they are not part of what SciPy promises
    csc_matvec = csr_matvec = None

Floats = NDArray[np.float64]


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
