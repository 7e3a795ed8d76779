"""A spanning tree that the nodes build themselves, by breadth-first search from node 0.

Node 0 says "join" to its neighbours. A node that is asked for the first time takes the asker as
its parent (of several that ask in the same wave: the one with the smallest number), and in the
next wave answers "child" to its parent and says "join" to its other neighbours. A node knows its
children once it has heard from all its neighbours: every link carries exactly one message, so
that the tree costs 2M messages of one number each, once.
"""

from __future__ import annotations

import numpy as np

from atomcast.messages.proposals import rank_in_group
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links
from atomcast.network.rooted import RootedTree
from atomcast.network.wave import Counts, numbers


def build_spanning_tree(links: Links, ledger: Ledger, root: int = 0) -> Counts:
    """Let the vertices find a spanning tree; returns the parent of each, -1 for the root."""
    parent = np.full(links.vertices, -1, dtype=np.int64)
    joined = np.zeros(links.vertices, dtype=bool)
    joined[root] = True
    front = np.array([root])
    while len(front):
        into, _ = links.into(front)
        used = links.reverse[into]
        links.carry(used, {"control": numbers(1)}, ledger)
        # A message to the sender's own parent says "child", every other one "join".
        asked = np.sort(used[links.target[used] != parent[links.source[used]]])
        asked = asked[~joined[links.target[asked]]]
        first = asked[rank_in_group(links.target[asked]) == 0]
        front = links.target[first]
        parent[front] = links.source[first]
        joined[front] = True
    return parent


class SpanningTree(RootedTree):
    """A connected graph whose nodes agree on a spanning tree first, and then use its edges only."""

    def __init__(self, nodes: int, links: Links, labels: list[object] | None = None) -> None:
        self.nodes = nodes
        self.labels = labels
        self.graph = links

    @property
    def all_links(self) -> Links:
        """The edges of the graph."""
        return self.graph

    def prepare(self, ledger: Ledger) -> None:
        """Build the tree, which costs a message in each direction of every edge."""
        parent = build_spanning_tree(self.graph, ledger)
        child = np.flatnonzero(parent >= 0)
        links = self.graph.part(self.graph.between(child, parent[child]))
        super().__init__(self.nodes, parent, links, self.labels)
        ledger.edges, ledger.labels = self.graph.edges, self.labels
