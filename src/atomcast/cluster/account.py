"""The account that clusters of real processes keep: the logical star of `LocalCluster`.

MPI and Ray route messages as they like. What is counted is what the nodes have to tell each other,
by the same rules as in a simulation, so that figures can be compared between clusters. The messages
of a star are known without carrying them from node to node, which would take longer than the real
ones do; tests compare the outcome with the simulation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomcast.cluster.star_traffic import Broadcast, Star, Talk
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, agree
from atomcast.network.ledger import Ledger
from atomcast.network.star import star_links
from atomcast.network.topology import announce, enter_target, proposal_parts
from atomcast.network.wave import Counts, Part
from atomcast.network.wire import codec as wire

Message = bytes | bytearray | memoryview

#: Bytes that go with every proposal beside the numbers: how many follow, the digest, the vote.
CONTROL = Part(np.array([0]), np.array([24]))


class Account:
    """A ledger, and the star whose messages are entered in it.

    Parameters
    ----------
    nodes : int
    parties : sequence of str, optional
        The names of the nodes.
    target : int or None
        How many values of a target every node is told; None: there is no such target.
    """

    def __init__(
        self, nodes: int, parties: Sequence[str] | None = None, target: int | None = None
    ) -> None:
        self.nodes = nodes
        self.ledger = Ledger(nodes, parties)
        self._links = star_links(nodes)
        announce(self._links, self.ledger)
        every = np.arange(nodes)
        up: Counts = every[:0]
        if nodes > 1:
            up = self._links.between(every, np.full(nodes, nodes))
        self._star = Star(self._links.ends, up, self._links.reverse[up])
        self._known: dict[tuple[object, ...], Talk] = {}
        enter_target(self._links, nodes, target or 0, [self._star.down], self.ledger)

    def agree(self, replica: Replica, proposals: Proposals, count: int) -> Agreement:
        """What follows from all proposals: they go up, and the agreement comes down."""
        agreement = agree(proposals, count)
        ledger = self.ledger
        ledger.round = replica.ledger_round
        if self.nodes > 1:
            # Rounds are mostly alike: the rows are sorted by node, and say all that counts.
            key = (proposals.node.tobytes(), len(agreement.id), proposals.partial is None)
            talk = self._known.get(key)
            ledger.enter(self._new_talk(key, proposals, agreement) if talk is None else talk)
        return agreement

    def receive(
        self, owners: Sequence[int], messages: Sequence[Message], lengths: Sequence[int]
    ) -> list[Atom]:
        """The atoms of these lengths that their owners broadcast, entered in the ledger."""
        atoms = [wire.decode(m, length) for m, length in zip(messages, lengths, strict=True)]
        self.enter(owners, atoms, messages)
        return atoms

    def enter(
        self, owners: Sequence[int], atoms: Sequence[Atom], messages: Sequence[Message]
    ) -> None:
        """Enter atoms that their owners broadcast in these bytes."""
        if self.nodes == 1 or not atoms:
            return
        ledger, values = self.ledger, [atom.count for atom in atoms]
        ledger.enter(Broadcast(self._star, owners, values, [len(m) for m in messages]))
        for owner, atom, count in zip(owners, atoms, values, strict=True):
            ledger.disclose(owner, atom.id, atom.name, count)

    def _new_talk(self, key: tuple[object, ...], said: Proposals, agreement: Agreement) -> Talk:
        if len(self._known) > 1000:
            self._known.clear()
        partial = said.partial is not None
        up = {**proposal_parts(said.per_node, partial), "control": CONTROL}
        down = proposal_parts(np.array([len(agreement.id)]), partial)
        self._known[key] = talk = Talk(self._star, up, down)
        return talk


def new_winners(replica: Replica, agreement: Agreement) -> list[tuple[int, int]]:
    """The owner and id of each winner that was not broadcast before, in order."""
    pairs = zip(agreement.owner.tolist(), agreement.id.tolist(), strict=True)
    return [(owner, id) for owner, id in pairs if id not in replica.active]
