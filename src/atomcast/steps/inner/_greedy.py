"""Greedy coordinate descent on beta' K beta / 2 - 1' beta over beta >= 0, compiled.

Imported only where it is used. Margins are looked through in blocks: the largest violation of a
block is found while its margins are updated, in one loop that the compiler vectorises.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

uint64: Any = uint64_type
BLOCK = 64
#: So many steps lie between two looks at the gap.
LOOK = 32


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan", "ninf"})
def descend(
    matrix: Any, beta: Any, margins: Any, tolerance: Any, most: Any
) -> Any:  # pragma: no cover - compiled
    """Change the weight that violates optimality most, until the relative gap is small.

    Both beta and its margins, matrix @ beta, are changed in place. Returns the number of steps.
    """
    n, size = uint64(len(beta)), uint64(BLOCK)
    blocks = (n + size - uint64(1)) // size
    worst, diagonal = np.zeros(blocks), np.empty(n)
    for i in range(n):
        diagonal[i] = matrix[i, i]
    change, at, steps = 0.0, uint64(0), 0
    while True:
        row, top, best = matrix[at], -1.0, uint64(0)
        for b in range(blocks):
            violation = 0.0
            for j in range(uint64(b) * size, min((uint64(b) + uint64(1)) * size, n)):
                margin = margins[j] + change * row[j]
                margins[j] = margin
                short = 1.0 - margin
                # Too large a margin counts as far as there is weight to take away.
                violation = max(violation, max(short, min(-short, beta[j] * diagonal[j])))
            if violation > top:
                top, best = violation, uint64(b)
        if steps % LOOK == 0:
            total, square, least = 0.0, 0.0, np.inf
            for j in range(n):
                total += beta[j]
                square += beta[j] * margins[j]
                least = min(least, margins[j])
            if total > 0.0 and 2.0 * (1.0 - least * total / square) <= tolerance:
                return steps
        if steps == most or top <= 0.0:
            return steps
        for j in range(best * size, min((best + uint64(1)) * size, n)):
            short = 1.0 - margins[j]
            if max(short, min(-short, beta[j] * diagonal[j])) >= top:
                at = j
        change = max(-beta[at], (1.0 - margins[at]) / diagonal[at])
        beta[at] += change
        steps += 1
