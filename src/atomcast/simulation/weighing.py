"""A root that looks at candidates, and passes on those that are of use.

On a star, an atom goes up one edge and down all others. What the coordinator keeps back costs one
edge instead of N; and it can compare the candidates of different nodes, which they cannot. So can
the root of a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request, agree
from atomcast.network.ledger import Accountant
from atomcast.network.rooted import Parcels, RootedTree
from atomcast.network.wire import codec as wire

Winners = Sequence[tuple[int, int]]


class Weighing:
    """What the root has seen, and what it makes of it.

    Parameters
    ----------
    accountant : Accountant
    network : RootedTree
    atom_of : callable
        An atom as its owner would send it, of an owner and an id.
    """

    def __init__(
        self, accountant: Accountant[Any], network: RootedTree, atom_of: Callable[[int, int], Atom]
    ) -> None:
        self._accountant, self._network, self._atom_of = accountant, network, atom_of
        self._seen: dict[int, Atom] = {}

    def agree(self, replica: Replica, request: Request, proposals: Proposals) -> Agreement:
        """The candidates that are of use together, of the best that were proposed."""
        ledger = self._accountant.ledger
        ledger.round = replica.ledger_round
        candidates = agree(proposals, request.candidates)
        new = candidates.new_to(self._seen)
        shown = [self._atom_of(owner, id) for owner, id in new]
        self._network.look(proposals, request.candidates, _parcels(new, shown), ledger)
        self._seen |= {atom.id: atom for atom in shown}
        if self._network.nodes > 1:
            for (owner, _), atom in zip(new, shown, strict=True):
                ledger.tell("candidate", owner, atom.name, atom.count, atom.id)
        atoms = [self._seen[id] for id in candidates.id.tolist()]
        return candidates.of(replica.step.picked(replica, atoms, candidates))

    def cast(self, winners: Winners) -> list[Atom] | None:
        """The winners, passed on to everybody; None if they are not at the root."""
        if not winners or not all(id in self._seen for _, id in winners):
            return None
        atoms = [self._seen.pop(id) for _, id in winners]
        parcels = _parcels(winners, atoms)
        self._network.pass_on(parcels, self._accountant.ledger)
        self._accountant.disclose(parcels.owners, atoms)
        return atoms


def _parcels(winners: Winners, atoms: Sequence[Atom]) -> Parcels:
    """What atoms with these owners take on their way."""
    owners = [owner for owner, _ in winners]
    values = [atom.count for atom in atoms]
    return Parcels(owners, values, [wire.encoded_size(atom) for atom in atoms])
