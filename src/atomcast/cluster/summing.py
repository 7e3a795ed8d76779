"""Rounds whose outcome is not a winner but a sum: of what every node has to say, one vector.

The sum is an atom that nobody owns. It crosses the network as it comes about, so that everybody
has it with the agreement, and there is nothing left to broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.node import Fleet
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.network.accountant import Accountant

Floats = NDArray[np.float64]


class SummingFleet(Fleet):
    """Nodes that answer for all that they hold with one vector."""

    def __init__(
        self,
        atoms: Any,
        ids: NDArray[np.int64],
        owner: NDArray[np.int64],
        nodes: int,
        sizes: NDArray[np.int64] | None = None,
    ) -> None:
        super().__init__(atoms, ids, owner, nodes, sizes)
        holders = np.unique(owner)
        # Nodes that live together still keep to themselves.
        self._parts = (
            [atoms.take(np.flatnonzero(owner == node)) for node in holders]
            if len(holders) > 1
            else [atoms]
        )

    def propose(self, replica: Replica, request: Request) -> Proposals:
        """The sum of what the nodes of this process have to say."""
        none = np.zeros(0, dtype=np.int64)
        total = sum(part.contribution(replica, request) for part in self._parts)
        self.scored = self._held_by
        return Proposals(none, none, np.zeros(0), np.zeros(0), np.zeros(self.nodes), sum=total)


def conclude(
    accountant: Accountant[Any], proposals: Proposals, request: Request, replica: Replica
) -> Agreement:
    """What follows from what all nodes have said: winners, or a sum."""
    total = proposals.sum
    if total is None:
        return accountant.agree(proposals, request.count, replica.ledger_round)
    accountant.add_corners(len(total), replica.ledger_round)
    active: Any = replica.active
    d = active.objective.d
    atom = Atom(len(active), d, total[:d], extras=total[d:])
    score, complete = atom.dot(active.gradient), len(total) == d
    return Agreement(
        # What corners promised that were found on the way is no bound for those at the iterate.
        best=-score if complete else float(total[d]) - active.inner(),
        owner=np.zeros(1, dtype=np.int64),
        id=np.array([atom.id]),
        score=np.array([score]),
        complete=complete,
        sum=atom,
    )
