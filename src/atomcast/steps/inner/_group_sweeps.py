"""A compiled pass over known groups of columns, each orthogonal within; see `_sweeps.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from atomcast.known._sweeps import _add, _score


@njit(cache=True, nogil=True, error_model="numpy")
def _length(v: Any, bends: Any, push: float, start: float) -> float:  # pragma: no cover - compiled
    """The length r of the best w for <v, w> + w' diag(bends) w / 2 + push ||w||.

    It solves ||v / (bends r + push)|| = 1. The inverse of the left side is concave and rises with
    r, so that Newton's method converges from everywhere, after its first step from below.
    """
    r = start
    for _ in range(50):
        square, slope = 0.0, 0.0
        for i in range(len(v)):
            divided = v[i] / (bends[i] * r + push)
            square += divided * divided
            slope += divided * divided * bends[i] / (bends[i] * r + push)
        if not slope > 0.0:
            break
        # 1 / sqrt(square) - 1, divided by its derivative slope / square^(3/2)
        step = (np.sqrt(square) - 1.0) * square / slope
        r = max(r + step, 0.0)
        if abs(step) <= 1e-14 * r:
            break
    return r


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_groups(
    columns: Any,
    starts: Any,
    chosen: Any,
    group_weights: Any,
    lengths: Any,
    along: Any,
    rank_one: Any,
    diagonal: Any,
    weights: Any,
    gradient: Any,
    penalty: float,
    sweeps: int,
    share: float,
    enough: float,
) -> bool:  # pragma: no cover - compiled
    """Coordinate descent as in `_sweeps.sweep`, a whole group at a time, each step exact.

    Parameters
    ----------
    starts : array of shape (G + 1,)
        Where the groups begin; the columns of a group are orthogonal under the curvature.
    chosen : numbers of the groups that may change
    group_weights : array of shape (G,)
        What a group's norm is multiplied by in the penalty.
    """
    shift, first, worst = 0.0, 0.0, 0.0
    settled = False
    for k in range(sweeps):
        worst = 0.0
        for g in chosen:
            begin, end = starts[g], starts[g + 1]
            bends, push = lengths[begin:end], penalty * group_weights[g]
            v, steepness, old = np.empty(end - begin), 0.0, 0.0
            for i in range(end - begin):
                j = begin + i
                score = _score(columns, j, gradient) - along[j] * shift
                v[i] = score - bends[i] * weights[j]
                steepness += v[i] * v[i]
                old += weights[j] * weights[j]
            r = 0.0
            if np.sqrt(steepness) > push and push > 0.0:
                r = _length(v, bends, push, np.sqrt(old))
            off = 0.0
            for i in range(end - begin):
                j, new = begin + i, 0.0
                if r > 0.0:
                    new = -v[i] / (bends[i] + push / r)
                elif push <= 0.0 and bends[i] > 0.0:
                    new = -v[i] / bends[i]
                change = new - weights[j]
                if change != 0.0:
                    weights[j] = new
                    shift += change * along[j]
                    _add(columns, j, change, diagonal, gradient)
                    off += (change * bends[i]) ** 2
            worst = max(worst, np.sqrt(off) / group_weights[g])
        if k == 0:
            first = worst
        if worst <= max(share * first, enough):
            settled = True
            break
    for i in range(len(rank_one)):
        gradient[i] -= shift * rank_one[i]
    return settled or worst <= 0.3 * first
