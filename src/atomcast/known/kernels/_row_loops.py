"""The numba loops behind `Rows`. Imported only where they are used."""

from __future__ import annotations

from typing import Any

from numba import njit
from numba import uint64 as uint64_type

uint64: Any = uint64_type
#: Sums may be reordered; NaNs keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
def fetched(matrix: Any, points: Any, values: Any, place: Any, i: Any) -> Any:  # pragma: no cover
    """The place of row i among the rows that were taken out; its last entry counts them."""
    count = uint64(len(points))
    if place[i] < 0:
        place[i] = place[count]
        place[count] += 1
        row, out = matrix[points[i]], values[place[i]]
        for j in range(count):
            out[j] = row[points[j]]
    return uint64(place[i])


@njit(cache=True, nogil=True)
def fetch(matrix: Any, points: Any, values: Any, place: Any, used: Any) -> None:  # pragma: no cover
    """Take some rows out."""
    for i in used:
        fetched(matrix, points, values, place, i)


@njit(cache=True, nogil=True, fastmath=REORDER)
def combined(
    matrix: Any, points: Any, values: Any, place: Any, used: Any, weights: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """The sum of some rows, each times a weight, in double precision: four rows at a time."""
    count, columns, four = uint64(len(used)), uint64(len(out)), uint64(4)
    out[:] = 0.0
    whole = count - count % four
    for u in range(uint64(0), whole, four):
        a = values[fetched(matrix, points, values, place, used[u])]
        b = values[fetched(matrix, points, values, place, used[u + uint64(1)])]
        c = values[fetched(matrix, points, values, place, used[u + uint64(2)])]
        d = values[fetched(matrix, points, values, place, used[u + uint64(3)])]
        wa, wb, wc, wd = weights[u : u + four]
        for j in range(columns):
            out[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
    for u in range(whole, count):
        a = values[fetched(matrix, points, values, place, used[u])]
        for j in range(columns):
            out[j] += weights[u] * a[j]
