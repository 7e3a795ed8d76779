"""Greedy coordinate descent on beta' K~ beta / 2 - 1' beta over beta >= 0, compiled.

Imported only where it is used. K~ is a kernel matrix with signs, side_i side_j matrix_ij.
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
#: A Newton step costs as much as so many updates of a number, and more by its size: LAPACK
#: multiplies so many numbers of a factor in the time of one update.
CALL, NEWTON = 5e5, 50
FAST = {"reassoc", "contract", "nsz", "nnan", "ninf"}


@njit(cache=True, nogil=True, fastmath=FAST)
def greedy_steps(
    matrix: Any, side: Any, beta: Any, margins: Any, tolerance: Any, most: Any
) -> Any:  # pragma: no cover - compiled
    """Change the weight that violates optimality most, until the relative gap is small.

    Both beta and its margins, K~ beta, are changed in place. Returns the number of steps, and
    False if they have taken as long as a Newton step would.
    """
    n = uint64(len(beta))
    diagonal, short, lanes = np.empty(n), np.empty(n), np.empty(LANES)
    for j in range(n):
        diagonal[j], short[j] = matrix[j, j], 1.0 - margins[j]
    room = beta * diagonal
    change, at, steps, enough = 0.0, uint64(0), 0, False
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
            enough = enough or lanes[lane] <= 0.0
            if enough or steps >= most or steps * n > CALL + 4 * free * n + free**3 / NEWTON:
                break
        for j in range(lane, n, uint64(LANES)):
            if max(short[j], min(-short[j], room[j])) >= lanes[lane]:
                at = uint64(j)
        change = max(-beta[at], short[at] / diagonal[at])
        beta[at] += change
        room[at] = beta[at] * diagonal[at]
        steps += 1
    for j in range(n):
        margins[j] = 1.0 - short[j]
    return steps, enough


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
