"""The numba loops of the decomposition method."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64


@njit(cache=True, nogil=True)
def solve_pairs(
    matrix: Any, weights: Any, products: Any, tolerance: Any, most: Any
) -> int:  # pragma: no cover - compiled
    """Shift weight between pairs until no pair promises more than `tolerance`.

    The receiver has the lowest slope; the giver is the one from which a shift gains most, by the
    second-order rule of Fan, Chen and Lin (2005). Weights and products are changed in place.
    """
    q = uint64(len(weights))
    for step in range(most):
        receiver = uint64(0)
        for i in range(q):
            if products[i] < products[receiver]:
                receiver = uint64(i)
        low = products[receiver]
        row = matrix[receiver]
        giver, gain, worst = receiver, 0.0, low
        for j in range(q):
            if weights[j] > 0.0 and products[j] > low:
                worst = max(worst, products[j])
                slope = products[j] - low
                bend = max(row[receiver] + matrix[j, j] - 2.0 * row[j], 1e-300)
                if slope * slope > gain * bend:
                    giver, gain = uint64(j), slope * slope / bend
        if worst - low <= tolerance or giver == receiver:
            return step
        bend = max(row[receiver] + matrix[giver, giver] - 2.0 * row[giver], 1e-300)
        amount = (products[giver] - low) / bend
        if amount >= weights[giver]:
            amount = weights[giver]
            weights[giver] = 0.0
        else:
            weights[giver] -= amount
        weights[receiver] += amount
        other = matrix[giver]
        for i in range(q):
            products[i] += amount * (row[i] - other[i])
    return most


@njit(cache=True, nogil=True)
def add_rows(matrix: Any, positions: Any, factors: Any, total: Any) -> None:  # pragma: no cover
    """total += sum_r factors[r] matrix[positions[r]], in double precision, in blocks."""
    n, block = uint64(len(total)), uint64(2048)
    for b in range((n + block - uint64(1)) // block):
        start = uint64(b * block)
        stop = min(n, start + block)
        for r in range(uint64(len(positions))):
            factor = factors[r]
            row = matrix[positions[r]]
            for i in range(start, stop):
                total[i] += factor * row[i]


@njit(cache=True, nogil=True)
def square_of(matrix: Any, positions: Any, out: Any) -> None:  # pragma: no cover - compiled
    """The rows and columns of a matrix at some positions."""
    m = uint64(len(positions))
    for r in range(m):
        row = matrix[positions[r]]
        for c in range(m):
            out[r, c] = row[positions[c]]
