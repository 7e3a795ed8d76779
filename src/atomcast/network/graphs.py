"""Graphs that users give: a networkx graph, or a file with an edge list or GraphML."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from atomcast.network.links import Links

#: How file names of GraphML end; every other file is an edge list.
GRAPHML = (".graphml", ".graphml.gz", ".xml")


def read_graph(path: str | os.PathLike[str]) -> Any:
    """Read a networkx graph from a file: GraphML, or an edge list "0 1" or "0 1 {...}" a line.

    An edge list may give attributes of an edge, such as {'latency': 0.01}.
    """
    import networkx

    name = os.fspath(path)
    if not os.path.isfile(name):
        raise ValueError(f"topology={name!r}: there is no such file")
    try:
        if name.lower().endswith(GRAPHML):
            return networkx.read_graphml(name)
        return networkx.read_edgelist(name)
    except Exception as error:
        raise ValueError(
            f"topology={name!r} cannot be read as a graph ({error}); accepted are GraphML "
            f"({', '.join(GRAPHML)}) and edge lists with lines such as 0 1 or "
            "0 1 {'latency': 0.01}"
        ) from error


def node_labels(graph: Any) -> list[Any]:
    """The nodes of a graph in the order in which they are numbered 0, 1, 2, ...

    Labels are sorted; those of files, which are texts, as numbers where they all are numbers.
    """
    labels = list(graph.nodes)
    if labels and all(isinstance(label, str) and label.isdecimal() for label in labels):
        return sorted(labels, key=int)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def graph_links(
    graph: Any, nodes: int, latency: float, bandwidth: float
) -> tuple[Links, list[Any]]:
    """Check a graph and turn it into links; returns them and the labels of the nodes.

    Edges without an attribute "latency" or "bandwidth" get the number given here.
    """
    labels = node_labels(graph)
    _check_graph(graph, labels, nodes)
    number = {label: i for i, label in enumerate(labels)}
    edges = list(graph.edges(data=True))
    ends = np.array([(number[u], number[v]) for u, v, _ in edges], dtype=np.int64)
    links = Links(
        nodes,
        ends.reshape(-1, 2),
        [_attribute(edge, "latency", latency, smallest=0.0) for edge in edges],
        [_attribute(edge, "bandwidth", bandwidth, smallest=1e-300) for edge in edges],
    )
    return links, labels


def _check_graph(graph: Any, labels: list[Any], nodes: int) -> None:
    import networkx

    if graph.is_directed() or graph.is_multigraph():
        raise ValueError(
            f"topology is a {type(graph).__name__}, but edges must be undirected and single; "
            "convert it with networkx.Graph(graph)"
        )
    if len(labels) != nodes:
        raise ValueError(
            f"topology has {len(labels)} nodes ({_listed(labels)}), but the cluster has {nodes}; "
            f"use LocalCluster(nodes={len(labels)}, ...) or leave nodes out"
        )
    if not labels:
        raise ValueError("topology is a graph without nodes: add one node for each shard")
    loops = [u for u, v in graph.edges if u == v]
    if loops:
        raise ValueError(
            f"topology has edges from a node to itself: {_listed(loops)}; remove them with "
            "graph.remove_edges_from(networkx.selfloop_edges(graph))"
        )
    reached = networkx.node_connected_component(graph, labels[0])
    if len(reached) < len(labels):
        missed = [label for label in labels if label not in reached]
        raise ValueError(
            f"topology is not connected: from node {labels[0]!r} there is no path to "
            f"{_listed(missed)}; every node must be able to reach every other one"
        )


def check_seconds(name: str, value: Any) -> float:
    """Return `value` as a float if it is a finite number of at least zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number of seconds >= 0, got {value!r}")
    return float(value)


def _attribute(edge: Any, name: str, default: float, smallest: float) -> float:
    u, v, attributes = edge
    given = attributes.get(name, default)
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = np.nan
    if not value >= smallest or (name == "latency" and value == np.inf):
        meaning = "a number of seconds >= 0" if name == "latency" else "bytes a second, > 0"
        raise ValueError(f"the edge {u!r} - {v!r} has {name}={given!r}: expected {meaning}")
    return value


def _listed(labels: Iterable[Any], most: int = 8) -> str:
    """The labels as a text that stays short."""
    names = [repr(label) for label in labels]
    if len(names) > most:
        names = [*names[:most], f"and {len(names) - most} more"]
    return ", ".join(names)
