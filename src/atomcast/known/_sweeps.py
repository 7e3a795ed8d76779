"""Compiled passes over known columns; imported where many atoms are known.

Columns come in three kinds: rows of a dense array, the three arrays of compressed sparse columns,
or the one matrix A'HA of their products. Two verbs are all that the passes need of them, and which
code these stand for is decided by the type of the columns when a pass is compiled. For products,
an image is a change of slopes, so that the score of a column is just its own entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types, uint64
from numba.extending import overload

#: Reordering of sums is all that is needed to vectorise them; NaNs keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


def _score(columns: Any, j: Any, vector: Any) -> Any:
    """The product of column j with a vector."""


def _add(columns: Any, j: Any, amount: Any, diagonal: Any, image: Any) -> Any:
    """Add an amount of diag(diagonal) times column j to an image."""


@overload(_score, jit_options={"fastmath": REORDER})
def _score_of(columns: Any, j: Any, vector: Any) -> Any:  # pragma: no cover - compiled
    def of_dense(columns: Any, j: Any, vector: Any) -> Any:
        total = 0.0
        for i in range(uint64(len(vector))):
            total += columns[j, i] * vector[i]
        return total

    def of_sparse(columns: Any, j: Any, vector: Any) -> Any:
        data, indices, starts = columns
        total = 0.0
        for p in range(uint64(starts[j]), uint64(starts[j + 1])):
            total += data[p] * vector[uint64(indices[p])]
        return total

    def of_products(columns: Any, j: Any, vector: Any) -> Any:
        return vector[j]

    return _of_kind(columns, of_dense, of_sparse, of_products)


@overload(_add, jit_options={"fastmath": REORDER})
def _add_of(
    columns: Any, j: Any, amount: Any, diagonal: Any, image: Any
) -> Any:  # pragma: no cover - compiled
    def of_dense(columns: Any, j: Any, amount: Any, diagonal: Any, image: Any) -> Any:
        for i in range(uint64(len(image))):
            image[i] += amount * diagonal[i] * columns[j, i]

    def of_sparse(columns: Any, j: Any, amount: Any, diagonal: Any, image: Any) -> Any:
        data, indices, starts = columns
        for p in range(uint64(starts[j]), uint64(starts[j + 1])):
            i = uint64(indices[p])
            image[i] += amount * diagonal[i] * data[p]

    def of_products(columns: Any, j: Any, amount: Any, diagonal: Any, image: Any) -> Any:
        (matrix,) = columns
        for i in range(uint64(len(image))):
            image[i] += amount * matrix[j, i]

    return _of_kind(columns, of_dense, of_sparse, of_products)


def _of_kind(columns: Any, of_dense: Any, of_sparse: Any, of_products: Any) -> Any:
    """The code for the type of the columns."""
    if isinstance(columns, types.Array):
        return of_dense
    return of_sparse if len(columns) == 3 else of_products


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(
    columns: Any,
    chosen: Any,
    lengths: Any,
    along: Any,
    rank_one: Any,
    diagonal: Any,
    weights: Any,
    gradient: Any,
    penalty: float,
    signed: bool,
    sweeps: int,
    share: float,
    enough: float,
) -> bool:  # pragma: no cover - compiled
    """Coordinate descent on a quadratic plus a penalty times the sum of the weights' sizes.

    Sweeps end when no slope was off by more than `enough`, or by more than a share of the first
    sweep's; False if that was not nearly so after the last of them.

    Parameters
    ----------
    columns : see above
    chosen : positions of the weights that may change
    lengths, along : arrays of shape (k,), the bend along each weight, and A'u
    rank_one, diagonal : u and h of the curvature diag(h) - u u', shape (d,); u may be empty
    weights, gradient : arrays of shape (k,) and (d,), changed in place
    signed : whether weights may be negative
    """
    shift, first, worst = 0.0, 0.0, 0.0
    settled = False
    for k in range(sweeps):
        worst = 0.0
        for j in chosen:
            length = lengths[j]
            if length <= 0.0:
                continue
            old = weights[j]
            point = old * length - _score(columns, j, gradient) + along[j] * shift
            new = 0.0
            if point > penalty:
                new = (point - penalty) / length
            elif signed and point < -penalty:
                new = (point + penalty) / length
            if new != old:
                change = new - old
                weights[j] = new
                shift += change * along[j]
                _add(columns, j, change, diagonal, gradient)
                worst = max(worst, abs(change) * length)
        if k == 0:
            first = worst
        if worst <= max(share * first, enough):
            settled = True
            break
    for i in range(len(rank_one)):
        gradient[i] -= shift * rank_one[i]
    return settled or worst <= 0.3 * first


@njit(cache=True, nogil=True, error_model="numpy")
def _move(
    columns: Any, support: Any, change: Any, along: Any, rank_one: Any, diagonal: Any, bent: Any
) -> None:  # pragma: no cover - compiled
    """The change of the gradient that goes with a change of some weights."""
    bent[:] = 0.0
    tilt = 0.0
    for m in range(len(support)):
        _add(columns, support[m], change[m], diagonal, bent)
        tilt += change[m] * along[support[m]]
    for i in range(len(rank_one)):
        bent[i] -= tilt * rank_one[i]


@njit(cache=True, nogil=True, error_model="numpy")
def solve_face(
    columns: Any,
    support: Any,
    lengths: Any,
    along: Any,
    rank_one: Any,
    diagonal: Any,
    weights: Any,
    gradient: Any,
    normal: Any,
    excess: float,
    steps: int,
    share: float,
    enough: float,
) -> float:  # pragma: no cover - compiled
    """The minimum over the affine hull of a face, in place; returns the multiplier there.

    These are conjugate gradients, preconditioned by the lengths of the columns, within the
    hyperplane where the norm is the radius. They end when no slope is off by more than `enough`,
    or by more than a share of what it first was.

    Parameters
    ----------
    columns, lengths, along, rank_one, diagonal, weights, gradient : as in `sweep`
    support : positions of the weights that are not zero
    normal : array of shape (m,), the signs of these weights; zeros inside the domain
    excess : by how much the norm is too large at the start
    """
    inverse, bent = 1.0 / lengths[support], np.empty_like(gradient)
    across = inverse * normal
    width = max(np.sum(across * normal), 1e-300)
    change = -(excess / width) * across
    _move(columns, support, change, along, rank_one, diagonal, bent)
    gradient += bent
    residual, applied = np.empty(len(support)), np.empty(len(support))
    for m in range(len(support)):
        residual[m] = -_score(columns, support[m], gradient)
    direction, size, level, first = np.zeros(len(support)), 0.0, 0.0, -1.0
    for _ in range(steps):
        level = np.sum(across * residual) / width
        off = residual - level * normal
        left = np.max(np.abs(off))
        if first < 0.0:
            first = left
        if left <= max(share * first, enough):
            break
        before, size = size, np.sum(residual * inverse * off)
        direction = inverse * off + (size / before if before > 0.0 else 0.0) * direction
        _move(columns, support, direction, along, rank_one, diagonal, bent)
        bend = 0.0
        for m in range(len(support)):
            applied[m] = _score(columns, support[m], bent)
            bend += direction[m] * applied[m]
        if bend <= 0.0:
            break
        step = size / bend
        change += step * direction
        residual -= step * applied
        gradient += step * bent
    for m in range(len(support)):
        weights[support[m]] += change[m]
    return level
