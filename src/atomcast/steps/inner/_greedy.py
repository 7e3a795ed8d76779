"""Greedy coordinate descent on beta' K~ beta / 2 - 1' beta over beta >= 0, compiled.

Imported only where it is used. K~ is a kernel matrix with signs, side_i side_j matrix_ij.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

from atomcast.known.kernels._row_loops import fetched

uint64: Any = uint64_type
#: Violations are compared in so many lanes, each with a largest one of its own, which vectorises.
LANES = 64
#: So many steps lie between two looks at the gap.
LOOK = 32
#: A Newton step costs as much as so many updates of a number, and more by its size: LAPACK
#: multiplies so many numbers of a factor in the time of one update.
CALL, NEWTON = 1e5, 50
FAST = {"reassoc", "contract", "nsz", "nnan", "ninf"}


@njit(cache=True, nogil=True, fastmath=FAST)
def greedy_steps(
    matrix: Any,
    points: Any,
    values: Any,
    place: Any,
    recipe: Any,
    side: Any,
    beta: Any,
    margins: Any,
    tolerance: Any,
    most: Any,
) -> Any:  # pragma: no cover - compiled
    """Change two weights that violate optimality most, until the relative gap is small.

    Two at a time, because a step takes as long as it takes to read rows of the matrix, and two are
    read in hardly more time than one. The first five arguments are those of `Rows`; beta and its
    margins, K~ beta, are changed in place. Returns the number of steps, and False if they have
    taken as long as a Newton step would.
    """
    n = uint64(len(beta))
    diagonal, short, lanes = np.empty(n), np.empty(n), np.empty(LANES)
    for j in range(n):
        diagonal[j], short[j] = recipe.diagonal[points[j]], 1.0 - margins[j]
    room, short_of_room = beta * diagonal, len(recipe.stamp) > 0
    a, b, change_a, change_b, steps, enough = uint64(0), uint64(0), 0.0, 0.0, 0, False
    row_a = row_b = values[fetched(matrix, points, values, place, recipe, a)]
    while True:
        update(row_a, row_b, change_a * side[a], change_b * side[b], side, room, short, lanes)
        worst = largest(lanes)
        if steps % LOOK == 0 or worst <= 0.0:
            total, square, most_short, free = 0.0, 0.0, -np.inf, 0.0
            for j in range(n):
                total += beta[j]
                square += beta[j] * (1.0 - short[j])
                most_short = max(most_short, short[j])
                free += beta[j] > 0.0
            enough = total > 0.0 and 2.0 * (1.0 - (1.0 - most_short) * total / square) <= tolerance
            enough = enough or worst <= 0.0
            if enough or steps >= most or steps * n > CALL + 4 * free * n + free**3 / NEWTON:
                break
        a, b = picked(lanes, short, room), picked(lanes, short, room)
        change_a, change_b = max(-beta[a], short[a] / diagonal[a]), 0.0
        beta[a] += change_a
        # To ask for a row that is there takes longer than to see that it is.
        if place[a] < 0 or short_of_room:
            fetched(matrix, points, values, place, recipe, a)
        if place[b] < 0 or short_of_room:
            fetched(matrix, points, values, place, recipe, b)
        row_a, row_b = values[uint64(place[a])], values[uint64(place[b])]
        if a != b:
            left = short[b] - change_a * side[a] * side[b] * row_a[b]
            change_b = max(-beta[b], left / diagonal[b])
            beta[b] += change_b
        room[a], room[b] = beta[a] * diagonal[a], beta[b] * diagonal[b]
        steps += 2
    for j in range(n):
        margins[j] = 1.0 - short[j]
    return steps, enough


@njit(cache=True, nogil=True, fastmath=FAST)
def largest(lanes: Any) -> Any:  # pragma: no cover - compiled
    """The worst violation of all lanes; NumPy looks for NaNs as well, which takes longer."""
    worst = lanes[0]
    for lane in range(uint64(LANES)):
        worst = max(worst, lanes[lane])
    return worst


@njit(cache=True, nogil=True, fastmath=FAST)
def picked(lanes: Any, short: Any, room: Any) -> Any:  # pragma: no cover - compiled
    """The worst violation of the worst lane, which is then out of the race."""
    worst, lane = largest(lanes), uint64(0)
    while lanes[lane] < worst:
        lane += uint64(1)
    at = lane
    for j in range(lane, uint64(len(short)), uint64(LANES)):
        if max(short[j], min(-short[j], room[j])) >= worst:
            at = uint64(j)
    lanes[lane] = -1.0
    return min(at, uint64(len(short)) - uint64(1))


@njit(cache=True, nogil=True, fastmath=FAST)
def update(
    row_a: Any,
    row_b: Any,
    change_a: Any,
    change_b: Any,
    side: Any,
    room: Any,
    short: Any,
    lanes: Any,
) -> None:  # pragma: no cover - compiled
    """Take two changes into account in what margins fall short of one, and find the worst ones."""
    n, size = uint64(len(short)), uint64(LANES)
    lanes[:] = 0.0
    for block in range((n + size - uint64(1)) // size):
        start = uint64(block) * size
        for lane in range(min(size, n - start)):
            j = start + lane
            s = short[j] - side[j] * (change_a * row_a[j] + change_b * row_b[j])
            short[j] = s
            # Too large a margin counts as far as there is weight to take away.
            lanes[lane] = max(lanes[lane], max(s, min(-s, room[j])))
