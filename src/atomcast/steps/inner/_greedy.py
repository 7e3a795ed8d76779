"""Greedy coordinate descent on beta' K~ beta / 2 - 1' beta over beta >= 0, compiled.

Imported only where it is used. Once coordinate descent has taken as long as a Newton step on the
weights that are not zero would, it takes one: where margin errors cost much, a few of these save
thousands of steps. K~ is a kernel matrix with signs, side_i side_j matrix_ij.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

uint64: Any = uint64_type
#: Violations are compared in so many lanes, each with a largest one of its own, which vectorises.
LANES = 64
#: So many steps lie between two looks at the gap.
LOOK = 32
FAST = {"reassoc", "contract", "nsz", "nnan", "ninf"}


@njit(cache=True, nogil=True, fastmath=FAST)
def descend(
    matrix: Any, side: Any, beta: Any, margins: Any, tolerance: Any, most: Any
) -> Any:  # pragma: no cover - compiled
    """Change the weight that violates optimality most, until the relative gap is small.

    Both beta and its margins, K~ beta, are changed in place. Returns the number of steps.
    """
    n = uint64(len(beta))
    diagonal, short, lanes = np.empty(n), np.empty(n), np.empty(LANES)
    for j in range(n):
        diagonal[j], short[j] = matrix[j, j], 1.0 - margins[j]
    room = beta * diagonal
    change, at, steps, spent = 0.0, uint64(0), 0, 0.0
    while True:
        update(matrix[at], change * side[at], side, room, short, lanes)
        lane = uint64(np.argmax(lanes))
        if steps % LOOK == 0 or lanes[lane] <= 0.0:
            total, square, most_short, free = 0.0, 0.0, -np.inf, 0.0
            for j in range(n):
                total += beta[j]
                square += beta[j] * (1.0 - short[j])
                most_short = max(most_short, short[j])
                free += beta[j] > 0.0
            enough = total > 0.0 and 2.0 * (1.0 - (1.0 - most_short) * total / square) <= tolerance
            if enough or steps >= most or lanes[lane] <= 0.0:
                break
            if spent > free * n + free**3 / 12.0:
                newton(matrix, side, beta, short)
                room, spent, change = beta * diagonal, 0.0, 0.0
                steps += 1
                continue
        for j in range(lane, n, uint64(LANES)):
            if max(short[j], min(-short[j], room[j])) >= lanes[lane]:
                at = uint64(j)
        change = max(-beta[at], short[at] / diagonal[at])
        beta[at] += change
        room[at] = beta[at] * diagonal[at]
        steps, spent = steps + 1, spent + n
    for j in range(n):
        margins[j] = 1.0 - short[j]
    return steps


@njit(cache=True, nogil=True, fastmath=FAST)
def update(
    row: Any, change: Any, side: Any, room: Any, short: Any, lanes: Any
) -> None:  # pragma: no cover - compiled
    """Take a change into account in what margins fall short of one, and find the worst ones."""
    n, size = uint64(len(short)), uint64(LANES)
    lanes[:] = 0.0
    for b in range((n + size - uint64(1)) // size):
        start = uint64(b) * size
        for lane in range(min(size, n - start)):
            j = start + lane
            s = short[j] - change * side[j] * row[j]
            short[j] = s
            # Too large a margin counts as far as there is weight to take away.
            lanes[lane] = max(lanes[lane], max(s, min(-s, room[j])))


@njit(cache=True, nogil=True, fastmath=FAST)
def newton(matrix: Any, side: Any, beta: Any, short: Any) -> None:  # pragma: no cover - compiled
    """Go to the best weights on a face, on which those at zero, or that would fall below, stay."""
    used = np.flatnonzero(beta > 0.0)
    free, goal = used, np.zeros(0)
    while len(free):
        lower = np.empty((len(free), len(free)))
        if not factored(matrix, side, free, lower):
            return
        goal = solved(lower, np.ones(len(free)))
        if goal.min() > 0.0:
            break
        free = free[goal > 0.0]
    change = -beta
    for i in range(len(free)):
        change[free[i]] += goal[i]
    image = np.zeros(len(beta))
    for i in range(len(used)):
        factor, row = change[used[i]] * side[used[i]], matrix[used[i]]
        for j in range(uint64(len(beta))):
            image[j] += factor * side[j] * row[j]
    slope, bend = np.dot(change, short), np.dot(change, image)
    length = min(1.0, slope / bend) if slope > 0.0 else 0.0
    for j in range(uint64(len(beta))):
        beta[j] = max(beta[j] + length * change[j], 0.0)
        short[j] -= length * image[j]


@njit(cache=True, nogil=True, fastmath=FAST)
def factored(matrix: Any, side: Any, free: Any, lower: Any) -> Any:  # pragma: no cover - compiled
    """The Cholesky factor of some rows and columns; False if rounding leaves none."""
    for i in range(uint64(len(free))):
        row, sign = matrix[free[i]], side[free[i]]
        for j in range(i + uint64(1)):
            rest = sign * side[free[j]] * row[free[j]]
            for k in range(uint64(j)):
                rest -= lower[i, k] * lower[j, k]
            if uint64(j) < i:
                lower[i, j] = rest / lower[j, j]
            elif rest <= 1e-12 * row[free[i]]:
                return False
            else:
                lower[i, i] = np.sqrt(rest)
    return True


@njit(cache=True, nogil=True, fastmath=FAST)
def solved(lower: Any, right: Any) -> Any:  # pragma: no cover - compiled
    """The solution of L L' x = right."""
    x = right.copy()
    for i in range(len(x)):
        x[i] = (x[i] - np.dot(lower[i, :i], x[:i])) / lower[i, i]
    for i in range(len(x) - 1, -1, -1):
        x[i] /= lower[i, i]
        x[:i] -= x[i] * lower[i, :i]
    return x
