"""The ball whose solution is that of a given penalty, found along a path of balls.

The minimiser of ``loss(w) + penalty * ||w||`` is that of the loss over the ball at whose border the
loss falls as fast as the penalty grows. How fast it falls, the solution of a ball tells: it is the
best merit of any atom. That falls as the radius grows, for least squares piecewise linearly, so
that secants find the radius, and each ball knows all that was broadcast for those before it.

Every ball also bounds the loss from below, by a line in the norm of the weights: no atom promises
more than the best one. The least value of all these lines together, with the penalty added, bounds
the penalised form from below. So its gap is certified, whatever radii were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import one_blas_thread
from atomcast.data.shards import Shards
from atomcast.estimators.penalised import as_penalised, slopes
from atomcast.known.active_set import ActiveSet, ExplicitActiveSet
from atomcast.loop.callbacks import State
from atomcast.loop.replica import Replica
from atomcast.loop.result import Result
from atomcast.loop.session import LoopElsewhere
from atomcast.loop.solver import Solver
from atomcast.messages.status import Status
from atomcast.network.joined_ledgers import joined
from atomcast.objectives import Objective
from atomcast.problems.problem import Problem
from atomcast.steps.inner.penalised_newton import penalised_weights

#: The first radius, as a share of the least one at which no loss could be left.
FIRST = 0.1
#: A radius so small that no weights do.
NOWHERE = 1e-90
#: On the way to the penalty, the slope is to fall by no more than this factor from ball to ball.
FALL = 4.0
#: Balls whose radii differ by less than this share are too much alike to draw a line through.
NEAR = 1e-3
#: The radius grows by no more than this factor.
GROWTH = 10.0
#: A gap of this share of what the slope is off by, times the radius, is small enough.
CLEAR = 0.2
#: Up to so many known atoms say what the radius would be if they were all.
FEW = 500
#: So many balls are tried; three or four are usual.
MOST = 60


@dataclass(frozen=True)
class Tried:
    """A ball: the norm of its solution, and the line ``level - slope * norm`` below the loss.

    Where it was left before it was solved, the slope may be another.
    """

    norm: float
    slope: float
    level: float
    left: bool = False


class PenaltySearch:
    """The search for the radius that goes with a penalty.

    Parameters
    ----------
    make : callable
        The problem of a radius.
    norm : callable
        The norm of the weights of a result.
    objective : Objective
    penalty : callable
        What a unit of the norm costs, given the least penalty that leaves no weights.

    Attributes
    ----------
    penalty : float
    """

    def __init__(
        self,
        make: Callable[[float], Problem],
        norm: Callable[[Result], float],
        objective: Objective,
        penalty: Callable[[float], float],
    ) -> None:
        self._make, self._norm, self._objective = make, norm, objective
        self._penalty_for = penalty
        self._replica: Replica | None = None
        self._asked = 0  # so many atoms were known when they were last asked for a radius
        self._strict = False  # whether only balls that were solved tell where the radius is

    def solve(
        self, solver: Solver, shards: Shards, cluster: Any, near: Result | None = None
    ) -> Result:
        """The solution, with objective, gap and rounds of the penalised form.

        Where one is given that may be near, the search begins there.
        """
        start = None if near is None else near.weights
        self._first = None if near is None else self._norm(near)
        # Half of the gap is left to the ball, half to its radius.
        watched = () if isinstance(cluster, LoopElsewhere) else (self._look,)
        halved = solver.but(tol=0.5 * solver.tol, callbacks=(*solver.callbacks, *watched))
        alone = getattr(cluster, "alone", False)
        path = halved.solve_path(self._balls(alone), shards, cluster, start=start)
        rounds = 0
        with one_blas_thread(), closing(path) as results:  # entered once for all balls
            if alone:
                empty, steepest = (first := next(results)), first.gap / NOWHERE
            else:  # what others have agreed to be asked may be of usual radii alone
                empty = Solver(max_rounds=0).solve(self._make(1.0), shards, cluster)
                steepest = empty.gap
            self.penalty = self._penalty_for(steepest)
            self._tried = [Tried(0.0, steepest, empty.objective)]
            if self.penalty >= steepest:
                return as_penalised(empty, empty.objective, 0.0, 0, done=True)
            for result in results:
                rounds += result.rounds
                value = result.objective + self.penalty * self._enter(result)
                gap = max(value - self._least(), 0.0)
                done = gap <= solver.tolerance.gap(max(value, 1e-300))
                ended = result.status in ("interrupted", "time_limit")
                if done or ended or len(self._tried) > MOST:
                    break
        if not alone:
            ledger = joined([("search", empty.ledger), ("", result.ledger)])
            result = replace(result, ledger=ledger)
        # Weights that were found before anybody was asked took a step, too.
        return as_penalised(result, value, gap, max(rounds, int(near is None)), done)

    def _balls(self, alone: bool) -> Iterator[Problem]:
        """Balls to try, each chosen when the one before it is solved.

        Who is alone begins with one in which there is no room: a session of its own would load all
        data once more, and where all atoms are taken at once, they are asked for the radius.
        """
        if alone:
            yield self._make(NOWHERE)
        while True:
            self._beta = self._next()
            yield self._make(self._beta)

    def _enter(self, result: Result) -> float:
        """Keep what the solution of a ball says, and return its norm."""
        norm, (slope, inner) = self._norm(result), slopes(result, self._beta, self._objective)
        level = result.objective - inner
        if result.gap >= result.objective - self._objective.lower_bound:
            slope, level = -inner / max(norm, 1e-300), -np.inf  # so good a fit says nothing more
        self._tried.append(Tried(norm, slope, level, result.status == "stopped"))
        return norm

    def _sides(self) -> tuple[list[Tried], list[Tried]]:
        """The balls with a radius that is too short, and those with one that is not."""
        told = [t for t in self._tried if not (self._strict and t.left)]
        return (
            [t for t in told if t.slope > self.penalty],
            [t for t in told if t.slope <= self.penalty],
        )

    def _look(self, state: State) -> Status | None:
        """Remember the replica, which knows all atoms that were broadcast.

        Where each step costs a model of the loss, a ball ends once its slope is clearly not right.
        """
        self._replica = state.replica
        if self._objective.quadratic or self._strict or state.round == 0:
            return None
        steep = state.gap - state.replica.active.inner() - self._beta * self.penalty
        return "stopped" if state.gap <= CLEAR * abs(steep) else None

    def _over_known(self) -> NDArray[np.float64] | None:
        """The penalised solution over the known atoms, if it is news, and easy.

        Who is alone gets to know those that are missing first.
        """
        if self._replica is None:
            return None
        foreseen = None
        if self._replica.own is not None:
            own = self._replica.own
            foreseen = self._replica.step.foresee(self._replica, own, self.penalty)
        active, asked = self._replica.active, self._asked
        self._asked = len(active)
        if not isinstance(active, ExplicitActiveSet):
            return None
        if foreseen is not None:
            return active.weights.copy()
        # Each Newton step takes a model: that pays where no atom is missing.
        plain = type(active) is ExplicitActiveSet and active.quadratic
        if not (plain or self._replica.has_all):
            return None
        if not asked < len(active) <= FEW:
            return None
        relative, absolute = self._replica.tol
        return penalised_weights(
            self._replica.domain, active, self.penalty, 0.0 if absolute else relative
        )

    def _next(self) -> float:
        """The radius to try next: that of the known atoms' solution, if it is one to learn from."""
        if self._replica is None:
            return self._guess()
        active = self._replica.active
        before = active.flat(active.kept())
        weights = self._over_known()
        norm = 0.0 if weights is None else float(np.abs(weights).sum())
        short, beyond = self._sides()
        below = max(t.norm for t in short)
        above = min((t.norm for t in beyond), default=np.inf)
        if above - below <= NEAR * below:  # and the gap tells that it is neither: one has misled
            self._strict = True
        if weights is None or not below < norm < above:
            _go_back(active, before)
            return self._guess()
        step = self._replica.step
        if step.alone and step.any_order:  # others have replicas, and steps ways, of their own
            active.set_weights(weights)  # where the next ball begins
        return norm

    def _guess(self) -> float:
        """Where the slope would be the penalty, if it went on falling as it did."""
        too_short, beyond = self._sides()
        short = max(too_short, key=lambda t: t.norm)
        if len(self._tried) == 1 and self._first:
            return self._first
        if len(self._tried) == 1:
            room = short.level - max(self._objective.lower_bound, -abs(short.level))
            return FIRST * (1.0 - self.penalty / short.slope) * room / short.slope
        if not beyond:
            before = max((t for t in self._tried if t is not short), key=lambda t: t.norm)
            if short.norm - before.norm <= NEAR * short.norm:
                # The weights of the one, or none at all, were good enough for the other; or the
                # slope hardly falls from a corner on, and such small steps would never lead there.
                further = max(self._beta - short.norm, short.norm - before.norm)
                further = max(NEAR * short.norm, 2.0 * further)
                return short.norm + further if short.norm else GROWTH * self._beta
            ahead = self._crossing(before, short, max(self.penalty, short.slope / FALL))
            return ahead if short.norm < ahead <= GROWTH * short.norm else GROWTH * short.norm
        long = min(beyond, key=lambda t: t.norm)
        if len(self._tried) % 4:  # else a half, lest one end stays where it is for long
            for one, other in (self._tried[-2:], (short, long)):
                guess = self._crossing(one, other, self.penalty)
                if short.norm < guess < long.norm:
                    return guess
        return 0.5 * (short.norm + long.norm)

    def _crossing(self, one: Tried, other: Tried, slope: float) -> float:
        """Where the line through two balls has this slope; NaN if they are alike.

        Slopes of losses that are not quadratic level off: their logarithms are nearer to a line.
        """
        slopes = np.array([one.slope, other.slope, slope])
        if not self._objective.quadratic and slopes.min() > 0.0:
            slopes = np.log(slopes)
        fall, left = slopes[0] - slopes[1], slopes[1] - slopes[2]
        return float(other.norm + (other.norm - one.norm) * left / fall) if fall else np.nan

    def _least(self) -> float:
        """The least value that the lines leave to the penalised form."""
        lines = [(t.level, self.penalty - t.slope) for t in self._tried if t.level > -np.inf]
        if self._objective.lower_bound > -np.inf:
            lines.append((self._objective.lower_bound, self.penalty))
        norm, (level, slope) = 0.0, max(lines)
        while slope < 0.0:  # from corner to corner, along the highest of them
            meet = [((level - other) / (s - slope), -s, other) for other, s in lines if s > slope]
            if not meet:
                return -np.inf
            norm, falling, level = min(meet)
            slope = -falling
        return float(level + slope * norm)


def _go_back(active: ActiveSet, before: NDArray[np.float64]) -> None:
    """Give known atoms the weights that they had; those that were foreseen may be too long."""
    weights = np.zeros(len(active))
    weights[: len(before)] = before
    if not np.array_equal(active.weights, weights):
        active.set_weights(weights)
