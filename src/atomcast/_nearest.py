"""The numba loops behind distances between many atoms. Imported only where it pays to compile.

Differences are summed as they are, in double precision, so that equal atoms are at distance zero
and a distance does not depend on what else is compared. Four others at a time share what is read
of an atom, and a few are compared with all atoms before the next ones, to stay in cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

uint64: Any = uint64_type
#: Reordering of sums is all that is needed to vectorise them; NaNs keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}
#: Others that are compared with all atoms before the next ones are.
OTHERS = 16


def _extremes(squared: bool) -> Any:
    """The loop for squared or for l1 distances, which the compiler must know apart."""

    @njit(cache=True, nogil=True, fastmath=REORDER)
    def extremes(X: Any, Z: Any, least: Any, most: Any) -> None:  # pragma: no cover - compiled
        """The smallest and the largest distance of each row of X from the rows of Z."""
        d, m, width, one = uint64(X.shape[1]), uint64(len(Z)), uint64(OTHERS), uint64(1)
        others, x = Z.astype(np.float64), np.empty(X.shape[1])
        for block in range(uint64((m + width - one) // width)):
            start = uint64(block * width)
            stop = min(start + width, m)
            for i in range(uint64(len(X))):
                row = X[i]
                for f in range(d):
                    x[f] = row[f]
                low, high, j = least[i], most[i], start
                while j + uint64(3) < stop:
                    p, q = others[j], others[j + one]
                    r, s = others[j + uint64(2)], others[j + uint64(3)]
                    to_p, to_q, to_r, to_s = 0.0, 0.0, 0.0, 0.0
                    for f in range(d):
                        a, b, c, e = x[f] - p[f], x[f] - q[f], x[f] - r[f], x[f] - s[f]
                        to_p += a * a if squared else abs(a)
                        to_q += b * b if squared else abs(b)
                        to_r += c * c if squared else abs(c)
                        to_s += e * e if squared else abs(e)
                    low = min(low, min(min(to_p, to_q), min(to_r, to_s)))
                    high = max(high, max(max(to_p, to_q), max(to_r, to_s)))
                    j += uint64(4)
                while j < stop:
                    p, to_p = others[j], 0.0
                    for f in range(d):
                        a = x[f] - p[f]
                        to_p += a * a if squared else abs(a)
                    low, high = min(low, to_p), max(high, to_p)
                    j += one
                least[i], most[i] = low, high

    return extremes


squares, sums = _extremes(True), _extremes(False)


@njit(cache=True, nogil=True)
def sparse_sums(
    left: Any, right: Any, d: Any, nearest: Any
) -> None:  # pragma: no cover - compiled
    """The smallest l1 distance of each column of one sparse matrix from those of another.

    Both are (indptr, indices, data, l1 length of each column), in compressed columns.
    """
    starts, places, values, lengths = left
    right_starts, right_places, right_values, right_lengths = right
    other = np.zeros(d)
    for j in range(len(right_lengths)):
        for e in range(right_starts[j], right_starts[j + 1]):
            other[right_places[e]] = right_values[e]
        for i in range(len(lengths)):
            # Where both have something, the distance is less than the sum of their lengths.
            s = lengths[i] + right_lengths[j]
            least = 1e-14 * s
            for e in range(starts[i], starts[i + 1]):
                z = other[places[e]]
                s += abs(values[e] - z) - abs(values[e]) - abs(z)
            nearest[i] = min(nearest[i], s if s > least else 0.0)
        for e in range(right_starts[j], right_starts[j + 1]):
            other[right_places[e]] = 0.0
