"""The account that clusters of real processes keep: the logical star of `LocalCluster`.

MPI and Ray route messages as they like. What is counted is what the nodes have to tell each other,
by the same rules as in a simulation, so that figures can be compared between clusters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomcast.atoms.atom import Atom
from atomcast.network import wire
from atomcast.network.ledger import COORDINATOR, Ledger
from atomcast.network.star import Star
from atomcast.protocol import Agreement, Proposals
from atomcast.replica import Replica

Message = bytes | bytearray | memoryview

#: Bytes that go with every proposal beside the numbers: how many follow, the digest, the vote.
CONTROL_BYTES = 24


class Account:
    """A ledger, and the star whose messages are entered in it."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.ledger = Ledger(nodes)
        self._star = Star(nodes)
        self._star.prepare(self.ledger)
        self._all, self._hub = np.arange(nodes), np.full(nodes, COORDINATOR)
        self._none, self._control = np.array([0]), np.array([CONTROL_BYTES])

    def agree(self, replica: Replica, proposals: Proposals, count: int) -> Agreement:
        """The agreement that follows from all proposals."""
        self.ledger.round = replica.round
        if self.nodes > 1:
            self.ledger.record("control", self._all, self._hub, self._none, self._control)
        return self._star.agree(proposals, count, self.ledger)

    def receive(self, owners: Sequence[int], messages: Sequence[Message]) -> list[Atom]:
        """The atoms that their owners broadcast in these bytes, entered in the ledger."""
        atoms = [wire.decode(message) for message in messages]
        if self.nodes == 1:  # nobody else heard it
            return atoms
        if atoms:
            counts, sizes = [atom.count for atom in atoms], [len(message) for message in messages]
            self._star.broadcast(owners, counts, sizes, self.ledger)
        for owner, atom in zip(owners, atoms, strict=True):
            self.ledger.disclose(owner, atom.id, atom.name, atom.count)
        return atoms


def new_winners(replica: Replica, agreement: Agreement) -> list[tuple[int, int]]:
    """The owner and id of each winner that was not broadcast before, in order."""
    pairs = zip(agreement.owner.tolist(), agreement.id.tolist(), strict=True)
    return [(owner, id) for owner, id in pairs if id not in replica.active]
