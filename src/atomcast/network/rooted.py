"""Aggregation on a rooted tree: section 4.1 of the paper, for trees and for improved stars.

On the way up every vertex forwards only the best of its own and its children's proposals, and the
sum of their partial sums; on the way down the root's verdict is passed on. The best of the best are
the best of all, so that what is worked out on the way is how many a message holds. Levels are
vectorised: a Python loop runs over the depth of the tree, never over messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from atomcast.messages.proposals import Agreement, Proposals, agree
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links, OneWave
from atomcast.network.topology import Topology
from atomcast.network.wave import Counts, Kind, Payload, numbers, proposal_parts


class Parcels(NamedTuple):
    """Atoms on their way: the owner of each, its real numbers, and its bytes."""

    owners: Sequence[int]
    values: Sequence[int]
    bytes: Sequence[int]


class RootedTree(Topology):
    """Nodes on a rooted tree; vertices beyond the nodes, such as a coordinator, hold no atoms.

    Parameters
    ----------
    nodes : int
        Vertices 0 to nodes - 1 hold atoms.
    parent : array of shape (V,)
        The parent of each vertex; -1 for the root.
    links : Links
        The edges of the tree, and no others.
    labels : list, optional
        What the user calls the nodes.
    """

    def __init__(
        self, nodes: int, parent: Counts, links: Links, labels: list[object] | None = None
    ) -> None:
        self.nodes = nodes
        self.links = links
        self.labels = labels
        self.parent = parent
        self.depth = _depths(parent)
        order = np.argsort(self.depth, kind="stable")
        below = np.searchsorted(self.depth[order], np.arange(1, self.depth.max() + 1))
        self._levels = np.split(order, below)
        child = np.flatnonzero(parent >= 0)
        to_parent = np.full(len(parent), -1)
        to_parent[child] = links.between(child, parent[child])
        self._up = [to_parent[level] for level in self._levels[1:]]
        self._down = [links.reverse[up] for up in self._up]

    #: What goes with the proposals of every node beside their numbers.
    _extra: Mapping[Kind, Payload] = MappingProxyType({})

    @property
    def all_links(self) -> Links:
        """The edges of the network, also those that the tree does not use."""
        return self.links

    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Proposals go up and are thinned out on the way, the agreement comes down."""
        agreement, partial = agree(proposals, count), proposals.partial is not None

        def waves() -> Iterator[OneWave]:
            yield from self._gather(proposals, count)
            parts = proposal_parts(np.array([agreement.told]), partial)
            yield from ((down, parts) for down in self._down)

        # Rounds are mostly alike: whose the proposals are says all that counts.
        key = (proposals.node.tobytes(), count, agreement.told, partial)
        self.links.carry_all(None if proposals.signals else key, waves, ledger)
        return agreement

    def _gather(self, proposals: Proposals, count: int) -> Iterator[OneWave]:
        """Proposals on their way to the root.

        A vertex passes on `count` of them at most; where signals choose, one for each of them.
        """
        partial = proposals.partial is not None
        signals = proposals.signals
        held = np.zeros((len(self.parent), signals or 1), dtype=np.int64)
        np.add.at(held, (proposals.node, proposals.id % (signals or 1)), 1)
        for level, up in zip(reversed(self._levels[1:]), reversed(self._up), strict=True):
            offered = np.minimum(held[level], 1 if signals else count)
            said = proposal_parts(offered.sum(axis=1), partial)
            yield up, {**said, **self._extra}
            np.add.at(held, self.parent[level], offered)

    # -- a root that looks at candidates before it passes on some of them -------------------

    def look(self, proposals: Proposals, count: int, candidates: Parcels, ledger: Ledger) -> None:
        """Proposals go up, the best merit comes down to all, and candidates go up as asked.

        They are those not seen before, and nobody is asked for those of others.
        """
        self.links.carry_all(None, lambda: self._gather(proposals, count), ledger)
        held = self._below(candidates)
        for level, down in zip(self._levels[1:], self._down, strict=True):
            question: dict[Kind, Payload] = {"proposal": numbers(1)}
            if held[0].any():
                question["index"] = numbers(held[0, level])
            self.links.carry(down, question, ledger)
        for level, up in zip(reversed(self._levels[1:]), reversed(self._up), strict=True):
            used = held[0, level] > 0
            shown: dict[Kind, Payload] = {"candidate": Payload(*held[1:, level[used]])}
            self.links.carry(up[used], shown, ledger)

    def pass_on(self, winners: Parcels, ledger: Ledger) -> None:
        """Candidates that have won go down, with score and index, to all who lack them."""
        held = self._below(winners)
        missing = held[:, [self.root]] - held
        for level, down in zip(self._levels[1:], self._down, strict=True):
            parts: dict[Kind, Payload] = {"atom": Payload(*missing[1:, level])}
            parts |= proposal_parts(np.array([len(winners.owners)]), False)
            self.links.carry(down, parts, ledger)

    def _below(self, parcels: Parcels) -> Counts:
        """How many parcels, values and bytes come from each vertex or from below it, (3, V)."""
        held = np.zeros((3, len(self.parent)), dtype=np.int64)
        ones = [1] * len(parcels.owners)
        for row, amounts in zip(held, (ones, parcels.values, parcels.bytes), strict=True):
            np.add.at(row, np.array(parcels.owners, dtype=np.int64), amounts)
            for level in reversed(self._levels[1:]):
                np.add.at(row, self.parent[level], row[level])
        return held

    @property
    def root(self) -> int:
        """The vertex without a parent."""
        return int(self._levels[0][0])

    def from_root(self) -> list[Counts]:
        """Level by level."""
        return self._down

    def add_up(self, values: int, ledger: Ledger, kind: Kind = "prediction") -> None:
        """Sums go up to the root, and the total comes down."""
        parts: dict[Kind, Payload] = {kind: numbers(values)}
        extra = self._extra if kind == "corner" else {}  # corners are in the place of proposals

        def waves() -> Iterator[OneWave]:
            yield from ((up, {**parts, **extra}) for up in reversed(self._up))
            yield from ((down, parts) for down in self._down)

        self.links.carry_all((kind, values), waves, ledger)

    def mix(
        self,
        amounts: Mapping[Kind, Counts],
        answer: tuple[int, int],
        ledger: Ledger,
        kind: Kind = "image",
        hearers: Counts | None = None,
    ) -> None:
        """What nodes send is passed on up to the root, and its answer comes down."""
        held = np.zeros((2 * len(amounts) + 1, len(self.parent)), dtype=np.int64)
        hearers = np.ones(self.nodes, dtype=np.int64) if hearers is None else hearers
        held[:, : self.nodes] = np.vstack([*amounts.values(), hearers])
        for level, up in zip(reversed(self._levels[1:]), reversed(self._up), strict=True):
            for k, sent in enumerate(amounts):
                values, size = held[2 * k : 2 * k + 2, level]
                said = size > 0
                self.links.carry(up[said], {sent: Payload(values[said], size[said])}, ledger)
            for row in held:
                np.add.at(row, self.parent[level], row[level])
        for level, down in zip(self._levels[1:], self._down, strict=True):
            below = held[-1, level]
            told = numbers(answer[0] + answer[1] * below[below > 0])
            self.links.carry(down[below > 0], {kind: told}, ledger)


def _depths(parent: Counts) -> Counts:
    """The number of edges from each vertex up to the root."""
    depth = (parent >= 0).astype(np.int64)
    above = parent
    while np.any(above >= 0):  # every vertex looks twice as far up each time
        depth = depth + np.where(above >= 0, depth[above], 0)
        above = np.where(above >= 0, above[above], -1)
    return depth
