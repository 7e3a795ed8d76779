"""From what users say of a network to the network: names, trees, graphs, files."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np

from atomcast._checks import check_choice
from atomcast.network.complete import Complete
from atomcast.network.flooding import Flooding
from atomcast.network.graphs import graph_links, read_graph
from atomcast.network.spanning_tree import SpanningTree
from atomcast.network.star import PlainStar, Star, lone_star
from atomcast.network.topology import Topology
from atomcast.network.tree import Tree

NAMES = ("star", "tree", "complete")

#: What `broadcast` may be for each kind of network; the first one is the default.
BROADCASTS = {
    "star": ("improved", "plain"),
    "tree": ("improved", "plain"),
    "complete": ("direct",),
    "graph": ("spanning-tree", "flooding"),
}


def kind_of(topology: Any) -> str:
    """Which kind of network this describes: "star", "tree", "complete", "graph" or "own"."""
    if isinstance(topology, Tree):
        return "tree"
    if isinstance(topology, str) and topology in NAMES:
        return topology
    if is_graph(topology):
        return "graph"
    if isinstance(topology, str | os.PathLike) and os.path.isfile(topology):
        return "graph"
    if isinstance(topology, Topology) or callable(topology):
        return "own"
    raise ValueError(
        "topology must be one of 'star', 'tree', 'complete', or Tree(arity=...), an "
        "atomcast.network.topology.Topology or a function that makes one for a number of nodes, a "
        f"networkx graph, or the path of an existing file with a graph, got {topology!r}"
    )


def is_graph(topology: Any) -> bool:
    """Whether this is a networkx graph; networkx is not imported to find out."""
    return all(hasattr(topology, name) for name in ("is_directed", "number_of_nodes", "edges"))


def check_broadcast(topology: Any, broadcast: str | None) -> str:
    """How the network passes things on: what was asked for, or the default of its kind."""
    kind = kind_of(topology)
    if kind == "own":
        if broadcast is None:
            return "own"
        raise ValueError(
            f"a topology of your own says how it broadcasts: leave broadcast out, got {broadcast!r}"
        )
    choices = BROADCASTS[kind]
    if broadcast is None:
        return choices[0]
    what = "of a graph" if kind == "graph" else f"of a {kind} network"
    return check_choice(f"broadcast {what}", broadcast, choices)


def size_of(topology: Any) -> int:
    """How many nodes a network has, where its description says so, and else 1."""
    if isinstance(topology, Topology):
        return topology.nodes
    if kind_of(topology) != "graph":
        return 1
    graph = topology if is_graph(topology) else read_graph(topology)
    return int(graph.number_of_nodes())


def make_topology(
    topology: Any, nodes: int, broadcast: str | None, latency: float, bandwidth: float
) -> Topology:
    """Make the network of N nodes that these parameters of `LocalCluster` describe."""
    kind, broadcast = kind_of(topology), check_broadcast(topology, broadcast)
    if kind == "own":
        return own_topology(topology, nodes, latency, bandwidth)
    if kind == "star" and nodes == 1 and broadcast == "improved":
        return lone_star()
    if kind == "star":
        star = Star if broadcast == "improved" else PlainStar
        return star(nodes, latency, bandwidth)
    if kind == "tree":
        tree = topology if isinstance(topology, Tree) else Tree()
        make = tree.improved if broadcast == "improved" else tree.plain
        return make(nodes, latency, bandwidth)
    if kind == "complete":
        return Complete(nodes, latency, bandwidth)
    graph = topology if is_graph(topology) else read_graph(topology)
    links, labels = graph_links(graph, nodes, latency, bandwidth)
    if broadcast == "flooding":
        return Flooding(nodes, links, labels=labels)
    return SpanningTree(nodes, links, labels)


def own_topology(topology: Any, nodes: int, latency: float, bandwidth: float) -> Topology:
    """A user's network for one run: a copy of an object, or what a function makes of `nodes`."""
    if latency or bandwidth < np.inf:
        raise ValueError(
            "a topology of your own says how fast its links are: leave latency and bandwidth out, "
            f"got latency={latency!r}, bandwidth={bandwidth!r}"
        )
    own = copy.deepcopy(topology) if isinstance(topology, Topology) else topology(nodes)
    if not isinstance(own, Topology):
        raise ValueError(
            f"topology={topology!r} makes {own!r} of {nodes} nodes, which is no "
            "atomcast.network.topology.Topology"
        )
    if own.nodes != nodes:
        raise ValueError(
            f"topology={topology!r} has {own.nodes} nodes, but the cluster has {nodes}: leave "
            "nodes out, or give the same number"
        )
    return own
