"""The compiled scan for the best splits; importing this loads numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def scan(starts: Any, present: Any, entries: Any, values: Any, total: float, tie: float) -> Any:
    """Rank, contrast and missing sum of the best split of every feature, as in `best_splits`."""
    n, d, one = len(present), np.uint64(len(values)), np.uint64(1)
    rank, contrast, missing = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    sums = np.empty(len(values) + 1)  # running sums below the thresholds of one feature
    for j in range(n):
        start, middle, stop = np.uint64(starts[j]), np.uint64(present[j]), np.uint64(starts[j + 1])
        absent = 0.0
        for k in range(middle, stop):
            absent += values[np.uint64(entries[k]) >> one]
        listed, rest = 0.0, False
        for k in range(start, middle):
            if np.uint64(entries[k]) >> one == d:
                rest = True
                break
        if rest:  # a sparse feature: what is not listed is zero
            for k in range(start, middle):
                row = np.uint64(entries[k]) >> one
                if row != d:
                    listed += values[row]
        here = total - absent
        below, count, best = 0.0, 0, abs(here)
        sums[0] = 0.0
        for k in range(start, middle):
            row = np.uint64(entries[k]) >> one
            below += here - listed if row == d else values[row]
            if np.uint64(entries[k]) & one:  # the next value is larger
                count += 1
                sums[count] = below
                best = max(best, abs(here - 2.0 * below))
        for r in range(count + 1):
            if abs(here - 2.0 * sums[r]) >= best - 2.0 * tie * best:
                rank[j], contrast[j] = r, here - 2.0 * sums[r]
                break
        missing[j] = absent
    return rank, contrast, missing
