"""The weights of a kernel regression of few points: guess which are outside the tube, solve, look.

Where these are, and on which side, the weights solve linear equations; where they lead to, others
may be outside. That goes on until they are the same, which nearly always happens, after a few
factorisations. A third of the points, drawn at random, tells first where the others are likely to
be, and so on, as in `machine_pivots.py`. Newton's method, with a line search, is the careful way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from atomcast.steps.inner.machine_pivots import BOLD, FEWEST, ONE_OF, lower_part

Floats = NDArray[np.float64]


class Tube(NamedTuple):
    """Points in random order and their tube.

    Parameters
    ----------
    matrix : array of shape (n, n)
        K~ between them, with a ridge on its diagonal.
    ridge, targets : array of shape (n,)
    epsilon : float
        How far predictions may be off.
    """

    matrix: Floats
    ridge: Floats
    targets: Floats
    epsilon: float

    def first(self, count: int) -> Tube:
        """So many of the points."""
        part = np.ascontiguousarray(self.matrix[:count, :count])
        return Tube(part, self.ridge[:count], self.targets[:count], self.epsilon)

    def sides(self, errors: Floats) -> Floats:
        """1 or -1 where a target is above or below the tube, 0 where it is within."""
        return np.sign(errors) * (np.abs(errors) > self.epsilon)


def tube_weights(tube: Tube) -> tuple[Floats, Floats, float] | None:
    """The best weights, their products with K~, and the level; None if that is not easy."""
    some = len(tube.targets) // ONE_OF
    found = tube_weights(tube.first(some)) if some >= FEWEST else None
    if found is None:
        errors = tube.targets - 0.5 * (tube.targets.min() + tube.targets.max())
    else:
        beta, _, level = found
        errors = tube.targets - level - beta.dot(tube.matrix[:some])
        errors[:some] += beta * tube.ridge[:some]
    return _from_piece(tube, tube.sides(errors))


def _from_piece(tube: Tube, side: Floats) -> tuple[Floats, Floats, float] | None:
    """The same from a guess of the sides that points are on."""
    left, fewest, seen = BOLD, len(side), set[bytes]()
    while left:
        free, known, left = side.nonzero()[0], side.tobytes(), left - 1
        if not len(free) or known in seen:
            return None  # all are within, or it comes round again
        seen.add(known)
        right = np.ones((2, len(free)))
        right[0] = (tube.targets - tube.epsilon * side).take(free)
        _, found, failed = dposv(lower_part(tube.matrix, free), right.T, overwrite_a=True)
        if failed:
            return None
        level = float(found[:, 0].sum() / found[:, 1].sum())
        beta = np.zeros(len(side))
        beta[free] = found[:, 0] - level * found[:, 1]
        products = beta.dot(tube.matrix)
        now = tube.sides(tube.targets - level - products + beta * tube.ridge)
        wrong = int(np.count_nonzero(now != side))
        if not wrong:
            return beta, products, level
        side = now
        if wrong < fewest:
            fewest, left = wrong, BOLD
    return None
