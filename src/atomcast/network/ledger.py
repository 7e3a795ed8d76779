"""The ledger: every value and byte that crossed an edge, and every atom that left its node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from atomcast.network.wave import KINDS, Count, Counts, Kind, Part, Wave

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["COORDINATOR", "KINDS", "Count", "Counts", "Disclosure", "Kind", "Ledger", "Wave"]

#: The name of the node that a star's coordinator has in the ledger.
COORDINATOR = -1


@dataclass(frozen=True)
class Disclosure:
    """One atom that left its node: who sent it, when, and how much of it there was."""

    round: int
    node: int
    atom: int
    name: str
    values: int


class Traffic(Protocol):
    """Waves that follow each other at once, whose totals are known before they are worked out."""

    values: int
    bytes: int
    messages: int

    def waves(self) -> Iterable[tuple[tuple[Counts, Counts], Counts, Mapping[Kind, Part]]]:
        """The ends of all links, the links used and what they carry, of each wave in turn."""
        ...


@dataclass
class Duration:
    """How long a round took: hops that had to follow each other, and simulated seconds."""

    hops: int = 0
    seconds: float = 0.0


class Ledger:
    """An account of all communication, kept message by message; lost ones were sent, too.

    Parameters
    ----------
    nodes : int
        How many nodes there are.

    Attributes
    ----------
    disclosures : list of Disclosure
        Every atom that left its node, in order.
    edges : array of shape (M, 2) or None
        The edges of the network, where it has told them; -1 is the coordinator of a star.
    labels : sequence or None
        What the user calls the nodes, where it is not 0, 1, 2, ...
    """

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.round = 0
        self.disclosures: list[Disclosure] = []
        self.edges: Counts | None = None
        self.labels: list[Any] | None = None
        self._values = self._bytes = self._messages = 0
        self._filed: list[Wave] = []
        self._unfiled: list[tuple[int, Traffic]] = []
        self._kinds = dict.fromkeys(KINDS, Count())
        self._durations: list[Duration] = []
        self._seconds = 0.0

    # -- totals -----------------------------------------------------------------------------

    @property
    def total(self) -> Count:
        """All traffic."""
        return Count(self._values, self._bytes, self._messages)

    @property
    def values(self) -> int:
        """Real values sent, summed over every edge crossed (the paper's measure)."""
        return self._values

    @property
    def bytes(self) -> int:
        """Bytes sent, summed over every edge crossed."""
        return self._bytes

    @property
    def messages(self) -> int:
        """Messages sent, each hop counting as one."""
        return self._messages

    @property
    def atoms_sent(self) -> int:
        """How many times an atom was broadcast by its owner."""
        return len(self.disclosures)

    @property
    def hops(self) -> int:
        """Hops that had to follow each other, of all rounds together."""
        return sum(self.hops_by_round())

    @property
    def seconds(self) -> float:
        """Simulated time: 0.0 unless latencies, bandwidths or computing times are given."""
        return self._seconds

    # -- breakdowns -------------------------------------------------------------------------

    def by_kind(self, round: int | None = None) -> dict[Kind, Count]:
        """The traffic of each kind; a message of several kinds counts once, under its first."""
        if round is None:
            self._file_all()
            return dict(self._kinds)
        totals: dict[Kind, Count] = dict.fromkeys(KINDS, Count())
        for wave in self._chosen(round):
            for kind in wave.parts:
                totals[kind] += wave.count(kind)
        return totals

    def by_round(self) -> list[Count]:
        """The traffic of each round; what was said before the first round counts to round 0."""
        waves = self._file_all()
        totals = [Count()] * (1 + max((wave.round for wave in waves), default=-1))
        for wave in waves:
            for kind in wave.parts:
                totals[wave.round] += wave.count(kind)
        return totals

    def hops_by_round(self) -> list[int]:
        """The hops of each round that had to follow each other."""
        self._file_all()
        return [duration.hops for duration in self._durations]

    def seconds_by_round(self) -> list[float]:
        """The simulated time that each round took."""
        self._file_all()
        return [duration.seconds for duration in self._durations]

    def by_node(self, kind: Kind | None = None, round: int | None = None) -> dict[int, Count]:
        """What each node sent, forwarding included; -1 is the coordinator of a star."""
        sums = self._by_ends(kind, round, lambda wave: (wave.source, wave.source))
        return {source: count for (source, _), count in sums.items()}

    def by_edge(
        self, kind: Kind | None = None, round: int | None = None
    ) -> dict[tuple[int, int], Count]:
        """The traffic of each edge, both directions together; -1 is the coordinator."""
        return self._by_ends(
            kind,
            round,
            lambda wave: (
                np.minimum(wave.source, wave.target),
                np.maximum(wave.source, wave.target),
            ),
        )

    def by_link(
        self, kind: Kind | None = None, round: int | None = None
    ) -> dict[tuple[int, int], Count]:
        """The traffic of each edge in each direction, as (source, target)."""
        return self._by_ends(kind, round, lambda wave: (wave.source, wave.target))

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each round, direction of an edge and kind that had traffic."""
        from atomcast.data.table_files import load_pandas

        pandas = load_pandas("ledger.to_pandas")
        keys, amounts = ["round", "source", "target", "kind"], ["values", "bytes", "messages"]
        tables = [
            pandas.DataFrame(
                {
                    "round": wave.round,
                    "source": wave.source,
                    "target": wave.target,
                    "kind": kind,
                    "values": np.broadcast_to(part.values, len(wave.links)).astype(np.int64),
                    "bytes": np.broadcast_to(part.bytes, len(wave.links)).astype(np.int64),
                    "messages": int(kind == wave.main),
                }
            )
            for wave in self._file_all()
            for kind, part in wave.parts.items()
        ]
        if not tables:
            return pandas.DataFrame(columns=keys + amounts)
        return pandas.concat(tables).groupby(keys, as_index=False)[amounts].sum()

    def plot_network(self, weight: str = "values", ax: Axes | None = None) -> Axes:
        """Draw the network with the traffic on its edges; returns the matplotlib axes.

        Parameters
        ----------
        weight : {"values", "bytes", "messages"}
            What the width and colour of an edge show.
        ax : matplotlib axes, optional
        """
        from atomcast.report.network_plot import plot_network

        return plot_network(self, weight=weight, ax=ax)

    def _chosen(self, round: int | None) -> Iterable[Wave]:
        return (wave for wave in self._file_all() if round is None or wave.round == round)

    def _by_ends(
        self, kind: Kind | None, round: int | None, ends_of: Any
    ) -> dict[tuple[int, int], Count]:
        """Sum messages by two numbers that `ends_of` gives for each message of a wave."""
        width = self.nodes + 1  # numbers run from -1, the coordinator
        sums: dict[int, Counts] = {}
        keys, amounts = [], []
        for wave in self._chosen(round):
            parts = [p for k, p in wave.parts.items() if kind in (None, k)]
            if not parts:
                continue
            low, high = ends_of(wave)
            keys.append((low.astype(np.int64) + 1) * width + high + 1)
            amount = np.zeros((3, len(low)), dtype=np.int64)
            for part in parts:
                amount[0] += part.values
                amount[1] += part.bytes
            amount[2] = kind in (None, wave.main)
            amounts.append(amount)
            if sum(len(key) for key in keys) > 1_000_000:  # bounds the memory of long runs
                _add_up(sums, keys, amounts)
                keys, amounts = [], []
        _add_up(sums, keys, amounts)
        return {
            (key // width - 1, key % width - 1): Count(*sums[key].tolist()) for key in sorted(sums)
        }

    # -- writing ----------------------------------------------------------------------------

    def record(
        self, kind: Kind, source: Counts, target: Counts, values: Counts, bytes: Counts
    ) -> None:
        """Enter messages of one kind that were delivered at the same time."""
        self.deliver((source, target), np.arange(len(source)), {kind: Part(values, bytes)})

    def deliver(
        self,
        ends: tuple[Counts, Counts],
        links: Counts,
        parts: Mapping[Kind, Part],
        now: float = 0.0,
    ) -> None:
        """Enter a wave of messages that were delivered; called by the network for every hop.

        Parameters
        ----------
        ends : pair of arrays of shape (L,)
            Source and target of every link; kept, not copied.
        links : array of shape (m,)
            The links that carried a message; kept, not copied.
        parts : mapping from kind to Part
            What they carried; the first kind is the one that the messages count under.
        now : float
            The simulated time at which the last of them arrived.
        """
        if not len(links):
            return
        self._file_all()
        count = self._file(Wave(self.round, ends, links, parts), now)
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

    def disclose(self, node: int, atom: int, name: str, values: int) -> None:
        """Enter an atom that left its node."""
        self.disclosures.append(Disclosure(self.round, node, atom, name, values))

    def __getstate__(self) -> dict[str, Any]:
        self._file_all()
        return self.__dict__

    def __repr__(self) -> str:
        return (
            f"Ledger({self.atoms_sent} atoms sent, {self.values:,} values, "
            f"{self.bytes:,} bytes, {self.messages:,} messages)"
        )


def _add_up(sums: dict[int, Counts], keys: list[Counts], amounts: list[Counts]) -> None:
    """Add the amounts of each key to its sum."""
    if not keys:
        return
    unique, which = np.unique(np.concatenate(keys), return_inverse=True)
    amount = np.concatenate(amounts, axis=1)
    # Sums of float64 are exact up to 2^53.
    totals = [np.bincount(which, column, len(unique)).astype(np.int64) for column in amount]
    for key, total in zip(unique.tolist(), np.stack(totals, axis=1), strict=True):
        sums[key] = sums[key] + total if key in sums else total
