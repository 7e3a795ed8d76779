"""The weights of a kernel machine of few points: guess which have one, solve for them, look again.

All points that fall short of the margin join at once those with weight, and all whose weights come
out negative leave at once. Nothing says that this ends, but it nearly always does, after a few
factorisations. The first of them would be of all points, and take most of the time: a third of
them, drawn at random, tell first which of the others are likely to have weight, and so on.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Precision = Literal["f", "d"]

#: Some tell which points are likely to have weight: one of so many, if these are as many, and with
#: margins that may fall short by this much.
ONE_OF, FEWEST, ROUGH = 3, 64, 1e-3
#: From so many points on, factors in single precision and corrections take less time.
MANY = 300
#: So many faces are tried after one with fewer wrong points than all before it, and so many if only
#: those without wrong signs take further points in.
BOLD, MILD = 4, 24
#: So many corrections are enough, or single precision is not; they end where margins of points with
#: weight are off by this share of what others may fall short by.
CORRECTIONS, SHARE = 6, 0.1
#: So many rows of a face are gathered at a time, which stay in cache.
HEIGHT = 128
#: A factor and its first solution, and further ones, by precision.
SOLVED = {"f": (lapack.sposv, lapack.spotrs), "d": (lapack.dposv, lapack.dpotrs)}


def machine_weights(matrix: Floats, enough: float) -> tuple[Floats, Floats] | None:
    """The weights at which no margin falls short of one by more than enough, and the margins.

    None if that is not easy.

    Parameters
    ----------
    matrix : array of shape (n, n)
        K~ between points in random order.
    enough : float
    """
    single: tuple[Precision, ...] = ("f",) if len(matrix) >= MANY else ()
    for precision in (*single, "d"):
        found = _by_some(matrix, enough, precision)
        if found is not None:
            return found
    return _from_face(matrix, np.ones(len(matrix), bool), enough, "d", bold=False)


def _by_some(matrix: Floats, enough: float, precision: Precision) -> tuple[Floats, Floats] | None:
    """The same, for which some points say where to begin."""
    inside, some = np.ones(len(matrix), bool), len(matrix) // ONE_OF
    if some >= FEWEST:
        part = np.ascontiguousarray(matrix[:some, :some])
        known = _by_some(part, max(enough, ROUGH), precision)
        if known is not None:
            inside = known[0].dot(matrix[:some]) < 1.0 - enough
            inside[:some] = known[0] > 0.0
    return _from_face(matrix, inside, enough, precision)


def _from_face(
    matrix: Floats,
    inside: NDArray[np.bool_],
    enough: float,
    precision: Precision,
    bold: bool = True,
) -> tuple[Floats, Floats] | None:
    """The same, from a guess of the points that have one; None where that is not easy."""
    begin, go_on = SOLVED[precision]
    left, fewest, seen = BOLD if bold else MILD, len(matrix), set[bytes]()
    ones, level = np.ones(len(matrix)), 1.0 - enough
    while left:
        free, known, left = inside.nonzero()[0], inside.tobytes(), left - 1
        if not len(free) or known in seen:
            return None  # there is no face, or it comes round again
        seen.add(known)
        face = lower_part(matrix, free, precision)
        factor, found, failed = begin(face, ones[: len(free)], overwrite_a=True)
        if failed:
            return None
        for _ in range(CORRECTIONS):
            weights = np.zeros(len(matrix))
            weights[free] = found
            margins = weights.dot(matrix)
            positive, should = found > 0.0, margins < level
            should[free] = positive
            wrong = int(np.count_nonzero(should != inside))
            if wrong:
                break
            lacking = 1.0 - margins.take(free)
            if np.abs(lacking).max() <= SHARE * enough:
                return weights, margins
            found = weights.take(free) + go_on(factor, lacking)[0]
        else:
            return None
        if not (bold or positive.all()):  # first, all that are there must be right
            should[:] = False
            should[free] = positive
        inside = should
        if wrong < fewest and bold:
            fewest, left = wrong, BOLD
    return None


def lower_part(matrix: Floats, free: Positions, precision: Precision = "d") -> NDArray[Any]:
    """The part of a matrix at some points, as LAPACK wants it: all that is above the diagonal."""
    if precision == "d" and len(free) <= HEIGHT:
        return (matrix.take(free, 0).take(free, 1) if len(free) < len(matrix) else matrix.copy()).T
    face = np.empty((len(free), len(free)), precision)
    for start in range(0, len(free), HEIGHT):
        stop = start + HEIGHT
        # What is below the diagonal here is above it there, where columns count.
        face[start:stop, :stop] = matrix.take(free[start:stop], 0).take(free[:stop], 1)
    return face.T
