"""The numba loops behind `Rows`. Imported only where they are used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

from atomcast.known.kernels._loops import exponential

uint64: Any = uint64_type
#: So many values of a row are computed at a time: they stay in cache.
BLOCK = 1024
#: Sums may be reordered; NaNs keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath={"contract"})
def compute(matrix: Any, recipe: Any, at: Any) -> None:  # pragma: no cover - compiled
    """Fill one row of the matrix; its values do not depend on which others are filled."""
    points, codes, one = recipe.points, recipe.codes, np.float32(1.0)
    block, code, squares = uint64(BLOCK), codes[at], np.empty(BLOCK, np.float32)
    slot, n = recipe.slot, uint64(len(codes))
    if slot[at] < 0:
        slot[at] = slot[n]
        if slot[n] < len(matrix):
            slot[n] += 1
        else:
            place = np.argmin(recipe.stamp[: len(matrix)])
            lost = recipe.owner[place]
            slot[lost], recipe.done[lost], slot[at] = -1, False, place
        if len(recipe.owner) > 0:
            recipe.owner[slot[at]] = at
    row = matrix[uint64(slot[at])]
    for start in range(uint64(0), n, block):
        size = min(block, n - uint64(start))
        out, own = row[start : start + size], codes[start : start + size]
        squares[:size] = np.float32(0.0)
        for k in range(uint64(len(points))):
            centre, part = points[k, at], points[k, start : start + size]
            for j in range(size):
                difference = part[j] - centre
                squares[j] += difference * difference
        for j in range(size):
            value = exponential(-squares[j]) + one
            out[j] = value if own[j] == code else recipe.other * value
    row[at] = recipe.diagonal[at]
    recipe.done[at] = True


@njit(cache=True, nogil=True)
def fetched(
    matrix: Any, points: Any, values: Any, place: Any, recipe: Any, i: Any
) -> Any:  # pragma: no cover - compiled
    """The place of row i among the rows that were taken out; its last entry counts them."""
    count, at = uint64(len(points)), points[i]
    if len(recipe.done) > 0:
        if not recipe.done[at]:
            compute(matrix, recipe, at)
        at = uint64(recipe.slot[at])
        if len(recipe.stamp) > 0:
            now = uint64(len(recipe.stamp) - 1)
            recipe.stamp[now] += 1
            recipe.stamp[at] = recipe.stamp[now]
    if place[i] < 0:
        place[i] = place[count]
        place[count] += 1
        row, out = matrix[at], values[place[i]]
        for j in range(count):
            out[j] = row[points[j]]
    return uint64(place[i])


@njit(cache=True, nogil=True)
def fetch(
    matrix: Any, points: Any, values: Any, place: Any, recipe: Any, used: Any
) -> None:  # pragma: no cover - compiled
    """Take some rows out."""
    for i in used:
        fetched(matrix, points, values, place, recipe, i)


@njit(cache=True, nogil=True)
def lower_part(values: Any, rows: Any, columns: Any, out: Any) -> None:  # pragma: no cover
    """Some rows at as many columns, up to the diagonal."""
    for i in range(uint64(len(rows))):
        row = values[rows[i]]
        for j in range(uint64(i) + uint64(1)):
            out[i, j] = row[columns[j]]


@njit(cache=True, nogil=True, fastmath=REORDER)
def combined(
    matrix: Any,
    points: Any,
    values: Any,
    place: Any,
    recipe: Any,
    used: Any,
    weights: Any,
    out: Any,
) -> None:  # pragma: no cover - compiled
    """The sum of some rows, each times a weight, in double precision: four rows at a time."""
    count, columns, four = uint64(len(used)), uint64(len(out)), uint64(4)
    out[:] = 0.0
    whole = count - count % four
    for u in range(uint64(0), whole, four):
        a = values[fetched(matrix, points, values, place, recipe, used[u])]
        b = values[fetched(matrix, points, values, place, recipe, used[u + uint64(1)])]
        c = values[fetched(matrix, points, values, place, recipe, used[u + uint64(2)])]
        d = values[fetched(matrix, points, values, place, recipe, used[u + uint64(3)])]
        wa, wb, wc, wd = weights[u : u + four]
        for j in range(columns):
            out[j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
    for u in range(whole, count):
        a = values[fetched(matrix, points, values, place, recipe, used[u])]
        for j in range(columns):
            out[j] += weights[u] * a[j]
