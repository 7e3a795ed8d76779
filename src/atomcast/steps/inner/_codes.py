"""Compiled fits of many signals by known atoms: each signal has few, and a problem of its own.

All signals share the products of the atoms with each other, so that what a signal costs depends on
the number of its own atoms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

#: What is left of an atom that depends on others, as a share of its square, is rounding.
DEPENDENT = 1e-12
#: Sums may be reordered, which vectorises them.
FAST = {"reassoc", "contract", "nsz"}
#: A signal changes its atoms so many times for each one known, at most.
PATIENCE = 10


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _solve(lower: Any, size: int, vector: Any) -> None:  # pragma: no cover - compiled
    """Solve lower lower' x = vector in place, row by row."""
    for i in range(size):
        row, total = lower[i], vector[i]
        for k in range(i):
            total -= row[k] * vector[k]
        vector[i] = total / row[i]
    for i in range(size - 1, -1, -1):
        row, amount = lower[i], vector[i] / lower[i, i]
        vector[i] = amount
        for k in range(i):
            vector[k] -= row[k] * amount


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _factor(
    gram: Any, chosen: Any, lower: Any, done: int, size: int
) -> int:  # pragma: no cover - compiled
    """Extend a Cholesky factor from `done` to `size` atoms; returns how far it got."""
    for i in range(done, size):
        row, own = lower[i], gram[chosen[i]]
        for k in range(i):
            total, other = own[chosen[k]], lower[k]
            for m in range(k):
                total -= row[m] * other[m]
            row[k] = total / other[k]
        length = own[chosen[i]]
        square = length
        for m in range(i):
            square -= row[m] * row[m]
        if square <= DEPENDENT * length:
            return i
        row[i] = np.sqrt(square)
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _first_zero(
    chosen: Any, weights: Any, signs: Any, change: Any, size: int, step: float
) -> tuple[int, float]:  # pragma: no cover - compiled
    """The place whose weight first comes to zero along a change of up to `step`; -1 if none."""
    place = -1
    for i in range(size):
        if change[i] * signs[i] < 0.0:
            there = -weights[chosen[i]] / change[i]
            if there < step:
                place, step = i, max(there, 0.0)
    return place, step


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(
    gram: Any,
    products: Any,
    radius: float,
    weights: Any,
    chosen: Any,
    signs: Any,
    lower: Any,
    work: Any,
    done: int,
    size: int,
) -> int:  # pragma: no cover - compiled
    """The best weights of the chosen atoms, less those that leave; returns how many stay.

    The weights move to the best ones of the signs at hand; one that comes to zero on the way there
    leaves, and the others go on from there. The factor of the first `done` atoms is known, and in
    the end that of all that stay.
    """
    change, along = work
    while size > 0:
        done = _factor(gram, chosen, lower, done, size)
        if done < size:  # the atom is a combination of others: the same image with smaller weights
            for k in range(done):
                change[k] = gram[chosen[done], chosen[k]]
            _solve(lower, done, change)
            rate = 1.0
            for k in range(done):
                change[k] *= -signs[done]
                rate += signs[k] * change[k]
            change[done] = signs[done]
            if rate > 0.0:
                for k in range(done + 1):
                    change[k] = -change[k]
            place, step = _first_zero(chosen, weights, signs, change, done + 1, np.inf)
            if place < 0:
                place, step = done, 0.0
            for k in range(done + 1):
                weights[chosen[k]] += step * change[k]
        else:
            total, slope = 0.0, 0.0
            for k in range(size):
                change[k], along[k] = products[chosen[k]], signs[k]
            _solve(lower, size, change)
            _solve(lower, size, along)
            for k in range(size):
                total += signs[k] * change[k]
                slope += signs[k] * along[k]
            multiplier = max((total - radius) / slope, 0.0)
            for k in range(size):
                change[k] += -multiplier * along[k] - weights[chosen[k]]
            place, step = _first_zero(chosen, weights, signs, change, size, 1.0)
            for k in range(size):
                weights[chosen[k]] += step * change[k]
            if place < 0:
                return size
        weights[chosen[place]] = 0.0
        size -= 1
        for k in range(place, size):
            chosen[k], signs[k] = chosen[k + 1], signs[k + 1]
        done = min(done, place)
    return 0


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _slopes(
    gram: Any, products: Any, weights: Any, chosen: Any, size: int, slopes: Any
) -> None:  # pragma: no cover - compiled
    """The products of all atoms with the residual."""
    slopes[:] = products
    for k in range(size):
        amount, row = weights[chosen[k]], gram[chosen[k]]
        for j in range(len(slopes)):
            slopes[j] -= amount * row[j]


@njit(cache=True, nogil=True, error_model="numpy")
def in_balls(
    gram: Any, products: Any, radii: Any, enough: Any, most: int, weights: Any
) -> None:  # pragma: no cover - compiled
    """Minimise ||x - D'w||^2 over ||w||_1 <= radius for each signal, by a method of active sets.

    Parameters
    ----------
    gram : array of shape (K, K)
        The products of the atoms with each other.
    products : array of shape (m, K)
        Their products with each signal.
    radii, enough : arrays of shape (m,)
        The radius, and the duality gap over these atoms that is good enough.
    most : int
        No signal has more atoms than this: their length, or their number.
    weights : array of shape (m, K)
        Where to start; changed in place.
    """
    atoms = len(gram)
    chosen, signs = np.empty(most + 2, dtype=np.int64), np.empty(most + 2)
    lower, slopes = np.empty((most + 2, most + 2)), np.empty(atoms)
    work = (np.empty(most + 2), np.empty(most + 2))
    for b in range(len(products)):
        w, c = weights[b], products[b]
        size = 0
        for j in range(atoms):
            if w[j] != 0.0:
                chosen[size], signs[size] = j, np.sign(w[j])
                size += 1
        size = _settle(gram, c, radii[b], w, chosen, signs, lower, work, 0, size)
        for _ in range(PATIENCE * atoms):
            _slopes(gram, c, w, chosen, size, slopes)
            best, inner = 0, 0.0
            for j in range(1, atoms):
                if abs(slopes[j]) > abs(slopes[best]):
                    best = j
            for k in range(size):
                inner += w[chosen[k]] * slopes[chosen[k]]
            gap = 2.0 * (radii[b] * abs(slopes[best]) - inner)
            if gap <= enough[b] or w[best] != 0.0:
                break
            chosen[size], signs[size] = best, np.sign(slopes[best])
            size = _settle(gram, c, radii[b], w, chosen, signs, lower, work, size, size + 1)
            if w[best] == 0.0:
                break  # it is of use by rounding alone


@njit(cache=True, nogil=True, error_model="numpy")
def least_squares(
    gram: Any, products: Any, supports: Any, weights: Any
) -> None:  # pragma: no cover - compiled
    """The best weights of each signal's own atoms; one that depends on others has none.

    Parameters
    ----------
    gram, products : as for `in_balls`
    supports : int array of shape (m, s)
        The atoms of each signal; -1 beyond the last.
    weights : array of shape (m, K)
        Changed in place; zero but for the supports.
    """
    most = supports.shape[1]
    chosen, found = np.empty(most, dtype=np.int64), np.empty(most)
    lower = np.empty((most, most))
    for b in range(len(products)):
        size = 0
        for k in range(most):
            if supports[b, k] < 0:
                break
            chosen[size] = supports[b, k]
            weights[b, chosen[size]] = 0.0
            size = _factor(gram, chosen, lower, size, size + 1)
        for k in range(size):
            found[k] = products[b, chosen[k]]
        _solve(lower, size, found)
        for k in range(size):
            weights[b, chosen[k]] = found[k]
