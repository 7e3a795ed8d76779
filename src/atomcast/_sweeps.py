"""Compiled passes of coordinate descent over stored columns; imported where many atoms are known."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True, inline="always")
def _shrunk(point: float, threshold: float, signed: bool) -> float:
    if point > threshold:
        return point - threshold
    if signed and point < -threshold:
        return point + threshold
    return 0.0


@njit(cache=True, nogil=True)
def sweep_sparse(
    data: Any,
    indices: Any,
    starts: Any,
    positions: Any,
    weights: Any,
    lengths: Any,
    along: Any,
    gradient: Any,
    offset: float,
    diagonal: Any,
    penalty: float,
    signed: bool,
) -> tuple[float, float]:
    worst = 0.0
    for j in positions:
        length = lengths[j]
        if length <= 0.0:
            continue
        score = -along[j] * offset
        for p in range(starts[j], starts[j + 1]):
            score += data[p] * gradient[indices[p]]
        old = weights[j]
        new = _shrunk(old - score / length, penalty / length, signed)
        if new != old:
            change = new - old
            weights[j] = new
            offset += change * along[j]
            for p in range(starts[j], starts[j + 1]):
                i = indices[p]
                gradient[i] += change * diagonal[i] * data[p]
            worst = max(worst, abs(change) * length)
    return worst, offset


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def sweep_dense(
    rows: Any,
    positions: Any,
    weights: Any,
    lengths: Any,
    along: Any,
    gradient: Any,
    offset: float,
    diagonal: Any,
    penalty: float,
    signed: bool,
) -> tuple[float, float]:
    worst = 0.0
    d = rows.shape[1]
    for j in positions:
        length = lengths[j]
        if length <= 0.0:
            continue
        score = -along[j] * offset
        for i in range(d):
            score += rows[j, i] * gradient[i]
        old = weights[j]
        new = _shrunk(old - score / length, penalty / length, signed)
        if new != old:
            change = new - old
            weights[j] = new
            offset += change * along[j]
            for i in range(d):
                gradient[i] += change * diagonal[i] * rows[j, i]
            worst = max(worst, abs(change) * length)
    return worst, offset
