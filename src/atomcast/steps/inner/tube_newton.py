"""The best weights of a kernel regression over the points that are known.

The primal, ``||w||^2 / 2 + C / 2 * sum(max(0, |e_i| - epsilon)^2)`` with the errors e_i, is convex
and made of quadratic pieces: which one, the points outside the tube tell. Newton's method goes to
the minimum of a piece and looks which points are outside there; it ends where they are the same. On
a piece, the weights solve K~ beta + level = y -+ epsilon over the points outside, and sum to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from atomcast.known.active_set import ActiveSet
from atomcast.known.kernels.kernel_matrix import AugmentedKernel
from atomcast.known.kernels.target_set import TargetActiveSet
from atomcast.steps.inner.projected_newton import LowRank

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Memory = Mapping[str, NDArray[Any]]

#: Weights are at least this exact, as a share of the objective.
ROUGH = 1e-2
#: Pieces to go to; a dozen are usual.
PIECES = 100
#: Up to so many points outside the tube, a factor of their matrix is the fastest way.
DENSE = 1500
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


class TubeNewton:
    """The inner solver of the corrective step for regression.

    Parameters
    ----------
    count : float
        How many points there are in all: each may contribute such a part of the tolerance.
    memory : mapping
        What the solver of the same run, in another process, had gathered.
    """

    def __init__(self, count: float, memory: Memory) -> None:
        self._count = count
        self._low_rank = LowRank(memory)

    def memory(self) -> Memory:
        """What another process needs to go on in the same way."""
        return self._low_rank.memory()

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known points."""
        assert isinstance(active, TargetActiveSet)
        # The bound on the gap may be so large that what it allows would spoil the weights.
        enough = min(tolerance, ROUGH * abs(active.value()))
        self._minimise(active, enough / self._count)

    def _minimise(self, active: TargetActiveSet, share: float) -> None:
        """The same, where no point may contribute more than a share to the gap."""
        level = active.middle() if active.level is None else active.level
        here = Fit(active.weights.copy(), active.image_products.copy(), level)
        best = here
        piece: Floats | None = None
        for _ in range(PIECES):
            errors = here.errors(active)
            side = np.where(np.abs(errors) > active.epsilon, np.sign(errors), 0.0)
            if piece is not None and np.array_equal(side, piece):
                break
            goal = self._cleaned(active, side, self._on_piece(active, side, here, share), share)
            worst = partial(_worst, active)
            best = min((here, goal), key=worst)
            if worst(best) <= share:
                break
            length = _length(partial(_slope, active, here, goal))
            if length == 0.0:
                break
            here, piece = (goal, side) if length == 1.0 else (here.toward(goal, length), None)
        active.install(best.beta, best.products)

    def _on_piece(self, active: TargetActiveSet, side: Floats, near: Fit, share: float) -> Fit:
        """The minimum where the points with a side, 1 or -1, are outside the tube."""
        gram, right, at = active.gram, active.targets - active.epsilon * side, np.flatnonzero(side)
        found = None
        if len(at) > DENSE:
            found = self._by_gradients(gram, right, side != 0.0, near, share)
        beta, level = _by_factor(gram, right, at, near.level) if found is None else found
        return Fit(beta, gram.times(beta), level)

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
        self,
        gram: AugmentedKernel,
        right: Floats,
        free: NDArray[np.bool_],
        start: Fit,
        share: float,
    ) -> tuple[Floats, float] | None:
        """The same as `_by_factor`, by conjugate gradients among weights that sum to zero.

        None if that takes too many steps.
        """
        precondition = self._low_rank.preconditioner(gram, free)
        ones = precondition(free.astype(np.float64))

        def balanced(residual: Floats) -> tuple[Floats, float]:
            """A residual preconditioned, with a sum of zero, and the level that this takes."""
            scaled = precondition(residual)
            level = float(scaled.sum() / ones.sum())
            return scaled - level * ones, level

        goal = np.where(free, start.beta, 0.0)
        goal -= goal.sum() / ones.sum() * ones
        level, enough = start.level, 2.0 * SHARE**2 * share * gram.ridge
        residual, direction, before = right - gram.times(goal) - level, np.zeros(len(goal)), np.inf
        for _ in range(MOST_STEPS):
            residual = np.where(free, residual, 0.0)
            towards, more = balanced(residual)
            # Small numbers are left that are about as precise as they are small.
            level, residual = level + more, np.where(free, residual - more, 0.0)
            if np.all(residual**2 <= enough):
                return goal, level
            strength = float(residual @ towards)
            if not strength > 0.0:
                break
            direction, before = towards + strength / before * direction, strength
            product = gram.times(direction)
            length = strength / float(direction @ product)
            goal, residual = goal + length * direction, residual - length * product
        return None


def _worst(active: TargetActiveSet, fit: Fit) -> float:
    """The largest contribution of a known point to the gap that a fit would have."""
    active.install(fit.beta, fit.products)
    return float(np.max(np.abs(active.scores())))


def _by_factor(
    gram: AugmentedKernel, right: Floats, at: Positions, level: float
) -> tuple[Floats, float]:
    """Weights of some points with K~ beta + level = right there, and a sum of zero; the level."""
    beta = np.zeros(len(right))
    if len(at):
        factor = linalg.cho_factor(gram.rows(at)[:, at], lower=True, check_finite=False)
        both = np.column_stack([right[at] - level, np.ones(len(at))])
        weights, ones = linalg.cho_solve(factor, both, check_finite=False).T
        rest = float(weights.sum() / ones.sum())
        beta[at], level = weights - rest * ones, level + rest
    return beta, level


def _slope(active: TargetActiveSet, here: Fit, goal: Fit, length: float) -> float:
    """How fast the primal objective rises, some part of the way to the goal."""
    there, way = here.toward(goal, length), goal.beta - here.beta
    drift = goal.errors(active) - here.errors(active)
    errors = there.errors(active)
    pull = active.costs * np.sign(errors) * np.maximum(np.abs(errors) - active.epsilon, 0.0)
    return float(way @ (there.products - there.beta / active.costs) + pull @ drift)


def _length(slope: Callable[[float], float]) -> float:
    """How far to go along a way on which the slope rises from below zero: at most all of it."""
    if slope(1.0) <= OVERSHOT * abs(slope(0.0)):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    return low
