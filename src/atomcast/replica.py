"""The state that every node holds a copy of: what was broadcast, and what follows from it.

Every node applies the same deterministic step to the same messages, so that all copies stay equal
without further communication. Nodes that share a process share one copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from atomcast.atoms.atom import Atom
from atomcast.problem import Problem
from atomcast.protocol import Agreement, Request

if TYPE_CHECKING:
    from atomcast.steps import Step


class Replica:
    """The active set, the iterate, and the rule that moves it from round to round.

    Parameters
    ----------
    problem : Problem
    step : Step
        The rule, with a workspace of its own.
    tol : float
        The relative gap that is good enough; steps need not be more exact than that.
    """

    def __init__(self, problem: Problem, step: Step, tol: float) -> None:
        if step.needs_polytope and not problem.domain.polytope:
            raise ValueError(
                f"step={step.name!r} needs a domain with finitely many vertices, which "
                f"{type(problem.domain).__name__} is not: use "
                '"corrective", "line-search" or "classic"'
            )
        self.problem = problem
        self.domain = problem.domain
        self.step = step
        self.tol = tol
        self.round = 0
        self.active = problem.make_active()
        # Below this share of the objective at zero, a relative gap would only measure rounding.
        self._smallest = self.active.negligible()

    @property
    def feasible(self) -> bool:
        """False only before the first atom, where the domain has no origin to start from."""
        return self.domain.has_origin or bool(np.any(self.active.weights))

    @property
    def unit(self) -> float:
        """What a gap is divided by to make it relative."""
        return max(abs(self.active.value()), self._smallest, 1e-300)

    @property
    def target(self) -> float:
        """The gap, in units of the objective, at which the run may stop."""
        return self.tol * self.unit

    def request(self) -> Request:
        """What the next round asks of the nodes."""
        return self.step.request(self)

    def wanted(self, agreement: Agreement) -> Agreement:
        """The winners that the step will really use; the others are not broadcast."""
        return self.step.wanted(self, agreement)

    @property
    def smallest_target(self) -> float:
        """What `target` never falls below."""
        return self.tol * self._smallest

    def certified(self, duality_gap: float) -> float:
        """The best bound on the distance to the optimum that is known here.

        That is the duality gap, but where the fit is perfect up to rounding: there, the objective
        itself is closer to its lower bound than rounding lets the duality gap show.
        """
        if not self.feasible:
            return math.inf
        above_bound = self.active.value() - self.active.lower_bound
        return min(duality_gap, above_bound) if above_bound <= self.target else duality_gap

    def advance(self, agreement: Agreement, atoms: Sequence[Atom]) -> None:
        """Take the step that follows from the agreement and the atoms received with it."""
        self.active.append(atoms)
        self.step.advance(self, agreement)
        self.round += 1
