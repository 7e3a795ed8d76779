"""The best weights of a kernel regression over the points that are known.

The primal, ``||w||^2 / 2 + C / 2 * sum(max(0, |e_i| - epsilon)^2)`` with the errors e_i, is convex
and made of quadratic pieces: which one, the points outside the tube tell. Newton's method goes to
the minimum of a piece and looks which points are outside there; it ends where they are the same. On
a piece, the weights solve K~ beta + level = y -+ epsilon over the points outside, and sum to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

from atomcast.known.kernels.kernel_matrix import AugmentedKernel
from atomcast.known.kernels.target_set import TargetActiveSet
from atomcast.steps.inner.low_rank import RANKS, SMALL, PivotedFactor
from atomcast.steps.inner.machine_face import factored
from atomcast.steps.inner.projected_newton import LowRank

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Memory = Mapping[str, NDArray[Any]]
Linear = Callable[[Floats], Floats]

#: Pieces to go to; a dozen are usual.
PIECES = 100
#: Up to so many points outside the tube, a factor of their matrix in double precision is quick, up
#: to so many where values are computed anew, and up to so many in the precision of the matrix.
FEW, ANEW, DENSE = 500, 1500, 6000
#: Conjugate gradients end where errors are this share of what is allowed, or fail after some steps.
SHARE, MOST_STEPS = 0.3, 100
#: How often weights of the wrong sign may be left out of a piece.
CLEANINGS = 5
#: A step is taken in full if it leaves no more than this share of the slope behind it.
OVERSHOT = 1e-3


class Fit(NamedTuple):
    """Weights, their products with K~, and a level."""

    beta: Floats
    products: Floats
    level: float

    def errors(self, active: TargetActiveSet) -> Floats:
        """What predictions lack to the targets."""
        return active.targets - (self.products - self.beta / active.costs) - self.level

    def toward(self, goal: Fit, length: float) -> Fit:
        """The fit that is some part of the way to another."""
        return Fit(
            self.beta + length * (goal.beta - self.beta),
            self.products + length * (goal.products - self.products),
            self.level + length * (goal.level - self.level),
        )


class Inverses:
    """What is close to inverses of parts of a matrix.

    Parameters
    ----------
    gram : AugmentedKernel
    low_rank : LowRank
        A rough idea of it, for many points.
    """

    def __init__(self, gram: AugmentedKernel, low_rank: LowRank) -> None:
        self._gram, self._low_rank = gram, low_rank
        self._factor: PivotedFactor | None = None
        self._tried = 0

    def of(self, at: Positions) -> Iterator[tuple[Linear, Linear]]:
        """Products with the matrix of some points, and their inverse, the quickest way first."""
        gram = self._gram
        if not gram.kept:
            if len(at) > ANEW:
                yield partial(_times, gram, at), self._low_rank.on(gram, at)
            return
        rows = gram.rows_at(at)
        if self.are_low(len(at) // SMALL):
            assert self._factor is not None
            yield rows.combined, self._factor.inverse(at)
        elif len(at) > DENSE:
            yield rows.combined, self._low_rank.on(gram, at)
        inverse = factored(rows, np.arange(len(at)))
        if inverse is not None:
            yield rows.combined, inverse

    def are_low(self, most: int) -> bool:
        """Whether the rank of the matrix is low, and up to so much."""
        if not self._gram.kept:
            return False
        if self._factor is None:
            self._factor = PivotedFactor(self._gram.rows_at(np.arange(self._gram.count)))
        for rank in (rank for rank in RANKS if self._tried < rank <= most):
            if not self._factor.complete:
                self._tried = rank
                self._factor.reaches(rank)
        return self._factor.complete


class TubeNewton:
    """Newton's method for regression.

    Parameters
    ----------
    count : float
        How many points there are in all: each may contribute such a part of the tolerance.
    inverses : Inverses
    """

    def __init__(self, count: float, inverses: Inverses) -> None:
        self._count, self._inverses = count, inverses

    def minimise(self, active: TargetActiveSet, aim: float) -> None:
        """Set the best weights, to within a gap that is a share of the objective."""
        level = active.middle() if active.level is None else active.level
        here = Fit(active.weights.copy(), active.image_products.copy(), level)
        best, share = here, aim * abs(active.value()) / self._count
        worst, piece = np.inf, None
        for _ in range(PIECES):
            errors = here.errors(active)
            side = np.where(np.abs(errors) > active.epsilon, np.sign(errors), 0.0)
            if piece is not None and np.array_equal(side, piece):
                break
            try:
                goal = self._cleaned(active, side, self._on_piece(active, side, here, share), share)
            except linalg.LinAlgError:  # by rounding: what was found so far has to do
                break
            reached = _worst(active, goal)
            if piece is None:  # else it was a goal
                worst = _worst(active, here)
            best = goal if reached < worst else here
            if min(reached, worst) <= share:
                break
            length = _length(active, here, goal)
            if length == 0.0:
                break
            whole = length == 1.0
            here, piece = (goal, side) if whole else (here.toward(goal, length), None)
            worst = reached
        active.install(best.beta, best.products)

    def _on_piece(self, active: TargetActiveSet, side: Floats, near: Fit, share: float) -> Fit:
        """The minimum where the points with a side, 1 or -1, are outside the tube."""
        gram, right, at = active.gram, active.targets - active.epsilon * side, np.flatnonzero(side)
        found = None
        if len(at) > FEW:
            enough = 2.0 * SHARE**2 * share * gram.ridge[at]
            start = near.beta[at]
            tries = (
                _by_gradients(times, inverse, right[at], start, near.level, enough)
                for times, inverse in self._inverses.of(at)
            )
            found = next((one for one in tries if one is not None), None)
        if found is None:
            found = _by_factor(gram, right, at, near.level)
        beta = np.zeros(len(side))
        beta[at] = found[0]
        return Fit(beta, gram.times(beta), found[1])

    def _cleaned(self, active: TargetActiveSet, side: Floats, fit: Fit, share: float) -> Fit:
        """The fit without weights so small that they have the wrong sign as it is inexact."""
        for _ in range(CLEANINGS):
            # At an exact minimum, a weight of the wrong sign is that of a point within the tube.
            wrong = (fit.beta * side < 0.0) & (fit.errors(active) * side > active.epsilon)
            if not wrong.any():
                break
            side = np.where(wrong, 0.0, side)
            fit = self._on_piece(active, side, fit, share)
        return fit


def _by_gradients(
    times: Linear, inverse: Linear, right: Floats, start: Floats, level: float, enough: Floats
) -> tuple[Floats, float] | None:
    """The same as `_by_factor`, by conjugate gradients among weights that sum to zero.

    None if that takes too many steps.

    Parameters
    ----------
    times, inverse : functions
        From a vector to its product with the matrix, and with what is close to its inverse.
    right : array of shape (m,)
    start, level : where to begin
    enough : array of shape (m,)
        What the squares of residuals may be.
    """
    ones = inverse(np.ones(len(right)))

    def balanced(residual: Floats) -> tuple[Floats, float]:
        """A residual preconditioned, with a sum of zero, and the level that this takes."""
        scaled = inverse(residual)
        level = float(scaled.sum() / ones.sum())
        return scaled - level * ones, level

    goal = start - start.sum() / ones.sum() * ones
    residual, direction, before = right - times(goal) - level, np.zeros(len(goal)), np.inf
    for _ in range(MOST_STEPS):
        towards, more = balanced(residual)
        # Small numbers are left that are about as precise as they are small.
        level, residual = level + more, residual - more
        if np.all(residual**2 <= enough):
            return goal, level
        strength = float(residual @ towards)
        if not strength > 0.0:
            break
        direction, before = towards + strength / before * direction, strength
        product = times(direction)
        length = strength / float(direction @ product)
        goal, residual = goal + length * direction, residual - length * product
    return None


def _times(gram: AugmentedKernel, at: Positions, vector: Floats) -> Floats:
    """The product of the matrix of some points with a vector."""
    whole = np.zeros(gram.count)
    whole[at] = vector
    return gram.times(whole)[at]


def _worst(active: TargetActiveSet, fit: Fit) -> float:
    """The largest contribution of a known point to the gap that a fit would have."""
    active.install(fit.beta, fit.products)
    known = active.weights, active.image_products, active.targets, active.costs
    return float(np.max(np.abs(active.shares(*known))))


def _by_factor(
    gram: AugmentedKernel, right: Floats, at: Positions, level: float
) -> tuple[Floats, float]:
    """Weights of some points with K~ beta + level = right there, and a sum of zero; the level."""
    weights = np.zeros(0)
    if len(at):
        both = np.column_stack([right[at] - level, np.ones(len(at))])
        weights, ones = _solved(gram.rows(at).take(at, axis=1), both).T
        rest = float(weights.sum() / ones.sum())
        weights, level = weights - rest * ones, level + rest
    return weights, level


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The solution of linear equations with a positive definite matrix, which is overwritten."""
    # SciPy's own functions copy it, for LAPACK counts by columns: but it is symmetric.
    factor, failed = lapack.dpotrf(matrix.T, overwrite_a=True, clean=False)
    if failed:
        raise linalg.LinAlgError("the matrix is not positive definite")
    solution: Floats = lapack.dpotrs(factor, right)[0]
    return solution


def _length(active: TargetActiveSet, here: Fit, goal: Fit) -> float:
    """How far to go to a goal: to where the primal objective is least, at most all of the way."""
    errors, way = here.errors(active), goal.beta - here.beta
    drift, epsilon = goal.errors(active) - errors, active.epsilon
    pull, image = active.costs * drift, here.products - here.beta / active.costs
    start, bend = (
        float(way @ image),
        float(way @ (goal.products - here.products - way / active.costs)),
    )

    def slope(length: float) -> float:
        """How fast the objective rises, some part of the way."""
        there = errors + length * drift
        outside = there - np.minimum(np.maximum(there, -epsilon), epsilon)
        return start + length * bend + float(pull @ outside)

    if slope(1.0) <= OVERSHOT * abs(slope(0.0)):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    return low
