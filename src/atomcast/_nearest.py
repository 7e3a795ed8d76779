"""The numba loops behind distances between many atoms. Imported only where it pays to compile.

Differences are summed as they are, in double precision, so that equal atoms are at distance zero
and a distance does not depend on what else is compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

uint64: Any = uint64_type
#: Reordering of sums is all that is needed to vectorise them; NaNs keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}
#: Others that are compared with all atoms before the next ones are, to stay in cache.
OTHERS = 16


@njit(cache=True, nogil=True, fastmath=REORDER)
def square_distance(x: Any, z: Any) -> Any:  # pragma: no cover - compiled
    """The squared distance of two vectors."""
    total = 0.0
    for f in range(uint64(len(x))):
        difference = np.float64(x[f]) - np.float64(z[f])
        total += difference * difference
    return total


@njit(cache=True, nogil=True, fastmath=REORDER)
def square_distances(X: Any, z: Any) -> Any:  # pragma: no cover - compiled
    """The squared distance of each row from a vector, shape (n,)."""
    out = np.empty(len(X))
    for i in range(uint64(len(X))):
        out[i] = square_distance(X[i], z)
    return out


@njit(cache=True, nogil=True)
def square_extremes(
    products: Any, X: Any, Z: Any, x_norms: Any, z_norms: Any, slack: Any, far: Any, extreme: Any
) -> None:  # pragma: no cover - compiled
    """Each row's squared distance from the nearest, or the farthest, of other rows.

    Most pairs are out of question by their products in other units and in single precision, where
    these are neither too large nor too small for it; the distances of the others are computed.

    Parameters
    ----------
    products : array of shape (n, m), between rows of X and Z, which may be shifted alike
    X, Z : arrays of shape (n, d) and (m, d)
    x_norms, z_norms : squared lengths, as in the products
    slack : the square of that unit, and by how much products may be wrong: a part of the squared
        lengths, and a number
    far : bool array of shape (n,), whether the farthest is asked for
    extreme : array of shape (n,), changed where another row is nearer, or farther
    """
    unit, error, tiny = slack
    for i in range(uint64(len(X))):
        best, sign = extreme[i], -1.0 if far[i] else 1.0
        for j in range(uint64(len(Z))):
            size, product = x_norms[i] + z_norms[j], np.float64(products[i, j])
            away = sign * (size - 2.0 * product - unit * best)
            # Products that are no numbers must be looked at, too.
            if not (abs(product) < np.inf and away >= error * size + tiny):
                exactly = square_distance(X[i], Z[j])
                if sign * exactly < sign * best:
                    best = exactly
        extreme[i] = best


@njit(cache=True, nogil=True, fastmath=REORDER)
def sum_extremes(X: Any, Z: Any, least: Any, most: Any) -> None:  # pragma: no cover - compiled
    """The smallest and the largest l1 distance of each row of X from the rows of Z.

    Four others at a time share what is read of a row.
    """
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
                p, q, r = others[j], others[j + one], others[j + uint64(2)]
                s = others[j + uint64(3)]
                to_p, to_q, to_r, to_s = 0.0, 0.0, 0.0, 0.0
                for f in range(d):
                    to_p += abs(x[f] - p[f])
                    to_q += abs(x[f] - q[f])
                    to_r += abs(x[f] - r[f])
                    to_s += abs(x[f] - s[f])
                low = min(low, min(min(to_p, to_q), min(to_r, to_s)))
                high = max(high, max(max(to_p, to_q), max(to_r, to_s)))
                j += uint64(4)
            while j < stop:
                p, to_p = others[j], 0.0
                for f in range(d):
                    to_p += abs(x[f] - p[f])
                low, high = min(low, to_p), max(high, to_p)
                j += one
            least[i], most[i] = low, high


@njit(cache=True, nogil=True)
def sparse_sums(
    left: Any, right: Any, other: Any, nearest: Any
) -> None:  # pragma: no cover - compiled
    """The smallest l1 distance of each column of one sparse matrix from those of another.

    Both are (indptr, indices, data, l1 length of each column), in compressed columns; `other` is
    zeros, one for each row.
    """
    starts, places, values, lengths = left
    right_starts, right_places, right_values, right_lengths = right
    for j in range(len(right_lengths)):
        for e in range(right_starts[j], right_starts[j + 1]):
            other[right_places[e]] = right_values[e]
        for i in range(len(lengths)):
            # Where both have something, the distance is less than the sum of their lengths.
            total = lengths[i] + right_lengths[j]
            away = total
            for e in range(starts[i], starts[i + 1]):
                z = other[places[e]]
                if z != 0.0:
                    away += abs(values[e] - z) - abs(values[e]) - abs(z)
            nearest[i] = min(nearest[i], away if away > 1e-14 * total else 0.0)
        for e in range(right_starts[j], right_starts[j + 1]):
            other[right_places[e]] = 0.0
