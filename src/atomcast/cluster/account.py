"""The account that clusters of real processes keep: the logical star of `LocalCluster`.

MPI and Ray route messages as they like. What is counted is what the nodes have to tell each other,
by the same rules as in a simulation, so that figures can be compared between clusters. The messages
of a star are known without carrying them from node to node, which would take longer than the real
ones do; tests compare the outcome with the simulation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomcast.atoms.atom import Atom
from atomcast.network import wire
from atomcast.network.ledger import Ledger
from atomcast.network.star import star_links
from atomcast.network.topology import announce, proposal_parts
from atomcast.network.wave import Counts, Kind, Part
from atomcast.protocol import Agreement, Proposals, agree
from atomcast.replica import Replica

Message = bytes | bytearray | memoryview

#: Bytes that go with every proposal beside the numbers: how many follow, the digest, the vote.
CONTROL = Part(np.array([0]), np.array([24]))


class Account:
    """A ledger, and the star whose messages are entered in it."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.ledger = Ledger(nodes)
        self._links = star_links(nodes)
        announce(self._links, self.ledger)
        every = np.arange(nodes)
        self._up: Counts = every[:0]
        if nodes > 1:
            self._up = self._links.between(every, np.full(nodes, nodes))
        self._down = self._links.reverse[self._up]
        self._known: dict[tuple[object, ...], dict[Kind, Part]] = {}

    def agree(self, replica: Replica, proposals: Proposals, count: int) -> Agreement:
        """What follows from all proposals: they go up, and the agreement comes down."""
        self.ledger.round = replica.ledger_round
        agreement = agree(proposals, count)
        if self.nodes > 1:
            partial = proposals.partial is not None
            up = self._parts(tuple(proposals.per_node.tolist()), partial)
            self._deliver(self._up, {**up, "control": CONTROL})
            self._deliver(self._down, self._parts((len(agreement.id),), partial))
        return agreement

    def receive(self, owners: Sequence[int], messages: Sequence[Message]) -> list[Atom]:
        """The atoms that their owners broadcast in these bytes, entered in the ledger."""
        atoms = [wire.decode(message) for message in messages]
        if self.nodes > 1 and atoms:
            self._carry(owners, [a.count for a in atoms], [len(m) for m in messages])
            for owner, atom in zip(owners, atoms, strict=True):
                self.ledger.disclose(owner, atom.id, atom.name, atom.count)
        return atoms

    def _carry(self, owners: Sequence[int], values: list[int], sizes: list[int]) -> None:
        """Atoms go up from their owners, and down to every node that does not have them."""
        sent = np.zeros((2, self.nodes), dtype=np.int64)
        for row, amounts in zip(sent, (values, sizes), strict=True):
            np.add.at(row, np.asarray(owners), amounts)
        senders = np.flatnonzero(sent[1])
        self._deliver(self._up[senders], {"atom": Part(*sent[:, senders])})
        missing = sent.sum(axis=1, keepdims=True) - sent
        receivers = np.flatnonzero(missing[1])
        self._deliver(self._down[receivers], {"atom": Part(*missing[:, receivers])})

    def _parts(self, offered: tuple[int, ...], partial: bool) -> dict[Kind, Part]:
        """What messages with so many proposals carry; rounds are mostly alike."""
        key = (*offered, partial)
        if key not in self._known:
            if len(self._known) > 1000:
                self._known.clear()
            self._known[key] = proposal_parts(np.array(offered), partial)
        return self._known[key]

    def _deliver(self, links: Counts, parts: dict[Kind, Part]) -> None:
        self.ledger.deliver(self._links.ends, links, parts)


def new_winners(replica: Replica, agreement: Agreement) -> list[tuple[int, int]]:
    """The owner and id of each winner that was not broadcast before, in order."""
    pairs = zip(agreement.owner.tolist(), agreement.id.tolist(), strict=True)
    return [(owner, id) for owner, id in pairs if id not in replica.active]
