"""From a topology to what every vertex knows of it."""

from __future__ import annotations

import numpy as np

from atomcast.network.faults import Faults
from atomcast.network.rooted import RootedTree
from atomcast.network.topology import Topology
from atomcast.simulation.vertex import Place, Root, Vertex


def rooted(network: Topology) -> RootedTree:
    """The network, if it has a root to write the log."""
    if not isinstance(network, RootedTree):
        raise ValueError(
            "faults need a network with a root, which keeps the log: topology='star' or 'tree' "
            "with broadcast='improved', or a graph with broadcast='spanning-tree'; "
            f"{type(network).__name__} has none"
        )
    return network


def make_vertices(tree: RootedTree) -> list[Vertex]:
    """A machine for every vertex; the root is the one that writes the log."""
    order = np.argsort(tree.depth, kind="stable")
    parent = tree.parent.tolist()
    total = len(parent)
    nodes = [1 << i if i < tree.nodes else 0 for i in range(total)]
    below: list[dict[int, int]] = [{} for _ in range(total)]
    height = [0] * total
    subtree = list(nodes)
    for v in reversed(order.tolist()):
        if parent[v] >= 0:
            below[parent[v]][v] = subtree[v]
            subtree[parent[v]] |= subtree[v]
            height[parent[v]] = max(height[parent[v]], height[v] + 1)
    neighbours = _neighbours(tree)
    vertices = []
    for v in range(total):
        others = tuple(u for u in neighbours[v] if u != parent[v])
        children = dict(sorted(below[v].items()))
        place = Place(v, parent[v], children, nodes[v], others, height[v])
        vertices.append(Root(place) if parent[v] < 0 else Vertex(place))
    return vertices


def _neighbours(tree: RootedTree) -> list[list[int]]:
    """The neighbours of each vertex, also over edges that the tree does not use."""
    links = tree.all_links
    neighbours: list[list[int]] = [[] for _ in range(len(tree.parent))]
    for source, target in zip(links.source.tolist(), links.target.tolist(), strict=True):
        neighbours[source].append(target)
    return neighbours


def check_root(faults: Faults, tree: RootedTree) -> None:
    """Raise ValueError where the vertex that writes the log is to die."""
    # Of a graph, the tree is not built yet, but node 0 will be its root.
    parent = getattr(tree, "parent", np.array([-1]))
    root = int(np.argmin(parent))
    if any(outage.node == root for outage in faults.outages):
        raise ValueError(
            f"faults.outages has node {root}, the root of this tree, which keeps the log: "
            "let another node die, or use topology='star', where a coordinator keeps it"
        )
