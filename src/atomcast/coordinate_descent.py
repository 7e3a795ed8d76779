"""Minimisation of a quadratic over many known atoms: coordinate descent, and solves on a face.

On the border of the domain, the best weights are those of a penalised problem, whose penalty is the
multiplier of the domain. Sweeps of coordinate descent at a fixed penalty find which weights are
zero, and the signs of the others. Conjugate gradients then solve for these on their face of the
domain, which also gives the penalty for the next sweeps: on a face, the norm of the penalised
solution is affine in the penalty, so that this is Newton's method for the norm to be the radius.

A sweep, and a step of conjugate gradients, cost as much as two products with the known columns.
Nothing grows with the square of their number, as it does in `corral.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomcast.active_set import ExplicitActiveSet
from atomcast.columns import Columns
from atomcast.domains import Domain, duality_gap
from atomcast.objectives.base import Curvature

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Sweeps at one penalty, conjugate gradient steps on one face, and how often the two alternate
#: before the best weights so far have to do.
SWEEPS, FACE_STEPS, ALTERNATIONS = 30, 300, 60
#: Sweeps at one penalty, and steps on one face, end when what is left is this share of the first.
SWEPT, SOLVED = 0.05, 0.01
#: What centring leaves of a column that is constant: rounding, not a direction.
CONSTANT = 1e-13


class CoordinateDescent:
    """The best weights of many known atoms, to a given gap.

    Parameters
    ----------
    domain : Domain
        A ball of the l1 norm, or nonnegative weights with a given sum.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def minimise(self, active: ExplicitActiveSet, tolerance: float) -> bool:
        """Put weights into the active set whose gap within the known atoms is the tolerance.

        Returns False if that was not to be had: the best weights found are there all the same.
        """
        model = _Model.of(active)
        penalty, bounds = self._multiplier(active), _Bounds(self.domain.has_origin)
        best, best_weights = np.inf, active.weights.copy()
        weights = active.weights.copy()
        for _ in range(ALTERNATIONS):
            if active.value() < best:
                best, best_weights = active.value(), active.weights.copy()
            if self._gap(active) <= tolerance:
                return True
            active.set_weights(weights)
            settled = self._sweep(active, model, weights, penalty, tolerance)
            excess = float(np.abs(weights).sum()) - self.domain.scale
            if settled:
                bounds.learn(penalty, excess)
            inside = self.domain.has_origin and penalty == 0.0 and excess < 0.0
            solution, penalty = self._on_face(active, model, weights, excess, inside, tolerance)
            penalty = bounds.within(penalty)
            weights = self._toward(active, weights, solution)
            active.set_weights(self._feasible(weights))
        active.set_weights(best_weights)
        return False

    def _gap(self, active: ExplicitActiveSet) -> float:
        """The duality gap among the known atoms."""
        merit = float(np.max(self.domain.merit(active.scores())))
        return duality_gap(self.domain, active.inner(), merit)

    def _multiplier(self, active: ExplicitActiveSet) -> float:
        """The penalty at which the current weights would be best, if they were best at all."""
        level = -active.inner() / self.domain.scale
        return max(level, 0.0) if self.domain.has_origin else level

    def _feasible(self, weights: Floats) -> Floats:
        """The weights, scaled into the domain if they are outside."""
        norm = float(np.abs(weights).sum())
        if norm > self.domain.scale or (norm > 0.0 and not self.domain.has_origin):
            return weights * (self.domain.scale / norm)
        return weights

    def _sweep(
        self,
        active: ExplicitActiveSet,
        model: _Model,
        weights: Floats,
        penalty: float,
        tolerance: float,
    ) -> bool:
        """Coordinate descent on the penalised problem, in place; whether it has come to rest."""
        signed = bool(self.domain.merit(np.ones(1))[0] > 0.0)
        gradient, shift = active.gradient.copy(), 0.0
        violating = self.domain.merit(active.scores()) > penalty
        chosen = np.flatnonzero((weights != 0.0) | violating)
        first = worst = np.inf
        for _ in range(SWEEPS):
            worst, shift = model.columns.sweep(
                chosen, weights, model.lengths, model.along, gradient, shift, model.diagonal,
                penalty, signed,
            )  # fmt: skip
            first = min(first, worst) if first == np.inf else first
            if worst <= max(SWEPT * first, 0.02 * tolerance / self.domain.scale):
                return True
        return worst <= 0.3 * first

    def _toward(self, active: ExplicitActiveSet, weights: Floats, solution: Floats) -> Floats:
        """The solution on the face; or, where signs change, what is best on the way there.

        That is the end of the way without the weights that change their sign, the place where the
        first of them does, or where we are.
        """
        flipped = np.flatnonzero(weights * solution < 0.0)
        if not len(flipped):
            return solution
        change = solution - weights
        steps = -weights[flipped] / change[flipped]
        choices, values = [weights], [self._value(active, weights)]
        for step in (1.0, float(steps.min())):
            moved = weights + step * change
            moved[flipped[steps <= step]] = 0.0
            choices.append(moved)
            values.append(self._value(active, moved))
        return choices[int(np.argmin(values))]

    def _value(self, active: ExplicitActiveSet, weights: Floats) -> float:
        """The objective of the weights, scaled into the domain."""
        active.set_weights(self._feasible(weights))
        return active.value()

    def _on_face(
        self,
        active: ExplicitActiveSet,
        model: _Model,
        weights: Floats,
        excess: float,
        inside: bool,
        tolerance: float,
    ) -> tuple[Floats, float]:
        """The minimum over the affine hull of the weights' face, and the multiplier there.

        These are conjugate gradients, preconditioned by the lengths of the columns, within the
        hyperplane where the norm is the radius, or, for weights `inside` the domain, everywhere.
        """
        support = np.flatnonzero(weights)
        solution = weights.copy()
        if not len(support):
            return solution, 0.0
        normal = np.zeros(len(support)) if inside else np.sign(weights[support])
        inverse = 1.0 / np.maximum(model.lengths[support], 1e-300)
        across = inverse * normal
        width = max(float(across @ normal), 1e-300)
        solution[support] -= across * (0.0 if inside else excess / width)
        active.set_weights(solution)
        change, residual = np.zeros(len(support)), -active.scores()[support]
        level, first = 0.0, np.inf
        along, size = np.zeros(len(support)), 0.0
        for _ in range(FACE_STEPS):
            level = float(across @ residual) / width
            off = residual - level * normal
            left = float(np.max(np.abs(off)))
            first = min(first, left) if first == np.inf else first
            if left <= max(SOLVED * first, 0.2 * tolerance / self.domain.scale):
                break
            direction = inverse * off
            size, before = float(residual @ direction), size
            along = direction + (size / before if before > 0.0 else 0.0) * along
            bent = model.times(support, along, len(weights))
            bend = float(along @ bent)
            if bend <= 0.0:
                break
            change += (size / bend) * along
            residual -= (size / bend) * bent
        solution[support] += change
        return solution, level


class _Bounds:
    """Between which penalties the right one lies, as far as sweeps have shown."""

    def __init__(self, from_zero: bool) -> None:
        self.low, self.high = (0.0 if from_zero else -np.inf), np.inf

    def learn(self, penalty: float, excess: float) -> None:
        """Weights are too large in sum at a penalty that is too small."""
        if excess > 0.0:
            self.low = max(self.low, penalty)
        else:
            self.high = min(self.high, penalty)

    def within(self, penalty: float) -> float:
        """A penalty between the bounds: this one, or the middle if it is not."""
        if self.low <= penalty <= self.high:
            return penalty
        if not np.isfinite(self.high - self.low):
            return max(self.low, min(penalty, self.high))
        return 0.5 * (self.low + self.high)


@dataclass(frozen=True)
class _Model:
    """The quadratic in the weights: columns A under the curvature diag(h) - u u'.

    Parameters
    ----------
    columns : Columns
    curvature : Curvature
    diagonal : array of shape (d,)
        h.
    along : array of shape (k,)
        A'u.
    lengths : array of shape (k,)
        The bend along each weight; zero where a column is constant but for rounding.
    """

    columns: Columns
    curvature: Curvature
    diagonal: Floats
    along: Floats
    lengths: Floats

    @staticmethod
    def of(active: ExplicitActiveSet) -> _Model:
        """The quadratic that the objective is at the current weights."""
        assert active.columns is not None
        columns, curvature = active.columns, active.objective.curvature(active.image)
        diagonal = np.full(active.objective.d, 0.0) + curvature.diagonal
        squares = columns.lengths(diagonal)
        if curvature.rank_one is None:
            return _Model(columns, curvature, diagonal, np.zeros(len(active)), squares)
        along = columns.scores(curvature.rank_one)
        lengths = squares - along**2
        lengths[lengths <= CONSTANT * squares] = 0.0
        return _Model(columns, curvature, diagonal, along, lengths)

    def times(self, support: Positions, change: Floats, count: int) -> Floats:
        """The change of the slopes of some weights that goes with a change of these weights."""
        weights = np.zeros(count)
        weights[support] = change
        image = self.columns.combine(weights)
        bent = self.diagonal * image
        if self.curvature.rank_one is not None:
            bent -= self.curvature.rank_one * float(self.curvature.rank_one @ image)
        return self.columns.scores(bent)[support]
