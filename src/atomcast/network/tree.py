"""A rooted tree that is given from the start: everybody knows its parent and its children."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomcast._checks import check_count
from atomcast.network.flooding import Flooding
from atomcast.network.links import Links
from atomcast.network.rooted import RootedTree
from atomcast.network.wave import Counts


@dataclass(frozen=True)
class Tree:
    """A description of a tree, filled level by level: node 0 is the root.

    Parameters
    ----------
    arity : int, default=2
        How many children a node has.
    """

    arity: int = 2

    def __post_init__(self) -> None:
        check_count("arity", self.arity, "how many children a node of the tree has")

    def parents(self, nodes: int) -> Counts:
        """The parent of each node, -1 for the root; shape (nodes,)."""
        parent = (np.arange(nodes) - 1) // self.arity
        parent[0] = -1
        return parent

    def links(self, nodes: int, latency: float, bandwidth: float) -> Links:
        """The edges of the tree."""
        child = np.arange(1, nodes)
        edges = np.stack((child, self.parents(nodes)[1:]), axis=1)
        return Links(nodes, edges, latency, bandwidth)

    def improved(self, nodes: int, latency: float, bandwidth: float) -> RootedTree:
        """The tree with proposals that are thinned out on their way to the root."""
        return RootedTree(nodes, self.parents(nodes), self.links(nodes, latency, bandwidth))

    def plain(self, nodes: int, latency: float, bandwidth: float) -> Flooding:
        """The tree with proposals that are broadcast to everybody."""
        # Nothing comes twice on a tree, so that records need not say where they come from.
        return Flooding(nodes, self.links(nodes, latency, bandwidth), signed=False)
