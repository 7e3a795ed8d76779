"""Aggregation on a rooted tree: section 4.1 of the paper, for trees and for improved stars.

On the way up every vertex forwards only the best of its own and its children's proposals, and the
sum of their partial sums; on the way down the root's verdict is passed on. Levels are vectorised:
a Python loop runs over the depth of the tree, never over messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast.messages.proposals import Agreement, Proposals, checked_best, leaders
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links
from atomcast.network.topology import Topology, announce, enter_target, spread_atoms
from atomcast.network.wave import Counts, Kind, Payload, numbers, proposal_parts

Floats = NDArray[np.float64]


@dataclass
class Offers:
    """Proposals on their way up: who holds them now, and what they say."""

    holder: Counts
    owner: Counts
    id: Counts
    score: Floats
    merit: Floats

    def rows(self, chosen: Counts | slice) -> Offers:
        """Some of the rows."""
        return Offers(
            self.holder[chosen],
            self.owner[chosen],
            self.id[chosen],
            self.score[chosen],
            self.merit[chosen],
        )

    def best(self, count: int) -> Offers:
        """The best rows of every holder, in order."""
        return self.rows(leaders(self.merit, self.id, self.holder, count))

    def joined(self, other: Offers) -> Offers:
        """The rows of both."""
        if not len(other.id):
            return self
        return Offers(
            *(
                np.concatenate((getattr(self, name), getattr(other, name)))
                for name in ("holder", "owner", "id", "score", "merit")
            )
        )


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
        self._order = np.argsort(self.depth, kind="stable")
        bounds = np.searchsorted(self.depth[self._order], np.arange(self.depth.max() + 2))
        self._levels = [np.sort(self._order[a:b]) for a, b in pairwise(bounds.tolist())]
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

    def prepare(self, ledger: Ledger) -> None:
        """Nothing to do: everybody knows its parent and its children."""
        announce(self.links, ledger, self.labels)

    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Proposals go up and are thinned out on the way, the agreement comes down."""
        checked_best(proposals.best)
        sums = None if proposals.partial is None else self._padded(proposals.partial, 0.0)
        best = self._padded(proposals.best, -np.inf)
        offers = self._gather(proposals, best, sums, count, ledger)
        agreement = Agreement(
            best=float(best[self._levels[0][0]]),
            owner=offers.owner,
            id=offers.id,
            score=offers.score,
            inner=None if sums is None else float(sums[self._levels[0][0]]),
        )
        parts = proposal_parts(np.array([len(agreement.id)]), sums is not None)
        for down in self._down:
            self.links.carry(down, parts, ledger)
        return agreement

    def broadcast(
        self, source: ArrayLike, values: ArrayLike, size: ArrayLike, ledger: Ledger
    ) -> None:
        """From each owner over every edge of the tree, away from the owner."""
        spread_atoms(self.links, source, values, size, ledger)

    def tell_target(self, values: int, ledger: Ledger) -> None:
        """From the root down, level by level."""
        enter_target(self.links, int(self._levels[0][0]), values, self._down, ledger)

    def add_up(self, values: int, ledger: Ledger, kind: Kind = "prediction") -> None:
        """Sums go up to the root, and the total comes down."""
        parts: dict[Kind, Payload] = {kind: numbers(values)}
        extra = self._extra if kind == "corner" else {}  # corners are in the place of proposals
        for up in reversed(self._up):
            self.links.carry(up, {**parts, **extra}, ledger)
        for down in self._down:
            self.links.carry(down, parts, ledger)

    def _gather(
        self,
        proposals: Proposals,
        best: Floats,
        sums: Floats | None,
        count: int,
        ledger: Ledger,
    ) -> Offers:
        """Let the best offers climb to the root; `best` and `sums` are added up on the way."""
        by_depth = np.argsort(self.depth[proposals.node], kind="stable")
        own = Offers(
            proposals.node, proposals.node, proposals.id, proposals.score, proposals.merit
        ).rows(by_depth)
        depth = self.depth[own.holder]
        bounds = np.searchsorted(depth, np.arange(len(self._levels) + 1))
        held = own.rows(slice(0, 0))
        for k in range(len(self._levels) - 1, -1, -1):
            mine = own.rows(slice(int(bounds[k]), int(bounds[k + 1])))
            held = held.joined(mine).best(count) if len(held.id) else mine
            if k == 0:
                break
            level = self._levels[k]
            offered = np.bincount(np.searchsorted(level, held.holder), minlength=len(level))
            self.links.carry(self._up[k - 1], proposal_parts(offered, sums is not None), ledger)
            above = self.parent[level]
            np.maximum.at(best, above, best[level])
            if sums is not None:
                np.add.at(sums, above, sums[level])
            held.holder = self.parent[held.holder]
        # What a single vertex proposes of its own is ordered already, by the same rule.
        return held

    def _padded(self, numbers: Floats, filler: float) -> Floats:
        """A number for each vertex, from a number for each node."""
        padded = np.full(len(self.parent), filler)
        padded[: self.nodes] = numbers
        return padded


def _depths(parent: Counts) -> Counts:
    """The number of edges from each vertex up to the root."""
    depth = (parent >= 0).astype(np.int64)
    above = parent
    while np.any(above >= 0):  # every vertex looks twice as far up each time
        depth = depth + np.where(above >= 0, depth[above], 0)
        above = np.where(above >= 0, above[above], -1)
    return depth
