"""Newton's method for a kernel machine: the best weights on the face of those that are not zero.

K~ is a kernel matrix with signs, side_i side_j matrix_ij.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from atomcast.known.kernels.rows import Rows

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: After so many corrections, rounding is what is left.
CORRECTIONS = 30
#: Cholesky factors and solutions by precision; SciPy's own functions look at more than these do,
#: which takes longer than small machines do.
FACTOR = {"f": (lapack.spotrf, lapack.spotrs), "d": (lapack.dpotrf, lapack.dpotrs)}


def go_to_face(rows: Rows, side: Floats, beta: Floats, margins: Floats, enough: float) -> None:
    """Go to the best weights on a face, on which those at zero, or that would fall below, stay.

    Both beta and its margins, K~ beta, are changed in place; `enough` is what the margins of
    weights that are not zero may differ from one.
    """

    def image_of(change: Floats) -> Floats:
        return side * rows.combined(side * change)

    change, used = np.zeros(len(beta)), np.flatnonzero(beta)
    if len(used) > rows.room:  # their rows cannot be there all at once: descent has to do
        return
    short = left = 1.0 - margins
    while len(used):
        found = _solved(rows, side, used, left[used], enough)
        if found is None:  # by rounding: descent has to do
            return
        below = beta[used] + found < 0.0
        if not below.any():
            change[used] = found
            break
        bound, used = used[below], used[~below]
        change[bound] = -beta[bound]
        left = short - image_of(change)
    image = image_of(change)
    slope, bend = float(change @ short), float(change @ image)
    # A full step that descends is taken as it is: it leaves weights at exactly zero.
    length = 1.0 if bend <= 1.8 * slope else max(slope / bend, 0.0)
    np.maximum(beta + length * change, 0.0, out=beta)
    margins += length * image


def _solved(
    rows: Rows, side: Floats, used: Positions, short: Floats, enough: float
) -> Floats | None:
    """The change of some weights after which none of their margins falls short any more.

    A factor in the precision of the matrix, and conjugate gradients that make up for it: where
    margin errors cost much, single precision alone leaves most of the way.
    """
    from atomcast.known.kernels._loops import some_products

    places, side, solved = rows.places(used), side[used], factored(rows, used)
    if solved is None:
        return None
    residual, change, whole = side * short, np.zeros(len(used)), np.zeros(used[-1] + 1)
    direction, strength, product = np.zeros(len(used)), np.inf, np.empty(len(used))
    for _ in range(CORRECTIONS):
        towards = solved(residual)
        before, strength = strength, float(residual @ towards)
        if not strength > 0.0:
            break
        direction = towards + strength / before * direction
        whole[used] = direction
        some_products(rows.values, places, whole, product)
        length = strength / float(direction @ product)
        change += length * direction
        residual -= length * product
        if np.abs(residual).max() <= enough:
            break
    return side * change


def factored(rows: Rows, used: Positions) -> Callable[[Floats], Floats] | None:
    """The inverse of the part of the matrix at some points, in its precision; None if it fails."""
    from atomcast.known.kernels._row_loops import lower_part

    own = np.zeros((len(used),) * 2, rows.values.dtype)
    lower_part(rows.values, rows.places(used), used.astype(np.uint64), own)
    factor_of, solved = FACTOR[own.dtype.char]
    # LAPACK counts by columns: to it, the lower part is the upper one.
    factor, failed = factor_of(own.T, overwrite_a=True, clean=False)
    if failed:
        return None
    return lambda vector: solved(factor, vector.astype(own.dtype))[0].astype(np.float64)
