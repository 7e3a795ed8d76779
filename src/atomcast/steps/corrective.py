"""The corrective step: after each round, the best weights over all atoms known so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.proposals import Agreement, Request
from atomcast.steps.base import Step
from atomcast.steps.inner.choice import (
    CARRIED,
    MANY_WEIGHTS,
    KernelQuadratic,
    Memory,
    inner_solver,
)
from atomcast.steps.inner.coordinate_descent import many

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica
    from atomcast.steps.inner.newton import Inner


class Corrective(Step):
    """Re-optimise over the whole active set, which costs no communication.

    Several atoms may join in a round, but only violators: atoms that would lower the objective by
    more than the tolerance. Atoms that were broadcast are known for ever, so none is sent twice.

    Parameters
    ----------
    atoms_per_round : int or "auto"
        How many atoms may join in a round. "auto" lets the batches grow with the active set, so
        that rounds are few and yet hardly an atom is sent that the solution does not need.
    """

    name: ClassVar[str] = "corrective"
    any_order: ClassVar[bool] = True
    one_atom: ClassVar[bool] = False
    patience: ClassVar[float] = 2

    def __init__(self, atoms_per_round: int | Literal["auto"] = "auto") -> None:
        self.atoms_per_round = atoms_per_round
        self._asked = 0  # atoms of the batch under way
        self._last_violation = 0.0
        self.inner: Inner | None = None
        self._carried: Memory = {}

    def _batch(self, replica: Replica) -> int:
        if self.atoms_per_round != "auto":
            return int(self.atoms_per_round)
        active = replica.active
        used = np.count_nonzero(active.weights) / max(len(active), 1)
        return replica.problem.batches.size(active.atoms, used)

    def request(self, replica: Replica) -> Request:
        """As many new atoms as the batch holds, of those that violate optimality."""
        self._asked = count = self._batch(replica)
        if not replica.feasible:
            return Request(count=count, known_too=False)
        # Below this merit an atom's share of the gap is within the tolerance: it is not needed.
        needed = replica.target / replica.domain.scale
        likely = replica.problem.batches.kept * self._last_violation
        level = _multiplier(replica) + max(needed, likely)
        return Request(count=count, threshold=level, known_too=False)

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Minimise over the hull of all known atoms."""
        self._last_violation = 0.0
        full = len(agreement.id) == self._asked
        # Where some node was not heard, its violators may be larger than the last winner.
        if full and replica.feasible and agreement.complete:
            merit = replica.domain.merit(agreement.score)
            self._last_violation = max(float(merit.min()) - _multiplier(replica), 0.0)
        if not len(replica.active):
            return  # the gap is above the tolerance by rounding alone: no atom violates anything
        if self.inner is None:
            self.inner = inner_solver(replica, self._carried)
        self.inner.minimise(replica.active, self._tolerance(replica, agreement))

    def _tolerance(self, replica: Replica, agreement: Agreement) -> float:
        """How exact the weights must be: far from the optimum, no better than is of use."""
        active, kernel = replica.active, isinstance(self.inner, KernelQuadratic)
        few = len(active) <= MANY_WEIGHTS if kernel else not many(active)
        if active.quadratic and few:
            return 1e-3 * replica.target
        gap = replica.domain.gap(active.inner(), agreement.best)
        if kernel:
            # The smaller the gap, the more exact: else rounds go by in which only weights change.
            return max(0.3 * replica.target, min(0.2, 0.5 * gap / replica.unit) * gap)
        share = 0.05 if active.quadratic else 0.2  # each model of a changing curvature costs more
        return max(0.1 * replica.target, share * gap if replica.feasible else 0.0)

    def memory(self) -> dict[str, NDArray[Any]]:
        """The last violation, and what the inner solver carries from round to round."""
        if isinstance(self.inner, KernelQuadratic):
            self._carried = self.inner.memory()
        return {"last_violation": np.array([self._last_violation]), **self._carried}

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over the memory; the corral and the Gram matrix follow from the weights."""
        self._last_violation = float(memory["last_violation"][0])
        self._carried = {name: array for name, array in memory.items() if name.startswith(CARRIED)}


def _multiplier(replica: Replica) -> float:
    """The merit that every atom of the solution has at the optimum over the known atoms."""
    return -replica.active.inner() / replica.domain.scale
