"""Compiled passes over known groups of columns, each orthogonal within; see `_sweeps.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from atomcast.known._sweeps import _add, _move, _score


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


@njit(cache=True, nogil=True, error_model="numpy")
def _precondition(
    slopes: Any, starts: Any, inverse: Any, unit: Any, spared: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """Each group's own part of the Hessian, diag(1 / inverse) - spared unit unit', inverted."""
    for g in range(len(starts) - 1):
        product, tip = 0.0, 1.0
        for m in range(starts[g], starts[g + 1]):
            out[m] = inverse[m] * slopes[m]
            product += unit[m] * out[m]
            tip -= spared[g] * unit[m] * unit[m] * inverse[m]
        factor = spared[g] * product / max(tip, 1e-10)
        for m in range(starts[g], starts[g + 1]):
            out[m] += factor * inverse[m] * unit[m]


@njit(cache=True, nogil=True, error_model="numpy")
def solve_group_face(
    columns: Any,
    support: Any,
    starts: Any,
    group_weights: Any,
    lengths: Any,
    along: Any,
    rank_one: Any,
    diagonal: Any,
    weights: Any,
    gradient: Any,
    penalty: float,
    careful: bool,
    on_border: bool,
    excess: float,
    steps: int,
    share: float,
    enough: float,
) -> float:  # pragma: no cover - compiled
    """A Newton step to the minimum over the groups in use, in place; returns the multiplier.

    The norm is replaced by its second-order model, and the radius by a plane that touches there.
    Conjugate gradients solve for the step, preconditioned by the part of each group.

    Parameters
    ----------
    support : positions of the weights in use
    starts : where the groups begin among these, shape (G + 1,)
    group_weights : of the groups in use, shape (G,)
    careful : whether the model of each norm should bound it from above, not just touch it
    """
    count, groups = len(support), len(starts) - 1
    unit, normal, round_ = np.empty(count), np.zeros(count), np.empty(groups)
    inverse, spared = np.empty(count), np.zeros(groups)
    for g in range(groups):
        r = 0.0
        for m in range(starts[g], starts[g + 1]):
            r += weights[support[m]] ** 2
        r = np.sqrt(r)
        round_[g] = max(penalty, 0.0) * group_weights[g] / r
        if not careful:
            spared[g] = round_[g]
        for m in range(starts[g], starts[g + 1]):
            unit[m] = weights[support[m]] / r
            if on_border:
                normal[m] = group_weights[g] * unit[m]
            inverse[m] = 1.0 / max(lengths[support[m]] + round_[g], 1e-300)
    across, bent = np.empty(count), np.empty_like(gradient)
    _precondition(normal, starts, inverse, unit, spared, across)
    width = max(np.sum(across * normal), 1e-300)
    change = -(excess / width) * across
    _move(columns, support, change, along, rank_one, diagonal, bent)
    residual, applied, direction = np.empty(count), np.empty(count), np.zeros(count)
    for m in range(count):
        residual[m] = -_score(columns, support[m], gradient) - _score(columns, support[m], bent)
    _curve(change, starts, unit, round_, spared, applied)
    residual -= applied
    away, size, level, first = np.empty(count), 0.0, 0.0, -1.0
    for _ in range(steps):
        level = np.sum(across * residual) / width
        off = residual - level * normal
        left = np.max(np.abs(off))
        if first < 0.0:
            first = left
        if left <= max(share * first, enough):
            break
        _precondition(off, starts, inverse, unit, spared, away)
        before, size = size, np.sum(residual * away)
        direction = away + (size / before if before > 0.0 else 0.0) * direction
        _move(columns, support, direction, along, rank_one, diagonal, bent)
        _curve(direction, starts, unit, round_, spared, applied)
        bend = 0.0
        for m in range(count):
            applied[m] += _score(columns, support[m], bent)
            bend += direction[m] * applied[m]
        if bend <= 0.0:
            break
        change += (size / bend) * direction
        residual -= (size / bend) * applied
    for m in range(count):
        weights[support[m]] += change[m]
    return level


@njit(cache=True, nogil=True, error_model="numpy")
def _curve(
    change: Any, starts: Any, unit: Any, round_: Any, spared: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """The product with the Hessian of the norms, round I - spared unit unit' for each group."""
    for g in range(len(starts) - 1):
        product = 0.0
        for m in range(starts[g], starts[g + 1]):
            product += unit[m] * change[m]
        for m in range(starts[g], starts[g + 1]):
            out[m] = round_[g] * change[m] - spared[g] * product * unit[m]
