"""The compiled solution on a face of the domain: where it is known which weights are not zero.

Loops are written out: whole arrays would take a compiler several times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from atomcast.known._sweeps import REORDER, _add, _score


@njit(cache=True, nogil=True, error_model="numpy")
def solve_face(
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
) -> tuple[float, int]:  # pragma: no cover - compiled
    """A Newton step to the minimum over the groups in use, in place.

    Returns the multiplier, and how many steps of conjugate gradients were taken.

    The norm is replaced by its second-order model, and the radius by a plane that touches there.
    Where each weight is a group of its own, the norm is flat: with a penalty of zero, the step is
    the exact solution. Conjugate gradients within the plane, preconditioned by the part of each
    group, end when no slope is off by more than `enough`, or by more than a share of what it first
    was.

    Parameters
    ----------
    columns, lengths, along, rank_one, diagonal, weights, gradient : as in `_sweeps.sweep`
    support : positions of the weights in use
    starts : where the groups begin among these, shape (G + 1,)
    group_weights : of the groups in use, shape (G,)
    penalty : how much the norms bend
    careful : whether the model of each norm should bound it from above, not just touch it
    on_border : whether to stay in the plane; by `excess` the norm is too large at the start
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
    across, away, direction = np.empty(count), np.empty(count), np.zeros(count)
    change, residual, applied = np.empty(count), np.empty(count), np.empty(count)
    bent = np.empty(len(gradient))
    _precondition(normal, starts, inverse, unit, spared, across)
    width = max(_dot(across, normal), 1e-300)
    for m in range(count):
        change[m] = -(excess / width) * across[m]
    _curve(change, starts, unit, round_, spared, residual)
    for i in range(len(bent)):
        bent[i] = gradient[i]
    _move(columns, support, change, along, rank_one, diagonal, bent, residual)
    for m in range(count):
        residual[m] = -residual[m]
    size, level, first, taken = 0.0, 0.0, -1.0, 0
    for _ in range(steps):
        level, left = _dot(across, residual) / width, 0.0
        for m in range(count):
            applied[m] = residual[m] - level * normal[m]
            left = max(left, abs(applied[m]))
        if first < 0.0:
            first = left
        if left <= max(share * first, enough):
            break
        _precondition(applied, starts, inverse, unit, spared, away)
        before, size = size, _dot(applied, away)
        ratio = size / before if before > 0.0 else 0.0
        for m in range(count):
            direction[m] = away[m] + ratio * direction[m]
        _curve(direction, starts, unit, round_, spared, applied)
        for i in range(len(bent)):
            bent[i] = 0.0
        _move(columns, support, direction, along, rank_one, diagonal, bent, applied)
        bend = _dot(direction, applied)
        if bend <= 0.0:
            break
        for m in range(count):
            change[m] += (size / bend) * direction[m]
            residual[m] -= (size / bend) * applied[m]
        taken += 1
    for m in range(count):
        weights[support[m]] += change[m]
    return level, taken


@njit(cache=True, nogil=True, fastmath=REORDER)
def _dot(a: Any, b: Any) -> float:  # pragma: no cover - compiled
    total = 0.0
    for m in range(len(a)):
        total += a[m] * b[m]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _move(
    columns: Any,
    support: Any,
    change: Any,
    along: Any,
    rank_one: Any,
    diagonal: Any,
    bent: Any,
    slopes: Any,
) -> None:  # pragma: no cover - compiled
    """Add to a gradient what goes with a change of weights, and to slopes what follows from it."""
    tilt = 0.0
    for m in range(len(support)):
        _add(columns, support[m], change[m], diagonal, bent)
        tilt += change[m] * along[support[m]]
    for i in range(len(rank_one)):
        bent[i] -= tilt * rank_one[i]
    for m in range(len(support)):
        slopes[m] += _score(columns, support[m], bent)


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
