"""A star: N nodes around a coordinator, which ranks the proposals for everybody.

The improved protocol of section 4.1 is aggregation on a tree with the coordinator as its root:
proposals go to the coordinator only, which sends the outcome back. In a round of the classic step,
N nodes send a score, an index and a partial sum up (3N values), the coordinator sends the winner's
score, index and the sum down (3N), and the atom goes up one edge and down N - 1. The plain
protocol lets the coordinator pass every proposal on to everybody: 3N^2 values instead of 6N.

What goes over a star is known without carrying it from node to node. Where messages take no time,
a round enters the totals, which its trace needs, and the messages are worked out when somebody
asks for them: the arrays take longer than the messages themselves do on MPI.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from atomcast.messages.proposals import Agreement, OneEach, Proposals, agree, agree_on_one
from atomcast.network.flooding import Flooding
from atomcast.network.ledger import COORDINATOR, Accountant, Ledger
from atomcast.network.links import MOST, Links
from atomcast.network.rooted import Parcels, RootedTree
from atomcast.network.wave import (
    Carried,
    Counts,
    Kind,
    Payload,
    Talk,
    Traffic,
    numbers,
    proposal_parts,
)

#: Bytes beside the numbers of a message to one node: the version, and what it is to do.
ORDER = Payload(np.array([0]), np.array([16]))
#: Bytes that real nodes send with every proposal: how many follow, the digest, the vote.
EXTRA = 24


def star_links(nodes: int, latency: float = 0.0, bandwidth: float = np.inf) -> Links:
    """The edges of a star; vertex N is the coordinator, and a single node needs none."""
    if nodes == 1:
        return Links(1, np.zeros((0, 2)))
    spokes = np.stack((np.arange(nodes), np.full(nodes, nodes)), axis=1)
    names = np.append(np.arange(nodes), COORDINATOR)
    return Links(nodes + 1, spokes, latency, bandwidth, names)


class Star(RootedTree):
    """N nodes, each connected to a coordinator; a single node is alone and sends nothing.

    Parameters
    ----------
    nodes : int
    latency, bandwidth : float
    extra : int, default=0
        Bytes that go with the proposals of every node beside their numbers.

    Attributes
    ----------
    up, down : arrays of shape (nodes,)
        The link of each node to the coordinator, and the one back.
    """

    def __init__(
        self, nodes: int, latency: float = 0.0, bandwidth: float = np.inf, extra: int = 0
    ) -> None:
        parent = np.append(np.full(nodes, nodes), -1) if nodes > 1 else np.array([-1])
        super().__init__(nodes, parent, star_links(nodes, latency, bandwidth))
        nowhere = np.zeros(0, dtype=np.int64)
        self.up = self._up[0] if nodes > 1 else nowhere
        self.down = self._down[0] if nodes > 1 else nowhere
        self._extra: dict[Kind, Payload] = {}
        if extra:
            self._extra["control"] = Payload(np.array([0]), np.array([extra]))
        self._known: dict[tuple[object, ...], Talk] = {}
        self._ones: dict[bool, Talk] = {}
        self._casts: dict[tuple[int, int, int], Broadcast] = {}

    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Proposals go up to the coordinator, and the agreement comes down."""
        agreement = agree(proposals, count)
        if self.nodes > 1:
            # Rounds are mostly alike: the rows are sorted by node, and say all that counts.
            alike = proposals.per_node if proposals.signals else proposals.node
            partial, told = proposals.partial is not None, agreement.told
            key = (alike.tobytes(), told, partial)
            talk = self._known.get(key)
            if talk is None:
                talk = self._new_talk(key, proposals.per_node, told, partial)
            self._enter(talk, ledger)
        return agreement

    def agree_on_one(self, each: OneEach, ledger: Ledger) -> Agreement:
        """The same where every node proposes one atom, in plain numbers."""
        agreement = agree_on_one(each)
        if self.nodes > 1:
            partial = agreement.inner is not None
            talk = self._ones.get(partial)
            if talk is None:
                talk = self._ones[partial] = self._talk(np.ones(self.nodes, np.int64), 1, partial)
            self._enter(talk, ledger)
        return agreement

    def _enter(self, traffic: Traffic, ledger: Ledger) -> None:
        """Enter what goes up and down, or let it take its time."""
        if not self.links.timed:
            ledger.enter(traffic)
            return
        for _, links, parts in traffic.waves():
            self.links.carry(links, parts, ledger)

    def broadcast(
        self, source: ArrayLike, values: ArrayLike, size: ArrayLike, ledger: Ledger
    ) -> None:
        """From the owners to the coordinator, and from there to all who do not have an atom yet.

        That is what flooding comes to on a star, in two waves instead of a search for them.
        """
        sent: list[list[int]] = [source, values, size]  # type: ignore[list-item]  # mostly
        if not (isinstance(source, list) and isinstance(values, list) and isinstance(size, list)):
            sent = [np.atleast_1d(np.asarray(numbers)).tolist() for numbers in sent]
        if self.nodes > 1 and len(sent[0]) == 1:
            self.broadcast_one(sent[0][0], sent[1][0], sent[2][0], ledger)
        elif self.nodes > 1 and sent[0]:
            self._enter(Broadcast(self, *sent), ledger)

    def broadcast_one(self, owner: int, values: int, size: int, ledger: Ledger) -> None:
        """The same of a single atom, where there are several nodes; most are as long as another."""
        key = owner, values, size
        sent = self._casts.get(key)
        if sent is None:
            if len(self._casts) >= MOST:
                self._casts.clear()
            self._casts[key] = sent = Broadcast(self, [owner], [values], [size])
        self._enter(sent, ledger)

    def _new_talk(self, key: tuple[object, ...], offered: Counts, told: int, partial: bool) -> Talk:
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = talk = self._talk(offered, told, partial)
        return talk

    def _talk(self, offered: Counts, told: int, partial: bool) -> Talk:
        """So many proposals of each node on their way up, and so many that have won down."""
        ends = self.links.ends
        up = proposal_parts(offered, partial) | self._extra
        down = proposal_parts(np.array([told]), partial)
        return Talk([(ends, self.up, up), (ends, self.down, down)])

    # -- one node at a time: nobody waits for the others ------------------------------------

    def hear(self, node: int, offered: int, ledger: Ledger) -> None:
        """Carry the proposals of one node to the coordinator."""
        self.links.carry(self.up[[node]], self._offer(offered), ledger)

    def arrival(self, node: int, offered: int) -> float:
        """When the coordinator would hear these proposals if they were sent now."""
        return float(self.links.arrival(self.up[[node]], self._offer(offered))[0])

    def _offer(self, offered: int) -> dict[Kind, Payload]:
        return proposal_parts(np.array([offered]), False) | self._extra

    def tell(
        self, node: int, winners: int, ledger: Ledger, atoms: tuple[int, int] = (0, 0)
    ) -> None:
        """Carry the winners since a node was last told to it, with atoms of so much in all.

        `atoms` are the values and bytes of those atoms that it does not hold.
        """
        parts: dict[Kind, Payload] = {}
        if atoms[1]:
            parts["atom"] = Payload(np.array(atoms[:1]), np.array(atoms[1:]))
        if winners:
            parts |= proposal_parts(np.array([winners]), False)
        self.links.carry(self.down[[node]], parts | {"control": ORDER}, ledger)

    def ask_for(self, owners: Sequence[int], ledger: Ledger) -> None:
        """Tell owners which of their atoms have won."""
        if self.nodes > 1 and owners:
            each, counts = np.unique(owners, return_counts=True)
            self.links.carry(self.down[each], {"index": numbers(counts)}, ledger)

    def fetch(
        self, owners: Sequence[int], values: Sequence[int], size: Sequence[int], ledger: Ledger
    ) -> None:
        """Carry atoms from their owners to the coordinator, and no further."""
        if self.nodes > 1:
            sent = self._below(Parcels(owners, values, size))
            each = np.flatnonzero(sent[0, : self.nodes])
            self.links.carry(self.up[each], {"atom": Payload(*sent[1:, each])}, ledger)


def lone_star() -> Star:
    """A node by itself: as nothing crosses its network, only the clock is made anew."""
    known = _lone_star()
    star, links = Star.__new__(Star), Links.__new__(Links)  # half a dozen times faster than copies
    vars(links).update(vars(known.links), clock=np.zeros(1))
    vars(star).update(vars(known), links=links)
    return star


@cache
def _lone_star() -> Star:
    star = Star(1)
    star.prepare(Ledger(1))
    return star


def star_accountant(
    nodes: int, parties: Sequence[str] | None = None, target: int = 0
) -> Accountant[Star]:
    """The accountant of a cluster of real processes."""
    return Accountant(Star(nodes, extra=EXTRA), parties, target)


class PlainStar(Flooding):
    """The same star, where every proposal is broadcast to everybody by way of the coordinator."""

    def __init__(self, nodes: int, latency: float = 0.0, bandwidth: float = np.inf) -> None:
        # Nothing comes twice on a star, so that records need not say where they come from.
        super().__init__(nodes, star_links(nodes, latency, bandwidth), signed=False)


class Broadcast:
    """Atoms on their way up from their owners, and down to every node that does not have them.

    Parameters
    ----------
    star : Star
    owners, values, sizes : lists of int, length k
        The owner of each atom, its real numbers, and its bytes.
    """

    __slots__ = ("_sent", "_star", "bytes", "messages", "values")

    def __init__(self, star: Star, owners: list[int], values: list[int], sizes: list[int]) -> None:
        self._star, self._sent = star, (owners, values, sizes)
        nodes, senders = star.nodes, len(set(owners))
        # Every atom crosses the edge of every node once, up or down.
        self.values, self.bytes = nodes * sum(values), nodes * sum(sizes)
        # A node that has sent all there is has nothing to receive.
        self.messages = senders + (nodes - 1 if senders == 1 else nodes)

    def waves(self) -> list[Carried]:
        """Up from the owners, and down to all who lack something."""
        star, (owners, *amounts) = self._star, self._sent
        sent = np.zeros((2, star.nodes), dtype=np.int64)
        for row, each in zip(sent, amounts, strict=True):
            np.add.at(row, np.asarray(owners), each)
        missing = sent.sum(axis=1, keepdims=True) - sent
        waves: list[Carried] = []
        for carried, links in ((sent, star.up), (missing, star.down)):
            used = np.flatnonzero(carried[1])
            waves.append((star.links.ends, links[used], {"atom": Payload(*carried[:, used])}))
        return waves
