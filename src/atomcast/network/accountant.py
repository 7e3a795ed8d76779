"""The accountant: it enters in a ledger what the nodes of a session say to each other.

Simulated or real, every session tells it what its nodes propose, agree on and broadcast; the
topology knows over which edges that goes. MPI and Ray route messages as they like: what is counted
for them is the star of `LocalCluster`, so that figures can be compared between clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links
from atomcast.network.star import Star
from atomcast.network.topology import Topology
from atomcast.network.wave import Kind, Payload
from atomcast.network.wire import codec as wire

Message = bytes | bytearray | memoryview

#: Bytes that real nodes send with every proposal: how many follow, the digest, the vote.
EXTRA = 24

#: Values and bytes by kind.
Amounts = dict[Kind, tuple[int, int]]

Network = TypeVar("Network", bound=Topology)


class Accountant(Generic[Network]):
    """Enters messages in a ledger, edge by edge, as the topology has them.

    Parameters
    ----------
    network : Topology
    parties : sequence of str, optional
        The names of the nodes.
    target : int or None
        How many values of a target every node is told; None: there is no such target.

    Attributes
    ----------
    ledger : Ledger
    """

    def __init__(
        self,
        network: Network,
        parties: Sequence[str] | None = None,
        target: int | None = None,
    ) -> None:
        self.nodes = network.nodes
        self.network = network
        self.ledger = Ledger(self.nodes, parties)
        network.prepare(self.ledger)
        network.tell_target(target or 0, self.ledger)

    def start_afresh(self) -> None:
        """Begin with an empty ledger, at time 0: another one has what the network cost to build."""
        self.ledger = Ledger(self.nodes, self.ledger.parties)
        self.network.links.clock[:] = 0.0

    def agree(self, proposals: Proposals, count: int, round: int) -> Agreement:
        """What follows from all proposals: they are made known, and the best `count` win."""
        self.ledger.round = round
        return self.network.agree(proposals, count, self.ledger)

    def cast(self, owners: Sequence[int], atoms: Sequence[Atom], sizes: Sequence[int]) -> None:
        """Enter atoms that their owners broadcast in so many bytes."""
        if self.nodes == 1 or not atoms:
            return
        values = [atom.count for atom in atoms]
        self.network.broadcast(owners, values, sizes, self.ledger)
        self.disclose(owners, atoms)

    def disclose(self, owners: Sequence[int], atoms: Sequence[Atom]) -> None:
        """Enter that these atoms have left their owners."""
        if self.nodes > 1:
            for owner, atom in zip(owners, atoms, strict=True):
                self.ledger.disclose(owner, atom.id, atom.name, atom.count)

    def receive(
        self, owners: Sequence[int], messages: Sequence[Message], lengths: Sequence[int]
    ) -> list[Atom]:
        """The atoms of these lengths that their owners broadcast, entered in the ledger."""
        atoms = [wire.decode(m, length) for m, length in zip(messages, lengths, strict=True)]
        self.cast(owners, atoms, [len(message) for message in messages])
        return atoms

    def enter(self, links: Links, messages: Sequence[tuple[int, Amounts]], now: float) -> None:
        """Enter messages that arrive together: the link of each, and what it holds.

        All must hold the same kinds.
        """
        parts: dict[Kind, Payload] = {}
        for kind in messages[0][1]:
            table = np.array([amounts[kind] for _, amounts in messages], dtype=np.int64)
            parts[kind] = Payload(table[:, 0], table[:, 1])
        used = np.array([link for link, _ in messages], dtype=np.int64)
        self.ledger.deliver(links.ends, used, parts, now)

    def add_up(self, values: int) -> None:
        """Enter that the nodes add up so many predictions, which takes a round."""
        self.network.add_up(values, self.ledger)
        self.ledger.round += 1

    def add_corners(self, values: int, round: int) -> None:
        """Enter that the nodes add up vectors of so many values."""
        self.ledger.round = round
        self.network.add_up(values, self.ledger, "corner")

    def work(self, seconds: NDArray[np.float64]) -> None:
        """Let every node compute for so many simulated seconds."""
        self.ledger.reach(self.network.links.work(np.arange(self.nodes), seconds))


def star_accountant(
    nodes: int, parties: Sequence[str] | None = None, target: int | None = None
) -> Accountant[Star]:
    """The accountant of a cluster of real processes."""
    return Accountant(Star(nodes, extra=EXTRA), parties, target)
