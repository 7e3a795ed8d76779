"""A star whose coordinator looks at candidates, and passes on those that are of use.

An atom goes up one edge and down all others. What the coordinator keeps back costs one edge instead
of N; and it can compare the candidates of different nodes, which no node can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request, agree
from atomcast.network.ledger import Accountant
from atomcast.network.star import Star
from atomcast.network.wire import codec as wire

Winners = Sequence[tuple[int, int]]


class Weighing:
    """What the coordinator has seen, and what it makes of it.

    Parameters
    ----------
    accountant : Accountant
    network : Star
    atom_of : callable
        An atom as its owner would send it, of an owner and an id.
    """

    def __init__(
        self, accountant: Accountant[Star], network: Star, atom_of: Callable[[int, int], Atom]
    ) -> None:
        self._accountant, self._network, self._atom_of = accountant, network, atom_of
        self._seen: dict[int, Atom] = {}

    def agree(self, replica: Replica, request: Request, proposals: Proposals) -> Agreement:
        """The candidates that are of use together, of the best that were proposed."""
        ledger = self._accountant.ledger
        ledger.round = replica.ledger_round
        candidates = agree(proposals, request.count)
        new = candidates.new_to(self._seen)
        shown = [self._atom_of(owner, id) for owner, id in new]
        owners, values, sizes = _sizes(new, shown)
        self._network.look(proposals, owners, values, sizes, ledger)
        self._seen |= {atom.id: atom for atom in shown}
        for owner, atom in zip(owners, shown, strict=True):
            ledger.tell("candidate", owner, atom.name, atom.count, atom.id)
        atoms = [self._seen[id] for id in candidates.id.tolist()]
        return candidates.of(replica.step.thinned(replica, atoms, candidates.score))

    def cast(self, winners: Winners) -> list[Atom] | None:
        """The winners, passed on to everybody; None if they are not at the coordinator."""
        if not all(id in self._seen for _, id in winners):
            return None
        atoms = [self._seen.pop(id) for _, id in winners]
        owners, values, sizes = _sizes(winners, atoms)
        self._network.pass_on(owners, values, sizes, self._accountant.ledger)
        self._accountant.disclose(owners, atoms)
        return atoms


def _sizes(winners: Winners, atoms: Sequence[Atom]) -> tuple[list[int], list[int], list[int]]:
    """The owner, the values and the bytes of each atom."""
    owners = [owner for owner, _ in winners]
    return owners, [atom.count for atom in atoms], [wire.encoded_size(atom) for atom in atoms]
