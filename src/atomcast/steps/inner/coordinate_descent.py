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

from atomcast.domains.balls import Domain
from atomcast.steps.inner.column_model import ColumnModel
from atomcast.steps.inner.plane import newton_step

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Sweeps at one penalty, conjugate gradient steps on one face, and how often the two alternate
#: before the best weights so far have to do.
SWEEPS, FACE_STEPS, ALTERNATIONS = 10, 300, 100
#: Sweeps at one penalty end when what is left is this share of the first; steps on a face as well,
#: with a share that falls by a factor from one face to the next.
SWEPT, SOLVED, TIGHTER = 0.05, 0.1, 0.8
#: Columns that keep no more than this share of their squares beside the others of a face have none
#: of it by a factorisation.
FLAT = 1e-9
#: So many penalties in a row are kept within bounds before the bounds are given up.
PATIENCE = 4
#: Where weights begin far inside the domain, the first penalties fall by no more than this factor
#: each, lest far too many weights come in at once, which sweeps hardly get rid of.
STEEP, FIRST = 10.0, 4
#: Columns that depend on each other let the norm fall at no cost until signs change: of a face with
#: so small a multiplier, beside the penalty, sweeps alone tell the next one.
FLAT_LEVEL = 0.01
#: Bounds have led on where the norm is by this factor nearer to what it should be.
NEARER = 0.7
#: Sweeps end near a solution: by this share, a penalty may be beyond what they have shown.
ROOM = 1e-3


class CoordinateDescent:
    """The best weights of many known atoms, to a given gap.

    Parameters
    ----------
    domain : Domain
        A ball of the l1 norm or its nonnegative part, or nonnegative weights with a given sum.
    """

    alternations = ALTERNATIONS
    #: Where weights begin by this share of the domain or more inside it, the first penalty is the
    #: one at which those that are to join would fill it.
    inside = 1.0
    #: Up to so many weights whose signs are in the way of a face's solution leave it one by one.
    in_the_way = 0
    #: Where weights need not be exact, those before an alternation that adds less than this share
    #: to the gain will do.
    worth = 0.0

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._signed = bool(domain.merit(np.ones(1))[0] > 0.0)
        #: By how much the quadratic is lower at the last weights that were found than at the start.
        self.gain = 0.0
        self._steps = 0  # of conjugate gradients, on the last face that was solved by them

    def minimise(self, model: ColumnModel, tolerance: float) -> tuple[Floats, bool]:
        """The best weights, and whether their gap within the known atoms is the tolerance."""
        if not self.domain.has_origin and not model.lengths.all():
            return model.start, False  # a flat direction of the simplex is no weight of zero
        enough, weights = tolerance / self.domain.scale, self._feasible(self._started(model))
        gradient = model.gradient.copy() if weights is model.start else model.at(weights)[1]
        origin = model.at_zero()
        scores_there = model.columns.scores(origin)
        bounds = _Bounds(self.domain.has_origin, float(np.max(self._merit(scores_there))))
        penalty, first, least, best, floor = np.nan, np.nan, np.inf, weights, 0.0
        for alternation in range(self.alternations):
            # Gradients are affine in the weights: to scale these takes no pass over the columns.
            share = self._share(weights)
            feasible = share * weights
            if weights is model.start and model.slopes is not None:
                scores = model.slopes
            else:
                scores = model.columns.scores(origin + share * (gradient - origin))
            inner, merit = float(feasible @ scores), self._merit(scores)
            value = 0.5 * (inner + float(feasible @ scores_there))  # less that at the origin
            first = value if np.isnan(first) else first
            if self.worth and first - value <= (1.0 + self.worth) * (first - least):
                self.gain = first - least
                return best, True
            if value < least:
                least, best = value, feasible
            self.gain = first - value
            if self.domain.gap(inner, float(np.max(merit))) <= tolerance:
                return feasible, True
            level = -inner / self.domain.scale
            room = self.domain.scale - self._norm(feasible) if alternation == 0 else 0.0
            unbound = room > 0.0 and level <= FLAT_LEVEL * float(np.max(merit))
            if unbound or room >= self.inside * self.domain.scale:
                # The slopes of those in use say nothing of the penalty yet.
                new = np.where(feasible == 0.0, merit, 0.0)
                floor = penalty = level = self._penalty_alone(model, new, room)
            penalty = level if np.isnan(penalty) else penalty
            if 0 < alternation <= FIRST and floor > 0.0 and bounds.low == bounds.lowest:
                penalty = max(penalty, floor := floor / STEEP)
            penalty = bounds.within(penalty)
            weights = weights.copy()
            chosen = (weights != 0.0) | (merit > min(penalty, level))
            settled = self.sweep(model, weights, gradient, chosen, penalty, 0.02 * enough)
            excess = self._norm(weights) - self.domain.scale
            bounds.learn(penalty, excess, settled)
            inside = self.domain.has_origin and penalty == 0.0 and excess < 0.0
            accuracy = (SOLVED * TIGHTER**alternation, 0.2 * enough)
            if inside:
                solution = weights.copy()
                self._solve_face(model, solution, gradient, penalty, None, accuracy)
                inside = self._norm(solution) <= self.domain.scale
            if not inside:
                solution = weights.copy()
                level = self._solve_face(model, solution, gradient, penalty, excess, accuracy)
                if abs(level) <= FLAT_LEVEL * penalty and np.any(weights * solution < 0.0):
                    level = bounds.by_sweeps(penalty * (1.0 + excess / self.domain.scale))
                penalty = level
            if excess < 0.0 and penalty < 0.0 and self.domain.has_origin:
                continue  # the border only stands in the way: stay inside
            there, slopes = self._toward(model, weights, solution, origin)
            flipped = weights * solution < 0.0
            far_away = not self.worth and there[flipped].any()  # and sweeps would take for ever
            if far_away and np.count_nonzero(flipped) <= self.in_the_way:
                there, slopes, penalty = self._around(
                    model, weights, gradient, solution, penalty, inside, accuracy
                )
            weights, gradient = there, slopes
        self.gain = first - least
        return best, False

    def _started(self, model: ColumnModel) -> Floats:
        """The weights to begin with: a column without length needs none, but a simplex some."""
        weights = model.start
        if not model.lengths.all():
            weights = np.where(model.lengths > 0.0, weights, 0.0)
        if not self.domain.has_origin and not weights.any():
            weights = np.zeros(len(weights))
            weights[int(np.argmax(self._merit(model.columns.scores(model.gradient))))] = 1.0
        return weights

    def _penalty_alone(self, model: ColumnModel, merit: Floats, room: float) -> float:
        """The penalty at which weights fill what room there is if no column depends on another."""
        order = np.argsort(merit)[::-1]
        order = order[(model.lengths[order] > 0.0) & (merit[order] > 0.0)]
        if not len(order):
            return 0.0
        bend = 1.0 / model.lengths[order]
        # With the first k in use, the norm is sum(merit / length) - penalty * sum(1 / length).
        levels = (np.cumsum(merit[order] * bend) - room) / np.cumsum(bend)
        return max(float(levels.max()), 0.0)

    def _norm(self, weights: Floats) -> float:
        """What the domain bounds."""
        return float(np.abs(weights).sum())

    def _merit(self, scores: Floats) -> Floats:
        """The merit behind each weight."""
        return self.domain.merit(scores)

    def sweep(
        self,
        model: ColumnModel,
        weights: Floats,
        gradient: Floats,
        chosen: NDArray[np.bool_],
        penalty: float,
        enough: float,
    ) -> bool:
        """Coordinate descent at a penalty, in place; whether it has come to rest."""
        from atomcast.known._sweeps import sweep

        return bool(
            sweep(
                model.columns.compiled, np.flatnonzero(chosen), *model.bends, weights, gradient,
                penalty, self._signed, SWEEPS, SWEPT, enough,
            )
        )  # fmt: skip

    def _solve_face(
        self,
        model: ColumnModel,
        weights: Floats,
        gradient: Floats,
        penalty: float,
        excess: float | None,
        accuracy: tuple[float, float],
    ) -> float:
        """The minimum over the face of the weights, in place; returns the multiplier there.

        The excess is by how much the norm is too large; None inside the domain. A multiplier that
        means nothing is NaN.
        """
        from atomcast.steps.inner._face import solve_face

        support = np.flatnonzero(weights)
        k = len(support)
        if not k:
            return 0.0
        if model.steps_to_factorise(k) < self._steps:
            slopes, signs = model.columns.scores(gradient)[support], np.sign(weights[support])
            change, level = newton_step(model.hessian(support), slopes, signs, excess, FLAT)
            if not np.isnan(level):
                weights[support] += change
                return level
        level, self._steps = solve_face(
            model.columns.compiled, support, np.arange(k + 1), np.ones(k), *model.bends,
            weights, gradient, 0.0, False, excess is not None, excess or 0.0,
            FACE_STEPS, *accuracy,
        )  # fmt: skip
        return float(level)

    def _share(self, weights: Floats) -> float:
        """What weights are multiplied by to be in the domain, if they are outside."""
        norm = self._norm(weights)
        outside = norm > self.domain.scale or (norm > 0.0 and not self.domain.has_origin)
        return self.domain.scale / norm if outside else 1.0

    def _feasible(self, weights: Floats) -> Floats:
        """The weights, scaled into the domain if they are outside."""
        share = self._share(weights)
        return weights if share == 1.0 else share * weights

    def _toward(
        self, model: ColumnModel, weights: Floats, solution: Floats, origin: Floats
    ) -> tuple[Floats, Floats]:
        """The solution on the face; or, where signs change, what is best on the way there.

        That is the end of the way without the weights that change their sign, the place where the
        first of them does, or where we are. The gradient there comes with it.
        """
        flipped = np.flatnonzero(weights * solution < 0.0)
        if not len(flipped):
            return solution, model.at(solution)[1]
        choices = [weights, _moved(weights, solution, 1.0), _moved(weights, solution)]
        shares = [self._share(choice) for choice in choices]
        pairs = zip(shares, choices, strict=True)
        values, gradients = model.at(np.array([share * choice for share, choice in pairs]))
        best = int(np.argmin(values))
        return choices[best], origin + (gradients[best] - origin) / shares[best]

    def _around(
        self,
        model: ColumnModel,
        weights: Floats,
        gradient: Floats,
        solution: Floats,
        penalty: float,
        inside: bool,
        accuracy: tuple[float, float],
    ) -> tuple[Floats, Floats, float]:
        """The solution on the face without weights that are in its way; gradient and multiplier.

        Columns that all but depend on each other have solutions far away, before which a small
        weight changes its sign. Where the first one does, it leaves; then the rest is solved again.
        """
        for _ in range(self.in_the_way):
            if not np.any(weights * solution < 0.0):
                return solution, model.at(solution)[1], penalty
            weights = _moved(weights, solution)
            gradient = model.at(weights)[1]
            excess = None if inside else self._norm(weights) - self.domain.scale
            solution = weights.copy()
            penalty = self._solve_face(model, solution, gradient, penalty, excess, accuracy)
        return weights, gradient, penalty


def _moved(weights: Floats, solution: Floats, step: float | None = None) -> Floats:
    """Weights on the way to others, at a step, or where the first sign changes.

    Those that have changed their sign by then are zero.
    """
    change = solution - weights
    flipped = np.flatnonzero(weights * solution < 0.0)
    steps = -weights[flipped] / change[flipped]
    step = float(steps.min()) if step is None else step
    moved = weights + step * change
    moved[flipped[steps <= step]] = 0.0
    return moved


class _Bounds:
    """Between which penalties the right one lies, as far as sweeps have shown.

    Sweeps are never quite at rest, so that what one has shown may be wrong: if it stands in the way
    again and again, it is forgotten.
    """

    def __init__(self, from_zero: bool, highest: float) -> None:
        self.lowest, self.highest = (0.0 if from_zero else -np.inf), highest
        self.refused, self.nearest = 0, np.inf
        self.seen: list[tuple[float, float]] = []
        self._forget()

    def _forget(self) -> None:
        self.low, self.high = self.lowest, self.highest
        self.inside = True  # whether no penalty at all may be right

    def learn(self, penalty: float, excess: float, settled: bool) -> None:
        """Weights are too large in sum at a penalty that is too small."""
        self.seen = [*self.seen[-1:], (penalty, excess)]
        if abs(excess) < NEARER * self.nearest:  # what was shown so far has led on
            self.refused, self.nearest = 0, abs(excess)
        if not settled:
            return
        if excess > 0.0:
            self.low = max(self.low, penalty)
            self.inside = False
        else:
            self.high = min(self.high, penalty)

    def within(self, penalty: float) -> float:
        """A penalty between the bounds: this one, or another if it is not."""
        penalty = min(max(penalty, self.lowest), self.highest)
        if self.refused >= PATIENCE:
            self._forget()
        allowed = ROOM * abs(penalty)  # a bound is no better known than that
        below = penalty <= self.high + allowed
        if below and (penalty > self.low - allowed or (self.inside and penalty == self.low)):
            self.refused = 0
            return penalty
        self.refused += 1
        if not np.isfinite(self.low):
            return self.high
        ahead = self.by_sweeps(np.nan)
        if self.low < ahead < self.high:
            return ahead
        # Nothing was learned from above: the highest penalty is too far away to go half-way.
        middle = 0.5 * (self.low + self.high)
        if 0.0 < self.low < self.high == self.highest:
            return min(middle, 2.0 * STEEP ** (self.refused - 1) * self.low)
        return middle

    def by_sweeps(self, otherwise: float) -> float:
        """Where the norm would be right if it went on as it did from the last sweeps but one."""
        if len(self.seen) < 2:
            return otherwise
        (before, more), (now, excess) = self.seen
        fall = more - excess
        if not (now - before) * fall > 0.0:
            return otherwise
        ahead = now + excess * (now - before) / fall
        return min(ahead, STEEP ** max(self.refused, 1) * now) if now > 0.0 else ahead
