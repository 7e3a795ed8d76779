"""Compiled passes over known columns; imported where many atoms are known.

Columns come in three kinds: rows of a dense array, the three arrays of compressed sparse columns,
or the one matrix A'HA of their products. Two verbs are all that the passes need of them, and which
code these stand for is decided by the type of the columns when a pass is compiled. For products,
an image is a change of slopes, so that the score of a column is just its own entry.
"""

from __future__ import annotations

from typing import Any

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
