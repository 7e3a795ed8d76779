"""The ledger: every value and byte that crossed an edge, and all that left a node to be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from atomcast.network.disclosure import BEFORE, COORDINATOR, Disclosed, Disclosure
from atomcast.network.picture import plot_network
from atomcast.network.views import Views
from atomcast.network.wave import KINDS, Count, Counts, Kind, Payload, Wave

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COORDINATOR", "KINDS", "Count", "Counts", "Disclosure", "Kind", "Ledger", "Wave"]


class Traffic(Protocol):
    """Waves that follow each other at once, whose totals are known before they are worked out."""

    values: int
    bytes: int
    messages: int

    def waves(self) -> Iterable[tuple[tuple[Counts, Counts], Counts, Mapping[Kind, Payload]]]:
        """The ends of all links, the links used and what they carry, of each wave in turn."""
        ...


@dataclass
class Duration:
    """How long a round took: hops that had to follow each other, and simulated seconds."""

    hops: int = 0
    seconds: float = 0.0


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
        What else was told to all: the target, and predictions for held-out rows.
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
        self._before = Count()
        self._values = self._bytes = self._messages = 0
        self._filed: list[Wave] = []
        self._unfiled: list[tuple[int, Traffic]] = []
        self._kinds = dict.fromkeys(KINDS, Count())
        self._durations: list[Duration] = []
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
        self._file_all()
        count = self._file(Wave(self.round, ends, links, parts), now)
        if self.round == BEFORE:
            self._before += count
            return
        self._values += count.values
        self._bytes += count.bytes
        self._messages += count.messages

    def enter(self, traffic: Traffic) -> None:
        """Enter traffic of this round by its totals; its waves are filed when somebody asks.

        Working them out takes longer than a round of MPI does.
        """
        self._values += traffic.values
        self._bytes += traffic.bytes
        self._messages += traffic.messages
        self._unfiled.append((self.round, traffic))

    def _file_all(self) -> list[Wave]:
        """All waves in order, once those of all traffic have been worked out."""
        if self._unfiled:
            for round, traffic in self._unfiled:
                for wave in traffic.waves():
                    self._file(Wave(round, *wave), 0.0)
            self._unfiled = []
        return self._filed

    def _file(self, wave: Wave, now: float) -> Count:
        """Keep a wave under its kinds and its round, and say what there was of it in all."""
        self._filed.append(wave)
        total = Count()
        for kind in wave.parts:
            count = wave.count(kind)
            self._kinds[kind] += count
            total += count
        if wave.round != BEFORE:
            self._pass(wave.round, now)
            self._durations[wave.round].hops += 1
        return total

    def reach(self, now: float) -> None:
        """Enter that simulated time has come to `now` in this round."""
        self._file_all()
        self._pass(self.round, now)

    def _pass(self, round: int, now: float) -> None:
        while len(self._durations) <= round:
            self._durations.append(Duration())
        self._durations[round].seconds += max(now - self._seconds, 0.0)
        self._seconds = max(now, self._seconds)

    def begin(self, phase: str, round: int) -> None:
        """Enter that a new phase of a fit begins in this round, and what it is called."""
        self._phase, self._first_round = phase, round

    def disclose(self, node: int, atom: int, name: str, values: int) -> None:
        """Enter an atom that left its node; this is done in every round, so it is cheap."""
        round = self.round - self._first_round
        self._unwritten.append((round, node, atom, name, values, self._phase))

    def tell(self, kind: Disclosed, node: int, name: str, values: int) -> None:
        """Enter that a node told all others something that is no atom."""
        round = BEFORE if self.round == BEFORE else self.round - self._first_round
        party = self._party_name(node)
        self.told.append(Disclosure(round, node, -1, name, values, self._phase, party, kind))

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
        self._file_all()
        return self.__dict__

    def __repr__(self) -> str:
        return (
            f"Ledger({self.atoms_sent} atoms sent, {self.values:,} values, "
            f"{self.bytes:,} bytes, {self.messages:,} messages)"
        )
