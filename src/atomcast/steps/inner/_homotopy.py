"""The compiled way from some weights to the best ones of a ball, along which every face is exact.

Loops are written out: whole arrays would take a compiler several times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64

from atomcast.known._sweeps import REORDER

#: A column that keeps no more than this share of its square beside those in use is one of them.
DEPENDENT = 1e-11
#: Atoms that come in are told apart by shares of this size, which no two have in common.
SPREAD, GOLDEN = 0.5, 0.6180339887498949
#: A slope is zero if it is no more than this share of the largest.
ROUNDING = 1e-9


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDER)
def _product(inverse: Any, size: int, vector: Any, out: Any) -> None:  # pragma: no cover - compiled
    """The product of the inverse with a vector."""
    for i in range(uint64(size)):
        row, total = inverse[i], 0.0
        for k in range(uint64(size)):
            total += row[k] * vector[k]
        out[i] = total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDER)
def _rank_one(
    inverse: Any, size: int, vector: Any, factor: float
) -> None:  # pragma: no cover - compiled
    """Add a multiple of vector vector' to the inverse."""
    for i in range(uint64(size)):
        row, amount = inverse[i], factor * vector[i]
        for k in range(uint64(size)):
            row[k] += amount * vector[k]


@njit(cache=True, nogil=True, error_model="numpy")
def _join(
    gram: Any, inverse: Any, chosen: Any, size: int, rank: int, j: int, across: Any, work: Any
) -> bool:  # pragma: no cover - compiled
    """Let the inverse have one more row; False if the column depends on those in use.

    Where as many are in use as can be, it does, whatever rounding says.
    """
    for i in range(size):
        across[i] = gram[j, chosen[i]]
    _product(inverse, size, across, work)
    rest = gram[j, j]
    for i in range(size):
        rest -= across[i] * work[i]
    if size >= rank or rest <= DEPENDENT * gram[j, j]:
        return False
    _rank_one(inverse, size, work, 1.0 / rest)
    for i in range(size):
        inverse[i, size] = inverse[size, i] = -work[i] / rest
    inverse[size, size] = 1.0 / rest
    chosen[size] = j
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _leave(
    inverse: Any, chosen: Any, size: int, place: int, work: Any
) -> None:  # pragma: no cover - compiled
    """Let the inverse have one row less: the last one takes its place."""
    last = size - 1
    for i in range(size):
        inverse[place, i], inverse[last, i] = inverse[last, i], inverse[place, i]
    for i in range(size):
        inverse[i, place], inverse[i, last] = inverse[i, last], inverse[i, place]
    for i in range(last):
        work[i] = inverse[i, last]
    _rank_one(inverse, last, work, -1.0 / inverse[last, last])
    chosen[place] = chosen[last]


@njit(cache=True, nogil=True, error_model="numpy")
def _with(
    inverse: Any, last: int, across: Any, solution: Any, side: float
) -> None:  # pragma: no cover - compiled
    """The product of the inverse with a right side, after the last one has joined with its own."""
    for i in range(last):
        side -= across[i] * solution[i]
    solution[last] = 0.0
    for i in range(last + 1):
        solution[i] += side * inverse[last, i]


@njit(cache=True, nogil=True, error_model="numpy")
def _without(
    inverse: Any, size: int, place: int, solution: Any
) -> None:  # pragma: no cover - compiled
    """The same, before one leaves, whose place the last one takes."""
    share = solution[place] / inverse[place, place]
    for i in range(size):
        solution[i] -= share * inverse[place, i]
    solution[place] = solution[size - 1]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDER)
def _slopes_along(
    gram: Any, chosen: Any, size: int, change: Any, along: Any
) -> None:  # pragma: no cover - compiled
    """How all slopes change with the weights in use, four of which at a time have their effect."""
    along[:] = 0.0
    fours = size - size % 4
    for i in range(0, fours, 4):
        a, b, c, d = change[i], change[i + 1], change[i + 2], change[i + 3]
        of_a, of_b = gram[chosen[i]], gram[chosen[i + 1]]
        of_c, of_d = gram[chosen[i + 2]], gram[chosen[i + 3]]
        for k in range(uint64(len(along))):
            along[k] += (a * of_a[k] + b * of_b[k]) + (c * of_c[k] + d * of_d[k])
    for i in range(fours, size):
        amount, row = change[i], gram[chosen[i]]
        for k in range(uint64(len(along))):
            along[k] += amount * row[k]


@njit(cache=True, nogil=True, error_model="numpy")
def _first_out(
    chosen: Any, size: int, weights: Any, signs: Any, change: Any, spared: int, step: float
) -> tuple[float, int]:  # pragma: no cover - compiled
    """When, and in which place, a weight in use comes to zero first; -1 if none within the step."""
    place = -1
    for i in range(size):
        if change[i] * signs[i] < 0.0 and chosen[i] != spared:
            there = -weights[chosen[i]] / change[i]
            if there < step:
                step, place = max(there, 0.0), i
    return step, place


@njit(cache=True, nogil=True, error_model="numpy")
def _first_in(
    free: Any, slopes: Any, along: Any, level: float, fall: float, rest: float, slack: Any,
    signed: bool, spared: int, step: float,
) -> tuple[float, int, float]:  # fmt: skip # pragma: no cover - compiled
    """When an atom that is not in use comes to the level first, which, and with what sign; or -1.

    An atom that has just left may only come in with the other sign.
    """
    atom, sign = -1, 0.0
    for j in range(len(slopes)):
        if not free[j]:
            continue
        bound, rate = level + rest * slack[j], fall + slack[j]
        rise = along[j] + rate
        if signed and rise > 0.0 and not (j == spared and slopes[j] > 0.0):
            there = (bound - slopes[j]) / rise
            if there < step:
                step, atom, sign = max(there, 0.0), j, -1.0
        rise = rate - along[j]
        if rise > 0.0 and not (j == spared and slopes[j] < 0.0):
            there = (bound + slopes[j]) / rise
            if there < step:
                step, atom, sign = max(there, 0.0), j, 1.0
    return step, atom, sign


@njit(cache=True, nogil=True, error_model="numpy")
def _same_face(
    gram: Any, inverse: Any, chosen: Any, size: int, rank: int, weights: Any, free: Any, work: Any
) -> int:  # pragma: no cover - compiled
    """Let the inverse be that of the weights which are not zero; returns their number, or -1."""
    across, projected = work
    for place in range(size - 1, -1, -1):
        if weights[chosen[place]] == 0.0:
            _leave(inverse, chosen, size, place, projected)
            size -= 1
    for i in range(size):
        free[chosen[i]] = False
    for j in range(len(weights)):
        if weights[j] != 0.0 and free[j]:
            if not _join(gram, inverse, chosen, size, rank, j, across, projected):
                return -1
            free[j] = False
            size += 1
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _exchanged(
    chosen: Any, size: int, weights: Any, signs: Any, atom: int, sign: float, parts: Any
) -> int:  # pragma: no cover - compiled
    """Let an atom stand for others, of which it is a combination, until the first is out of use.

    The image is the same, with a smaller norm. Returns the place of the one that is out of use, or
    -1 if the norm would be no smaller.
    """
    rate, step, place = 1.0, np.inf, -1
    for i in range(size):
        share = sign * parts[i] * signs[i]
        rate -= share
        if share > 0.0 and abs(weights[chosen[i]]) < step * share:
            step, place = abs(weights[chosen[i]]) / share, i
    if rate >= -DEPENDENT or place < 0:
        return -1
    for i in range(size):
        weights[chosen[i]] -= step * sign * parts[i]
    weights[atom] = step * sign
    return place


@njit(cache=True, nogil=True, error_model="numpy")
def follow(
    gram: Any, inverse: Any, chosen: Any, size: int, rank: int, slopes: Any, weights: Any,
    radius: float, signed: bool, faces: int,
) -> int:  # fmt: skip # pragma: no cover - compiled
    """From some weights to the best ones within a ball, in place.

    Returns how many are in use; or -1 if the way was lost, in which case the weights are those of
    where it was, and the inverse is of no more use.

    Parameters
    ----------
    gram : array with k or more rows and columns
        The products of the columns with each other.
    inverse, chosen, size : arrays with as many rows, and the number of those in use
        The inverse of the products of the columns in use, and which these are; changed in place.
    rank : int
        How many columns are independent at most.
    slopes, weights : arrays of shape (k,)
        Where the way begins; changed in place.
    radius : float
        Of the ball that it leads to.
    signed : bool
        Whether weights may be negative.
    faces : int
        After so many the way is lost.
    """
    k = len(weights)
    signs, change, equal, extra = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    along, slack, free = np.empty(k), np.empty(k), np.ones(k, dtype=np.bool_)
    work = (np.empty(k), np.empty(k))
    size = _same_face(gram, inverse, chosen, size, rank, weights, free, work)
    if size < 0:
        return -1
    level, first = np.inf, -1
    for i in range(size):
        signs[i] = np.sign(weights[chosen[i]])
        level = min(level, -slopes[chosen[i]] * signs[i])
    if size == 0:
        level = 0.0
        for j in range(k):
            merit = abs(slopes[j]) if signed else -slopes[j]
            if merit > level:
                level, first = merit, j
        if first < 0 or not _join(gram, inverse, chosen, 0, rank, first, *work):
            return -1
        signs[0], free[first], size = -np.sign(slopes[first]), False, 1
    floor = 1e-300  # slopes of weights inside the ball are zero but for rounding
    for j in range(k):
        floor = max(floor, ROUNDING * abs(slopes[j]))
    if level < -floor:
        return -1
    level = max(level, floor)
    # By so much a slope may be above the level at first, and less and less on the way. Those of
    # atoms that are not in use may by some more, each by another share: if all of them came in at
    # the same time, the way might go in circles.
    slacks = 0.0
    for j in range(k):
        merit = abs(slopes[j]) if signed or not free[j] else -slopes[j]
        slack[j] = max(merit - level, 0.0)
        if free[j]:
            slack[j] *= 1.0 + SPREAD * ((j * GOLDEN) % 1.0)
        slacks += slack[j]
    rest, spared = 1.0, first
    # What weights change by as the level falls, and as those above it come down to it.
    for i in range(size):
        work[0][i] = slack[chosen[i]] * signs[i]
    _product(inverse, size, work[0], extra)
    _product(inverse, size, signs, equal)
    for _ in range(faces):
        fall, gain = 0.0, 0.0
        for i in range(size):
            gain += signs[i] * extra[i]
        if size and level > 0.0:
            width, short = 0.0, radius
            for i in range(size):
                width += signs[i] * equal[i]
                short -= signs[i] * weights[chosen[i]]
            fall = (short / rest - gain) / width
        for i in range(size):
            change[i] = fall * equal[i] + extra[i]
        _slopes_along(gram, chosen, size, change, along)
        step, binds = rest, False
        inside = fall > 0.0 and level < step * fall
        if inside:
            step = level / fall
        if level <= 0.0:  # within the ball, until its border is reached
            growth, short = 0.0, radius
            for i in range(size):
                growth += signs[i] * change[i]
                short -= signs[i] * weights[chosen[i]]
            binds = growth > 0.0 and short < step * growth
            if binds:
                step = max(short / growth, 0.0)
        step, place = _first_out(chosen, size, weights, signs, change, spared, step)
        step, atom, sign = _first_in(
            free, slopes, along, level, fall, rest, slack, signed, spared, step
        )
        for i in range(size):
            weights[chosen[i]] += step * change[i]
        for j in range(k):
            slopes[j] += step * along[j]
        level, rest, spared = level - step * fall, rest - step, -1
        joined = atom >= 0 and _join(gram, inverse, chosen, size, rank, atom, *work)
        if atom >= 0:
            free[atom], place = False, -1
            if not joined:
                place = _exchanged(chosen, size, weights, signs, atom, sign, work[1])
        if place >= 0:
            spared = chosen[place]
            weights[spared], free[spared] = 0.0, True
            _without(inverse, size, place, equal)
            _without(inverse, size, place, extra)
            _leave(inverse, chosen, size, place, work[0])
            size -= 1
            signs[place] = signs[size]
            joined = atom >= 0 and _join(gram, inverse, chosen, size, rank, atom, *work)
        if joined:
            _with(inverse, size, work[0], equal, sign)
            _with(inverse, size, work[0], extra, slack[atom] * sign)
            signs[size], spared = sign, atom
            size += 1
        if rest <= 0.0:
            return size
        if atom >= 0 or place >= 0:
            continue
        if binds:
            level = floor
            continue
        if not inside or slacks <= 0.0:
            return size
        level = 0.0  # the ball does not bind, but slopes are not zero yet
    return -1
