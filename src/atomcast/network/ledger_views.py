"""What a ledger tells of its parts: breakdowns by kind, round, node, edge and direction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from atomcast.data.party_names import COORDINATOR_NAME
from atomcast.network import breakdown
from atomcast.network.disclosure import BEFORE, COORDINATOR
from atomcast.network.wave import KINDS, Count, Kind, Wave

if TYPE_CHECKING:
    import pandas

    from atomcast.network.wave import Carried, Traffic

#: The waves of so much traffic are at hand while somebody looks at all of it.
ALIKE = 1000
#: A node by its number, or by its name where nodes have names.
Party = int | str


class Views(ABC):
    """The reading half of a `Ledger`."""

    nodes: int
    parties: tuple[str, ...] | None
    _kinds: dict[Kind, Count]
    _hops: array[int]
    _spent: array[float]

    @abstractmethod
    def entries(self) -> Iterable[tuple[int, Traffic]]:
        """What was sent, and in which round, in order."""

    @abstractmethod
    def _count(self) -> None:
        """Know the kinds and hops of all that was entered."""

    def by_kind(self, round: int | None = None) -> dict[Kind, Count]:
        """The traffic of each kind; a message of several kinds counts once, under its first."""
        if round is None:
            self._count()
            return dict(self._kinds)
        totals: dict[Kind, Count] = dict.fromkeys(KINDS, Count())
        for wave in self.waves(round):
            for kind in wave.parts:
                totals[kind] += wave.count(kind)
        return totals

    def by_round(self) -> list[Count]:
        """The traffic of each round, counted through where a fit has several phases.

        What it took to build a tree counts to round 0, the target to none.
        """
        sent = [(round, traffic) for round, traffic in self.entries() if round != BEFORE]
        totals = [Count()] * (1 + max((round for round, _ in sent), default=-1))
        for round, traffic in sent:
            totals[round] += Count(traffic.values, traffic.bytes, traffic.messages)
        return totals

    @property
    def hops(self) -> int:
        """Hops that had to follow each other, of all rounds together."""
        return sum(self.hops_by_round())

    def hops_by_round(self) -> list[int]:
        """The hops of each round that had to follow each other."""
        self._count()
        return self._hops.tolist()

    def seconds_by_round(self) -> list[float]:
        """The simulated time that each round took."""
        self._count()
        return self._spent.tolist()

    def by_node(self, kind: Kind | None = None, round: int | None = None) -> dict[Party, Count]:
        """What each node sent, forwarding included; -1 is the coordinator of a star."""
        sums = breakdown.sums(self.waves(round), self.nodes, breakdown.senders, kind)
        return {self.party(source): count for (source, _), count in sums.items()}

    def by_edge(
        self, kind: Kind | None = None, round: int | None = None
    ) -> dict[tuple[Party, Party], Count]:
        """The traffic of each edge, both directions together; -1 is the coordinator."""
        return self._named(breakdown.sums(self.waves(round), self.nodes, breakdown.edges, kind))

    def by_link(
        self, kind: Kind | None = None, round: int | None = None
    ) -> dict[tuple[Party, Party], Count]:
        """The traffic of each edge in each direction, as (source, target)."""
        return self._named(breakdown.sums(self.waves(round), self.nodes, breakdown.links, kind))

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each round, direction of an edge and kind that had traffic."""
        table = breakdown.table(self.waves())
        for end in ("source", "target"):
            table[end] = table[end].map(self.party)
        return table

    def party(self, node: int) -> Party:
        """The name of a node, or its number where nodes have no names."""
        if self.parties is None:
            return node
        return COORDINATOR_NAME if node == COORDINATOR else self.parties[node]

    def waves(self, round: int | None = None) -> Iterable[Wave]:
        """All messages, or those of one round (-1: before the first), wave by wave."""
        worked_out = once_each()
        for number, traffic in self.entries():
            if round is None or number == round:
                yield from (Wave(number, *carried) for carried in worked_out(traffic))

    def _named(self, sums: dict[tuple[int, int], Count]) -> dict[tuple[Party, Party], Count]:
        return {(self.party(low), self.party(high)): count for (low, high), count in sums.items()}


def once_each() -> Callable[[Traffic], list[Carried]]:
    """The waves of traffic, worked out once where rounds are alike, for as long as it is needed."""
    cached = lru_cache(maxsize=ALIKE)  # which knows traffic by its identity
    return cached(lambda traffic: list(traffic.waves()))  # type: ignore[return-value]
