"""Descent on the dual of a regression within a tube, two weights at a time, compiled.

Imported only where it is used. The dual is beta' K~ beta / 2 - y' beta + epsilon ||beta||_1, where
the weights sum to zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

from atomcast.known.kernels._row_loops import fetched

uint64: Any = uint64_type
#: Slopes are compared in so many lanes, each with extremes of its own, which vectorises.
LANES = 64
#: So many steps lie between two looks at the gap.
LOOK = 64
#: Newton's method takes as long as so many updates of a slope, and more by the size of its factor:
#: LAPACK multiplies so many numbers of that in the time of one update.
CALL, NEWTON = 1e6, 60
FAST = {"reassoc", "contract", "nsz", "nnan", "ninf"}


@njit(cache=True, nogil=True, fastmath=FAST)
def tube_steps(
    matrix: Any,
    points: Any,
    values: Any,
    place: Any,
    recipe: Any,
    targets: Any,
    costs: Any,
    epsilon: Any,
    beta: Any,
    slope: Any,
    count: Any,
    aim: Any,
    most: Any,
) -> Any:  # pragma: no cover - compiled
    """Raise the weight that should rise most, and lower the one that should fall most, by as much.

    The first five arguments are those of `Rows`; beta and K~ beta - y, its slope, are changed in
    place, until the gap of `count` points is a share `aim` of the objective. Returns the number of
    steps, and False if they have taken as long as Newton's method would.
    """
    n = uint64(len(beta))
    # The slope of the tube on the way up and on the way down, which differ where a weight is zero.
    up, down = np.empty(n), np.empty(n)
    for j in range(n):
        up[j] = epsilon if beta[j] >= 0.0 else -epsilon
        down[j] = epsilon if beta[j] > 0.0 else -epsilon
    low, high, short_of_room = np.empty(LANES), np.empty(LANES), len(recipe.stamp) > 0
    a, b, change, steps, enough = uint64(0), uint64(0), 0.0, 0, False
    row_a = row_b = values[fetched(matrix, points, values, place, recipe, a)]
    while True:
        update(row_a, row_b, change, slope, up, down, low, high)
        a, b = lowest(low, slope, up), highest(high, slope, down)
        violation = slope[b] + down[b] - slope[a] - up[a]
        if steps % LOOK == 0 or violation <= 0.0:
            worst, value, free = looked(beta, slope, targets, costs, epsilon)
            enough = violation <= 0.0 or (free > 0.0 and count * worst <= aim * abs(value))
            if enough or steps >= most or steps * n > CALL + 8 * free * n + free**3 / NEWTON:
                break
        if place[a] < 0 or short_of_room:
            fetched(matrix, points, values, place, recipe, a)
        if place[b] < 0 or short_of_room:
            fetched(matrix, points, values, place, recipe, b)
        row_a, row_b = values[uint64(place[a])], values[uint64(place[b])]
        bend = recipe.diagonal[points[a]] + recipe.diagonal[points[b]] - 2.0 * row_a[b]
        # A weight that passes zero on the way has the tube against it from there on.
        room_a = -beta[a] if beta[a] < 0.0 else np.inf
        room_b = beta[b] if beta[b] > 0.0 else np.inf
        first, second = min(room_a, room_b), max(room_a, room_b)
        change = violation / bend
        if change > first:
            change = max(first, (violation - 2.0 * epsilon) / bend)
        if change > second:
            change = max(second, (violation - 4.0 * epsilon) / bend)
        beta[a] = 0.0 if change == room_a else beta[a] + change
        beta[b] = 0.0 if change == room_b else beta[b] - change
        for j in (a, b):
            up[j] = epsilon if beta[j] >= 0.0 else -epsilon
            down[j] = epsilon if beta[j] > 0.0 else -epsilon
        steps += 1
    return steps, enough


@njit(cache=True, nogil=True, fastmath=FAST)
def looked(
    beta: Any, slope: Any, targets: Any, costs: Any, epsilon: Any
) -> Any:  # pragma: no cover - compiled
    """The largest share of the gap, the objective, and how many weights are not zero."""
    n = uint64(len(beta))
    value, free, level, total = 0.0, 0.0, 0.0, 0.0
    for j in range(n):
        value += beta[j] * 0.5 * (slope[j] - targets[j]) + epsilon * abs(beta[j])
        used = 1.0 if beta[j] != 0.0 else 0.0
        tube = epsilon if beta[j] > 0.0 else -epsilon
        free += used
        total += used * costs[j]
        level -= used * costs[j] * (slope[j] + tube)
    level /= max(total, 1e-300)
    worst = 0.0
    for j in range(n):
        here = slope[j] + level
        tube = epsilon if beta[j] > 0.0 else -epsilon
        excess = max(abs(here) - epsilon, 0.0) if beta[j] == 0.0 else here + tube
        worst = max(worst, 0.5 * costs[j] * excess * excess)
    return worst, value, free


@njit(cache=True, nogil=True, fastmath=FAST)
def lowest(low: Any, slope: Any, up: Any) -> Any:  # pragma: no cover - compiled
    """Where the slope on the way up is least."""
    least, lane = low[0], uint64(0)
    for k in range(uint64(LANES)):
        least = min(least, low[k])
    while low[lane] > least:
        lane += uint64(1)
    at = lane
    for j in range(lane, uint64(len(slope)), uint64(LANES)):
        if slope[j] + up[j] <= least:
            at = uint64(j)
    return min(at, uint64(len(slope)) - uint64(1))


@njit(cache=True, nogil=True, fastmath=FAST)
def highest(high: Any, slope: Any, down: Any) -> Any:  # pragma: no cover - compiled
    """Where the slope on the way down is largest."""
    most, lane = high[0], uint64(0)
    for k in range(uint64(LANES)):
        most = max(most, high[k])
    while high[lane] < most:
        lane += uint64(1)
    at = lane
    for j in range(lane, uint64(len(slope)), uint64(LANES)):
        if slope[j] + down[j] >= most:
            at = uint64(j)
    return min(at, uint64(len(slope)) - uint64(1))


@njit(cache=True, nogil=True, fastmath=FAST)
def update(
    row_a: Any, row_b: Any, change: Any, slope: Any, up: Any, down: Any, low: Any, high: Any
) -> None:  # pragma: no cover - compiled
    """Take a change into account in all slopes, and find the extremes of each lane."""
    n, size = uint64(len(slope)), uint64(LANES)
    low[:], high[:] = 1e300, -1e300
    for block in range((n + size - uint64(1)) // size):
        start = uint64(block) * size
        for lane in range(min(size, n - start)):
            j = start + lane
            s = slope[j] + change * (row_a[j] - row_b[j])
            slope[j] = s
            low[lane] = min(low[lane], s + up[j])
            high[lane] = max(high[lane], s + down[j])
