"""The state that every node holds a copy of: what was broadcast, and what follows from it.

Every node applies the same deterministic step to the same messages, so that all copies stay equal
without further communication. Nodes that share a process share one copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import L1Ball
from atomcast.domains.group_ball import GroupBall
from atomcast.known.active_set import LEAST_UNIT
from atomcast.loop.trace import Row
from atomcast.messages.atom import Atom, check_scores
from atomcast.messages.proposals import Agreement, Request
from atomcast.problems.problem import Problem
from atomcast.selection.rules import EXACT, Rewording, Selection, Subset

if TYPE_CHECKING:
    from atomcast.steps import Step
    from atomcast.steps.step import OwnAtoms

Floats = NDArray[np.float64]
NOBODY, NOTHING = np.zeros(0, dtype=np.int64), np.zeros(0)
TINY, EPS = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).eps)


class Tolerance(NamedTuple):
    """How small a gap is enough: a share of the objective, or a number."""

    value: float
    absolute: bool = False

    def gap(self, unit: float) -> float:
        """The gap that is enough where the objective is `unit`."""
        return self.value if self.absolute else self.value * unit


class Replica:
    """The active set, the iterate, and the rule that moves it from round to round.

    Parameters
    ----------
    problem : Problem
    step : Step
        The rule, with a workspace of its own.
    tol : Tolerance
        The gap that is good enough; steps need not be more exact than that.
    selection : Selection
        Which atoms nodes may propose.
    """

    def __init__(
        self, problem: Problem, step: Step, tol: Tolerance, selection: Selection = EXACT
    ) -> None:
        if step.needs_polytope and not problem.domain.polytope:
            raise ValueError(
                f"step={step.name!r} needs a domain with finitely many vertices, which "
                f"{type(problem.domain).__name__} is not: use "
                '"corrective", "line-search" or "classic"'
            )
        if step.needs_blocks and not problem.summed:
            raise ValueError(
                f"step={step.name!r} needs a problem with a block for each example, as that of "
                'StructuredSVM is: use "corrective" or another step'
            )
        if step.mixes and type(problem.domain) not in (L1Ball, GroupBall):
            raise ValueError(
                f"step={step.name!r} needs a ball of the l1 norm or of a group norm, which "
                f'{type(problem.domain).__name__} is not: use "corrective" or another step'
            )
        if step.mixes and selection != EXACT:
            raise ValueError(
                f"selection={selection!r} chooses among atoms, but step={step.name!r} mixes all "
                'that a node holds: use selection="exact"'
            )
        if problem.summed and selection != EXACT:
            raise ValueError(
                f"selection={selection!r} chooses among atoms, but here every example counts in "
                'every round: use selection="exact"'
            )
        self.problem = problem
        self.domain = problem.domain
        self.step = step
        self.tol = tol
        self.selection = selection
        # What kind of rule it is, which is asked in every round.
        self.subset = selection if isinstance(selection, Subset) else None
        self.rewording = selection if isinstance(selection, Rewording) else None
        self.round = 0
        self.first_round = 0
        #: Scores may be about iterates that are so many rounds old, if not all are about this one.
        self.staleness: int | None = None
        self._iterates: dict[int | None, Any] = {}
        #: The radii of the last two problems of a path before this one, and their weights.
        self.trail: tuple[tuple[float, Floats], ...] = ()
        #: How many atoms take as long as a round without any, where the network knows.
        self.round_in_atoms: Callable[[], float] | None = None
        #: By node of this process, how far its atoms are from those that may be proposed.
        self.radius: dict[int, float] = {}
        self.active = problem.make_active()
        #: All atoms there are, where one who is alone can look at them.
        self.own: OwnAtoms | None = None
        #: The image at which these were looked at last, and their best merit there.
        self.looked: tuple[Floats | None, float] = None, 0.0
        #: Whether all atoms there are were taken at once: then there is nobody to ask.
        self.has_all = False
        self._feasible = False
        # Below this share of the objective at zero, a relative gap would only measure rounding.
        negligible = self.active.negligible()
        self._smallest = max(negligible, LEAST_UNIT)
        self._check_scale(negligible)

    def _check_scale(self, negligible: float) -> None:
        """Refuse what scores are too small for: those that underflow would be missed in the gap."""
        missed = self.domain.scale * (self.problem.d or 1) * TINY
        least = max(self.tol.gap(negligible), EPS * negligible)
        if negligible and missed > 1e-3 * least:
            raise ValueError(
                f"the radius {self.domain.scale:.3g} is out of scale for a target with an "
                f"objective of {abs(self.active.value()):.3g}: rescale the target, and "
                "the radius or the data with it"
            )

    def continue_from(self, previous: Replica, weights: Floats) -> None:
        """Know all that another run knew, and start from these weights."""
        here = previous.domain.scale, previous.active.weights.copy()
        self.trail = (*previous.trail[-1:], here)
        adopt = self.problem.adopt
        self.active = previous.active if adopt is None else adopt(previous.active)
        if not self.active.shrink(min(1.0, self.domain.scale / previous.domain.scale)):
            self.active.set_weights(weights)
        self.has_all = previous.has_all
        self.first_round = previous.ledger_round + 1

    def straight_on(self) -> Floats | None:
        """The weights that a path leads to if it goes on as it has, from ball to larger ball."""
        flat = self.domain.polytope and self.domain.has_origin
        if not flat or len(self.trail) < 2:
            return None
        (before, earlier), (radius, weights) = self.trail
        if not before < radius < self.domain.scale:
            return None
        way = weights.copy()
        way[: len(earlier)] -= earlier
        there = weights + (self.domain.scale - radius) / (radius - before) * way
        there[there * weights <= 0.0] = 0.0  # what comes to zero stays there
        norm = float(np.abs(there).sum())
        return there if norm <= self.domain.scale else self.domain.scale / norm * there

    @property
    def ledger_round(self) -> int:
        """The number of this round in the ledger, which counts through along a path."""
        return self.first_round + self.round

    @property
    def feasible(self) -> bool:
        """False only before the first atom, where the domain has no origin to start from."""
        if not self._feasible:  # once it is, it stays so, and is asked often
            self._feasible = self.domain.has_origin or bool(np.any(self.active.weights))
        return self._feasible

    @property
    def objective(self) -> float:
        """The objective at the iterate."""
        return self.active.value()

    @property
    def patience(self) -> float:
        """How many rounds without progress end the run."""
        return max(self.step.patience, self.active.patience)

    @property
    def unit(self) -> float:
        """What a gap is divided by to make it relative."""
        return self.unit_at(self.active.value())

    def unit_at(self, objective: float) -> float:
        """The same where the objective is this."""
        size = abs(objective)
        return self._smallest if self._smallest > size else size

    @property
    def target(self) -> float:
        """The gap, in units of the objective, at which the run may stop."""
        return self.tol.gap(self.unit_at(self.active.value()))

    def request(self) -> Request:
        """What the next round asks of the nodes."""
        request = self.step.request(self)
        if self.problem.sample and not len(self.active):
            count = self.step.first(self)
            return replace(request, count=count, random=True, threshold=-math.inf)
        return request

    def wanted(self, agreement: Agreement) -> Agreement:
        """The winners that the step will really use; the others are not broadcast."""
        return self.step.wanted(self, agreement)

    @property
    def smallest_target(self) -> float:
        """What `target` never falls below."""
        return self.tol.gap(self._smallest)

    def certified(self, duality_gap: float) -> float:
        """The best bound on the distance to the optimum that is known here.

        That is the duality gap, but where the fit is perfect up to rounding: there, the objective
        itself is closer to its lower bound than rounding lets the duality gap show. Both count by
        how much the objective is vague.
        """
        if not self.feasible:
            return math.inf
        duality_gap += (vague := self.active.vague())
        if self.active.lower_bound == -math.inf:
            return duality_gap
        value = self.active.value() + vague
        above_bound = value - self.active.lower_bound
        # The first comparison spares most rounds the second one.
        enough = max(self.tol.gap(self.unit_at(value)), 2.0 * vague)
        closer = above_bound < duality_gap and above_bound <= enough
        return above_bound if closer else duality_gap

    def spent(self, gap: float) -> bool:
        """Whether half of a gap, and more than is good enough, is rounding."""
        vague = self.active.vague()
        return vague > 0.0 and vague > self.target and gap <= 2.0 * vague

    def certifies(self, agreement: Agreement) -> bool:
        """Whether the gap that follows from an agreement counts all atoms of all nodes."""
        if self.subset is not None:
            return self.subset.certifies(agreement)
        return agreement.complete

    def foresee(self) -> list[Row]:
        """Let the step look at all atoms there are, where nobody has to be asked for them.

        What it finds counts as a round; returns what the trace says of that.
        """
        before = self.active.value() if self.feasible else math.nan
        gap = None if self.own is None else self.step.foresee(self, self.own)
        if gap is None:
            return []
        self.round += 1
        return [Row(0, 0.0, before, gap, atoms=0, values=0, bytes=0)]

    def foreseen(self) -> Agreement | None:
        """What all atoms would say of this iterate, if they were looked at and none is wanted."""
        image, best = self.looked
        if image is None or image is not self.active.image:
            return None
        enough = self.domain.gap(self.active.inner(), best) <= self.target
        return Agreement(best, NOBODY, NOBODY, NOTHING) if enough else None

    def take(self, atoms: Sequence[Atom]) -> float | None:
        """Take a step with all atoms there are; returns the gap before it, if it is worth it."""
        active, self.has_all = self.active, True
        active.append(atoms)
        if self.problem.sample:  # before the first weights, points have no scores
            self.step.advance(self, Agreement(0.0, NOBODY, NOBODY, NOTHING))
            return math.inf
        found = self.found()
        gap = active.gap(self.domain, found)
        if gap <= self.target:
            return None  # none of them is of use
        known, scores = list(active.position), active.scores()
        if len(scores) > len(known):  # of the weights of an atom, the best stands for it
            each = scores.reshape(len(known), -1)
            scores = each[np.arange(len(known)), self.domain.merit(each).argmax(axis=1)]
        self.step.advance(self, self.joining(atoms, known, scores, found.best))
        return gap

    def joining(
        self, atoms: Sequence[Atom], ids: Sequence[int], scores: Floats, best: float
    ) -> Agreement:
        """What would have been agreed on, had anybody been asked for atoms that have just joined.

        Raises an error if they are not what their scores say, or out of all scales.
        """
        winners = Agreement(best, np.zeros(len(ids), dtype=np.int64), np.array(ids), scores)
        misfit = self.active.misfit(ids, scores)
        check_scores(misfit, ids, winners, atoms, self.domain.scale)
        return winners

    def found(self) -> Agreement:
        """What one who has all atoms need ask nobody for: how good the best is; none can join."""
        best = self.domain.merit(self.active.scores()).max()
        return Agreement(float(best), NOBODY, NOBODY, NOTHING)

    def advance(self, agreement: Agreement, atoms: Sequence[Atom]) -> None:
        """Take the step that follows from the agreement and the atoms received with it."""
        if self.staleness is not None:
            self._iterates[self.round] = self.active.iterate()
            self._iterates.pop(self.round - self.staleness - 1, None)
        self.active.receive(atoms, agreement, self._iterates, self.domain.scale)
        self.step.advance(self, agreement)
        self.round += 1
