"""The corrective step: after each round, the best weights over all atoms known so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from atomcast.corral import Corral
from atomcast.gram import Gram
from atomcast.protocol import Agreement, Request

if TYPE_CHECKING:
    from atomcast.replica import Replica

#: Where the batch size is chosen automatically, it is this share of the atoms known so far,
GROWTH = 0.2
#: and lies between these bounds.
SMALLEST_BATCH, LARGEST_BATCH = 10, 100
#: Where one round had violators to spare, those of the next that violate less than this share of
#: what its last winner did need not be proposed: they would hardly win.
KEPT = 1 / 3


class Corrective:
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
    needs_quadratic: ClassVar[bool] = True
    patience: ClassVar[float] = 2

    def __init__(self, atoms_per_round: int | Literal["auto"] = "auto") -> None:
        self.atoms_per_round = atoms_per_round
        self._last_violation = 0.0
        self.gram = Gram()
        self.corral: Corral | None = None

    def _batch(self, known: int) -> int:
        if self.atoms_per_round == "auto":
            return min(max(int(GROWTH * known), SMALLEST_BATCH), LARGEST_BATCH)
        return int(self.atoms_per_round)

    def request(self, replica: Replica) -> Request:
        """As many new atoms as the batch holds, of those that violate optimality."""
        count = self._batch(len(replica.active))
        if not replica.feasible:
            return Request(count=count, known_too=False)
        # Below this merit an atom's share of the gap is within the tolerance: it is not needed.
        needed = replica.target / replica.domain.scale
        level = _multiplier(replica) + max(needed, KEPT * self._last_violation)
        return Request(count=count, threshold=level, known_too=False)

    def wanted(self, replica: Replica, agreement: Agreement) -> Agreement:
        """All winners."""
        return agreement

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Minimise over the hull of all known atoms."""
        self._last_violation = 0.0
        full = len(agreement.id) and len(agreement.id) == self._batch(
            len(replica.active) - len(agreement.id)
        )
        if full and replica.feasible:
            merit = replica.domain.merit(agreement.score[-1:])
            self._last_violation = max(float(merit[0]) - _multiplier(replica), 0.0)
        if not len(replica.active):
            return  # the gap is above the tolerance by rounding alone: no atom violates anything
        if self.corral is None:
            self.corral = Corral(replica.domain, self.gram)
        self.corral.minimise(replica.active, 1e-3 * replica.target)


def _multiplier(replica: Replica) -> float:
    """The merit that every atom of the solution has at the optimum over the known atoms."""
    return -replica.active.inner() / replica.domain.scale
