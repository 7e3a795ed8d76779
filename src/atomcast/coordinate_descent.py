"""Minimisation of a quadratic over many known atoms: coordinate descent, and solves on a face.

On the border of the domain, the best weights are those of a penalised problem, whose penalty is the
multiplier of the domain. Sweeps of coordinate descent at a fixed penalty find which weights are
zero, and the signs of the others. Conjugate gradients then solve for these on their face of the
domain, which also gives the penalty for the next sweeps: on a face, the norm of the penalised
solution is affine in the penalty, so that this is Newton's method for the norm to be the radius.

A sweep, and a step of conjugate gradients, cost as much as two products with the known columns.
Nothing grows with the cube of their number, as it does in `corral.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.domains import Domain, duality_gap
from atomcast.active_set import ActiveSet, ExplicitActiveSet
from atomcast.column_model import ColumnModel

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Sweeps at one penalty, conjugate gradient steps on one face, and how often the two alternate
#: before the best weights so far have to do.
SWEEPS, FACE_STEPS, ALTERNATIONS = 30, 300, 60
#: Sweeps at one penalty end when what is left is this share of the first; steps on a face as well,
#: with a share that falls by a factor from one face to the next.
SWEPT, SOLVED, TIGHTER = 0.05, 0.1, 0.8
#: Up to so many known weights, compiled sweeps are not worth the import of a compiler,
FEW = 200
#: and beyond, they are if this many times the stored values is less than the cube of the weights.
WORTH = 1000


def many(active: ActiveSet) -> bool:
    """Whether so many atoms are known that sweeps over their columns cost less than an inverse.

    That is a matter of operations. In a round whose batch is a tenth of the known atoms, keeping an
    inverse up to date takes about k^3 / 5, and sweeps and steps on a face some hundred products
    with the columns. Where the curvature changes, the inverse would begin anew in each round.
    """
    if not isinstance(active, ExplicitActiveSet) or active.columns is None or len(active) <= FEW:
        return False
    return not active.quadratic or len(active) ** 3 > WORTH * active.columns.stored


class CoordinateDescent:
    """The best weights of many known atoms, to a given gap.

    Parameters
    ----------
    domain : Domain
        A ball of the l1 norm or its nonnegative part, or nonnegative weights with a given sum.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._signed = bool(domain.merit(np.ones(1))[0] > 0.0)

    def minimise(self, model: ColumnModel, tolerance: float) -> tuple[Floats, bool]:
        """The best weights, and whether their gap within the known atoms is the tolerance."""
        if not self.domain.has_origin and not model.lengths.all():
            return model.start, False  # a flat direction of the simplex is no weight of zero
        enough = tolerance / self.domain.scale
        weights = self._feasible(np.where(model.lengths > 0.0, model.start, 0.0))
        penalty, bounds = -np.inf, _Bounds(self.domain.has_origin)
        least, best = np.inf, weights
        for alternation in range(ALTERNATIONS):
            feasible = self._feasible(weights)
            value, gradient = model.at(feasible)
            scores = model.columns.scores(gradient)
            level = -float(feasible @ scores) / self.domain.scale
            merit = self.domain.merit(scores)
            if value < least:
                least, best = value, feasible
            gap = duality_gap(self.domain, -level * self.domain.scale, float(np.max(merit)))
            if gap <= tolerance:
                return feasible, True
            penalty = bounds.within(level if penalty == -np.inf else penalty)
            if feasible is not weights:
                gradient = model.at(weights)[1]
            weights = weights.copy()
            chosen = np.flatnonzero((weights != 0.0) | (merit > min(penalty, level)))
            settled = model.sweep(
                chosen, weights, gradient, penalty, self._signed, SWEEPS, SWEPT, 0.02 * enough
            )
            excess = float(np.abs(weights).sum()) - self.domain.scale
            if settled:
                bounds.learn(penalty, excess)
            support = np.flatnonzero(weights)
            if not len(support):
                penalty = 0.0
                continue
            inside = self.domain.has_origin and penalty == 0.0 and excess < 0.0
            normal = np.zeros(len(support)) if inside else np.sign(weights[support])
            solution = weights.copy()
            penalty = model.solve_face(
                support, solution, gradient, normal, 0.0 if inside else excess,
                FACE_STEPS, SOLVED * TIGHTER**alternation, 0.2 * enough,
            )  # fmt: skip
            if excess < 0.0 and penalty < 0.0 and self.domain.has_origin:
                continue  # the border only stands in the way: stay inside
            weights = self._toward(model, weights, solution)
        return best, False

    def _feasible(self, weights: Floats) -> Floats:
        """The weights, scaled into the domain if they are outside."""
        norm = float(np.abs(weights).sum())
        if norm > self.domain.scale or (norm > 0.0 and not self.domain.has_origin):
            return weights * (self.domain.scale / norm)
        return weights

    def _toward(self, model: ColumnModel, weights: Floats, solution: Floats) -> Floats:
        """The solution on the face; or, where signs change, what is best on the way there.

        That is the end of the way without the weights that change their sign, the place where the
        first of them does, or where we are.
        """
        flipped = np.flatnonzero(weights * solution < 0.0)
        if not len(flipped):
            return solution
        change = solution - weights
        steps = -weights[flipped] / change[flipped]
        choices = [weights]
        for step in (1.0, float(steps.min())):
            moved = weights + step * change
            moved[flipped[steps <= step]] = 0.0
            choices.append(moved)
        return min(choices, key=lambda choice: model.at(self._feasible(choice))[0])


class _Bounds:
    """Between which penalties the right one lies, as far as sweeps have shown."""

    def __init__(self, from_zero: bool) -> None:
        self.least = 0.0 if from_zero else -np.inf
        self.low, self.high = self.least, np.inf

    def learn(self, penalty: float, excess: float) -> None:
        """Weights are too large in sum at a penalty that is too small."""
        if excess > 0.0:
            self.low = max(self.low, penalty)
        else:
            self.high = min(self.high, penalty)

    def within(self, penalty: float) -> float:
        """A penalty between the bounds: this one, or the middle if it is not."""
        penalty = max(penalty, self.least)
        if self.low <= penalty <= self.high:
            return penalty
        if not np.isfinite(self.high - self.low):
            return max(self.low, min(penalty, self.high))
        return 0.5 * (self.low + self.high)
