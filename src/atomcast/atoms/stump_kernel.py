"""The compiled scan for the best splits; importing this loads numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def scan(
    starts: Any, present: Any, rows: Any, last: Any, values: Any, total: float, tie: float
) -> Any:
    """Rank, contrast and missing sum of the best split of every feature, as in `best_splits`."""
    n, d = len(present), len(values)
    rank, contrast, missing = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    sums = np.empty(d + 1)  # running sums below the thresholds of one feature
    for j in range(n):
        start, middle, stop = np.uint64(starts[j]), np.uint64(present[j]), np.uint64(starts[j + 1])
        absent = 0.0
        for k in range(middle, stop):
            absent += values[np.uint64(rows[k])]
        listed, rest = 0.0, False
        for k in range(start, middle):
            if rows[k] == d:
                rest = True
                break
        if rest:  # a sparse feature: what is not listed is zero
            for k in range(start, middle):
                if rows[k] != d:
                    listed += values[np.uint64(rows[k])]
        here = total - absent
        below, count, best = 0.0, 0, abs(here)
        sums[0] = 0.0
        for k in range(start, middle):
            below += here - listed if rows[k] == d else values[np.uint64(rows[k])]
            if last[k]:
                count += 1
                sums[count] = below
                best = max(best, abs(here - 2.0 * below))
        for r in range(count + 1):
            if abs(here - 2.0 * sums[r]) >= best - 2.0 * tie * best:
                rank[j], contrast[j] = r, here - 2.0 * sums[r]
                break
        missing[j] = absent
    return rank, contrast, missing
