"""A star: N nodes around a coordinator, which ranks the proposals for everybody.

The improved protocol of section 4.1 is aggregation on a tree with the coordinator as its root:
proposals go to the coordinator only, which sends the outcome back. In a round of the classic step,
N nodes send a score, an index and a partial sum up (3N values), the coordinator sends the winner's
score, index and the sum down (3N), and the atom goes up one edge and down N - 1. The plain
protocol lets the coordinator pass every proposal on to everybody: 3N^2 values instead of 6N.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from atomcast.network.flooding import Flooding
from atomcast.network.ledger import COORDINATOR, Ledger
from atomcast.network.links import Links
from atomcast.network.rooted import RootedTree
from atomcast.network.wave import Part


def star_links(nodes: int, latency: float = 0.0, bandwidth: float = np.inf) -> Links:
    """The edges of a star; vertex N is the coordinator, and a single node needs none."""
    if nodes == 1:
        return Links(1, np.zeros((0, 2)))
    spokes = np.stack((np.arange(nodes), np.full(nodes, nodes)), axis=1)
    names = np.append(np.arange(nodes), COORDINATOR)
    return Links(nodes + 1, spokes, latency, bandwidth, names)


class Star(RootedTree):
    """N nodes, each connected to a coordinator; a single node is alone and sends nothing."""

    def __init__(self, nodes: int, latency: float = 0.0, bandwidth: float = np.inf) -> None:
        parent = np.append(np.full(nodes, nodes), -1) if nodes > 1 else np.array([-1])
        super().__init__(nodes, parent, star_links(nodes, latency, bandwidth))

    def broadcast(
        self, source: ArrayLike, values: ArrayLike, size: ArrayLike, ledger: Ledger
    ) -> None:
        """From the owners to the coordinator, and from there to all who do not have an atom yet.

        That is what flooding comes to on a star, in two waves instead of a search for them.
        """
        if self.nodes == 1:
            return
        own = np.zeros((2, self.nodes), dtype=np.int64)
        for row, amounts in zip(own, (values, size), strict=True):
            np.add.at(row, np.atleast_1d(source), amounts)
        missing = own.sum(axis=1, keepdims=True) - own
        for carried, links in ((own, self._up[0]), (missing, self._down[0])):
            used = np.flatnonzero(carried[1])
            self.links.carry(links[used], {"atom": Part(*carried[:, used])}, ledger)


class PlainStar(Flooding):
    """The same star, where every proposal is broadcast to everybody by way of the coordinator."""

    def __init__(self, nodes: int, latency: float = 0.0, bandwidth: float = np.inf) -> None:
        # Nothing comes twice on a star, so that records need not say where they come from.
        super().__init__(nodes, star_links(nodes, latency, bandwidth), signed=False)
