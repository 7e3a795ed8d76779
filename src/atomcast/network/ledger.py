"""The ledger of what was sent, and the accountant who keeps it.

Every value and byte that crossed an edge is in it, and all that left a node to be read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, OneEach, Proposals
from atomcast.network.disclosure import BEFORE, COORDINATOR, Disclosed, Disclosure
from atomcast.network.ledger_views import Views, once_each
from atomcast.network.picture import plot_network
from atomcast.network.wave import (
    KINDS,
    NUMBER,
    Count,
    Counts,
    Kind,
    Payload,
    Talk,
    Traffic,
    Wave,
)
from atomcast.network.wire import codec as wire
from atomcast.plots.page.html_tables import HtmlTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from atomcast.network.star import Star
    from atomcast.network.topology import Topology

__all__ = ["COORDINATOR", "KINDS", "Accountant", "Count", "Counts", "Disclosure"]
__all__ += ["Kind", "Ledger", "Wave"]

#: Atoms that a notebook lists.
SHOWN = 10
NONE = Count()


class Ledger(Views):
    """An account of all communication, kept message by message; lost ones were sent, too.

    Parameters
    ----------
    nodes : int
        How many nodes there are.
    parties : sequence of str, optional
        The names of the nodes.

    Attributes
    ----------
    told : list of Disclosure
        What else was told: the target, predictions for held-out rows, and candidates, which the
        coordinator alone has seen when they are entered.
    edges : array of shape (M, 2) or None
        The edges of the network, where it has told them; -1 is the coordinator of a star.
    labels : sequence or None
        What a graph calls the nodes, where it is not 0, 1, 2, ...
    uncertified : tuple of str
        Parties that stopped to propose before the run ended: the gap does not count their atoms.
    audit_heads : dict of str to str
        By party, where the audit log of its node ended, if it keeps one.
    """

    def __init__(self, nodes: int, parties: Sequence[str] | None = None) -> None:
        self.nodes = nodes
        self.parties = None if parties is None else tuple(parties)
        self.round = 0
        self._disclosures: list[Disclosure] = []
        self._unwritten: list[tuple[int, int, int, str, int, str]] = []
        self.told: list[Disclosure] = []
        self.edges: Counts | None = None
        self.labels: list[Any] | None = None
        self.uncertified: tuple[str, ...] = ()
        self.audit_heads: dict[str, str] = {}
        self._phase, self._first_round = "", 0
        self._before = NONE
        self._values = self._bytes = self._messages = 0
        # In columns, for there may be many rounds: what was sent, and in which of them.
        self._rounds, self._traffic = array("q"), list[Traffic]()
        self._counted = 0
        self._kinds = dict.fromkeys(KINDS, NONE)
        self._hops, self._spent = array("q"), array("d")
        self._seconds = 0.0

    def plot_network(self, weight: str = "values", ax: Axes | None = None) -> Axes:
        """Draw the network with the traffic on its edges; returns the matplotlib axes.

        Parameters
        ----------
        weight : {"values", "bytes", "messages"}
            What the width and colour of an edge show.
        ax : matplotlib axes, optional
        """
        return plot_network(self, weight=weight, ax=ax)

    @property
    def total(self) -> Count:
        """All traffic, that of the target included."""
        return Count(self._values, self._bytes, self._messages) + self._before

    @property
    def values(self) -> int:
        """Real values sent in all rounds, summed over every edge crossed (the paper's measure).

        That every node knows the target is where the paper starts: see `by_kind()["target"]`.
        """
        return self._values

    @property
    def bytes(self) -> int:
        """Bytes sent in all rounds, summed over every edge crossed."""
        return self._bytes

    @property
    def messages(self) -> int:
        """Messages sent in all rounds, each hop counting as one."""
        return self._messages

    @property
    def atoms_sent(self) -> int:
        """How many times an atom was broadcast by its owner."""
        return len(self.disclosures)

    @property
    def seconds(self) -> float:
        """Simulated time: 0.0 unless latencies, bandwidths or computing times are given."""
        return self._seconds

    def record(
        self, kind: Kind, source: Counts, target: Counts, values: Counts, bytes: Counts
    ) -> None:
        """Enter messages of one kind that were delivered at the same time."""
        self.deliver((source, target), np.arange(len(source)), {kind: Payload(values, bytes)})

    def deliver(
        self,
        ends: tuple[Counts, Counts],
        links: Counts,
        parts: Mapping[Kind, Payload],
        now: float = 0.0,
    ) -> None:
        """Enter a wave of messages that were delivered; called by the network for every hop.

        Parameters
        ----------
        ends : pair of arrays of shape (L,)
            Source and target of every link; kept, not copied.
        links : array of shape (m,)
            The links that carried a message; kept, not copied.
        parts : mapping from kind to Payload
            What they carried; the first kind is the one that the messages count under.
        now : float
            The simulated time at which the last of them arrived.
        """
        if not len(links):
            return
        self.enter(Talk([(ends, links, parts)]))
        if self.round != BEFORE and now:
            self.reach(now)

    def enter(self, traffic: Traffic) -> None:
        """Enter traffic of this round by its totals; its waves are looked at when somebody asks.

        Working them out takes longer than a round of MPI does.
        """
        self.append(self.round, traffic)

    def append(self, round: int, traffic: Traffic) -> None:
        """Enter traffic of some round, after all that was entered before."""
        self._rounds.append(round)
        self._traffic.append(traffic)
        if round == BEFORE:
            self._before += Count(traffic.values, traffic.bytes, traffic.messages)
            return
        self._values += traffic.values
        self._bytes += traffic.bytes
        self._messages += traffic.messages

    def entries(self) -> Iterable[tuple[int, Traffic]]:
        """What was sent, and in which round, in order."""
        return zip(self._rounds, self._traffic, strict=True)

    def _count(self) -> None:
        """Know the kinds and hops of all that was entered."""
        counted, self._counted = self._counted, len(self._traffic)
        worked_out = once_each()
        for round, traffic in islice(self.entries(), counted, None):
            for carried in worked_out(traffic):
                wave = Wave(round, *carried)
                for kind in wave.parts:
                    self._kinds[kind] += wave.count(kind)
                if round != BEFORE:
                    self._come_to(round)
                    self._hops[round] += 1

    def _come_to(self, round: int) -> None:
        """Have room for what there is to say of a round."""
        missing = round + 1 - len(self._hops)
        if missing > 0:
            self._hops.extend([0] * missing)
            self._spent.extend([0.0] * missing)

    def reach(self, now: float) -> None:
        """Enter that simulated time has come to `now` in this round."""
        self._come_to(self.round)
        self._spent[self.round] += max(now - self._seconds, 0.0)
        self._seconds = max(now, self._seconds)

    def begin(self, phase: str, round: int) -> None:
        """Enter that a new phase of a fit begins in this round, and what it is called."""
        self._phase, self._first_round = phase, round

    def disclose(self, node: int, atom: int, name: str, values: int) -> None:
        """Enter an atom that left its node; this is done in every round, so it is cheap."""
        round = self.round - self._first_round
        self._unwritten.append((round, node, atom, name, values, self._phase))

    def tell(self, kind: Disclosed, node: int, name: str, values: int, atom: int = -1) -> None:
        """Enter that a node told something that is no atom, or an atom to the coordinator alone."""
        round = BEFORE if self.round == BEFORE else self.round - self._first_round
        party = self._party_name(node)
        self.told.append(Disclosure(round, node, atom, name, values, self._phase, party, kind))

    @property
    def disclosures(self) -> list[Disclosure]:
        """Every atom that left its node, in order."""
        for entry in self._unwritten:
            self._disclosures.append(Disclosure(*entry, self._party_name(entry[1])))
        self._unwritten.clear()
        return self._disclosures

    def _party_name(self, node: int) -> str:
        return "" if self.parties is None else str(self.party(node))

    def __getstate__(self) -> dict[str, Any]:
        # What is yet to be worked out knows its network, which others have no use for.
        once = {id(each): each for each in self._traffic}
        talks = {
            key: each if isinstance(each, Talk) else Talk(list(each.waves()))
            for key, each in once.items()
        }
        return self.__dict__ | {"_traffic": [talks[id(each)] for each in self._traffic]}

    def _repr_html_(self) -> str:
        """What a notebook shows: the traffic by kind, and the atoms that left."""
        kinds = [(k, c.messages, c.values, c.bytes) for k, c in self.by_kind().items() if c.bytes]
        sent = [(one.when, one.who, one.atom, one.name, one.values) for one in self.disclosures]
        by_kind = HtmlTable(repr(self), ("kind", "messages", "values", "bytes"), kinds)
        left = HtmlTable("Atoms that left", ("when", "who", "atom", "name", "values"), sent[:SHOWN])
        more = f"<p>and {len(sent) - SHOWN:,} more</p>" if len(sent) > SHOWN else ""
        return by_kind.html() + left.html() + more

    def __repr__(self) -> str:
        return (
            f"Ledger({self.atoms_sent} atoms sent, {self.values:,} values, "
            f"{self.bytes:,} bytes, {self.messages:,} messages)"
        )


Network = TypeVar("Network", bound="Topology")


class Accountant(Generic[Network]):
    """Enters what the nodes of a session say to each other, edge by edge, in its ledger.

    Simulated or real, every session tells it what its nodes propose, agree on and broadcast; the
    topology knows over which edges that goes. MPI and Ray route messages as they like: what is
    counted for them is the star of `LocalCluster`, so that figures can be compared.

    Parameters
    ----------
    network : Topology
    parties : sequence of str, optional
        The names of the nodes.
    target : int
        How many values of a target every node is told.

    Attributes
    ----------
    ledger : Ledger
    """

    def __init__(
        self,
        network: Network,
        parties: Sequence[str] | None = None,
        target: int = 0,
    ) -> None:
        self.nodes = network.nodes
        self.network = network
        self.ledger = Ledger(self.nodes, parties)
        network.prepare(self.ledger)
        network.tell_target(target, self.ledger)

    def start_afresh(self) -> None:
        """Begin with an empty ledger, at time 0: another one has what the network cost to build."""
        self.ledger = Ledger(self.nodes, self.ledger.parties)
        self.network.links.clock[:] = 0.0

    def agree(self, proposals: Proposals, count: int, round: int) -> Agreement:
        """What follows from all proposals: they are made known, and the best `count` win."""
        self.ledger.round = round
        return self.network.agree(proposals, count, self.ledger)

    def agree_on_one(self: Accountant[Star], each: OneEach, round: int) -> Agreement:
        """The same where the nodes of a star propose one atom each, in plain numbers."""
        self.ledger.round = round
        return self.network.agree_on_one(each, self.ledger)

    def cast(self, owners: Sequence[int], atoms: Sequence[Atom], sizes: Sequence[int]) -> None:
        """Enter atoms that their owners broadcast in so many bytes."""
        if self.nodes == 1 or not atoms:
            return
        values = []
        for owner, atom in zip(owners, atoms, strict=True):
            count = atom.count
            values.append(count)
            self.ledger.disclose(owner, atom.id, atom.name, count)
        self.network.broadcast(owners, values, sizes, self.ledger)

    def cast_one(self: Accountant[Star], owner: int, atom: Atom, size: int) -> None:
        """The same of a single atom over a star of several nodes."""
        count = atom.values.size + atom.extras.size
        self.ledger.disclose(owner, atom.id, atom.name, count)
        self.network.broadcast_one(owner, count, size, self.ledger)

    def disclose(self, owners: Sequence[int], atoms: Sequence[Atom]) -> None:
        """Enter that these atoms have left their owners."""
        if self.nodes > 1:
            for owner, atom in zip(owners, atoms, strict=True):
                self.ledger.disclose(owner, atom.id, atom.name, atom.count)

    def receive(
        self, owners: Sequence[int], messages: Sequence[bytes | memoryview], lengths: Sequence[int]
    ) -> list[Atom]:
        """The atoms of these lengths that their owners broadcast, entered in the ledger."""
        atoms = [wire.decode(m, length) for m, length in zip(messages, lengths, strict=True)]
        self.cast(owners, atoms, [len(message) for message in messages])
        return atoms

    def add_up(self, values: int) -> None:
        """Enter that the nodes add up so many predictions, which takes a round."""
        self.network.add_up(values, self.ledger)
        self.ledger.round += 1

    def add_corners(self, values: int, round: int) -> None:
        """Enter that the nodes add up vectors of so many values."""
        self.ledger.round = round
        self.network.add_up(values, self.ledger, "corner")

    def mix(
        self,
        said: Sequence[tuple[int, int, str, int, int, int]],
        answer: tuple[int, int],
        round: int,
    ) -> None:
        """Enter mixtures and atoms on their way to the coordinator, and what it answers.

        Parameters
        ----------
        said : sequence of tuples
            Of each its node, its id if it is an atom, its name, how many weights are mixed in it,
            its values and bytes.
        answer : pair of int
            So many values are for everybody, and so many more for each node.
        round : int
        """
        self.ledger.round = round
        amounts: dict[Kind, Counts] = {}
        for node, _, _, mixed, values, size in said:
            kind: Kind = "mixture" if mixed else "atom"
            sent = amounts.setdefault(kind, np.zeros((2, self.nodes), dtype=np.int64))
            sent[:, node] += values, size
        self.disclose_mixed(said)
        self.network.mix(amounts, answer, self.ledger)

    def disclose_mixed(self, said: Sequence[tuple[int, int, str, int, int, int]]) -> None:
        """Enter as disclosures what nodes have sent to the coordinator."""
        for node, atom, name, mixed, values, _ in said if self.nodes > 1 else ():
            if mixed:
                self.ledger.tell("mixture", node, name, values)
            else:
                self.ledger.disclose(node, atom, name, values)

    def combine(self, nodes: Sequence[int], question: tuple[int, int], answer: int) -> None:
        """Enter a question of the coordinator to some nodes, and the numbers that each answers.

        So many values of the question are for all of them, and so many for each.
        """
        asked = np.bincount(nodes, minlength=self.nodes)
        said = np.outer((answer, NUMBER * answer), asked)
        self.network.mix({"combination": said}, question, self.ledger, "combination", asked)

    def work(self, seconds: NDArray[np.float64]) -> None:
        """Let every node compute for so many simulated seconds."""
        self.ledger.reach(self.network.links.work(np.arange(self.nodes), seconds))
