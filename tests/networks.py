"""Graphs for tests, and formulas of section 4.1: what a round must cost, worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from atomcast.network.tree import Tree
from atomcast.simulation.local import LocalCluster


@st.composite
def connected_graphs(draw, smallest=1, largest=12):
    """A random connected graph with nodes 0 to N - 1: a random tree and some more edges."""
    n = draw(st.integers(smallest, largest))
    graph = nx.empty_graph(n)
    for v in range(1, n):
        graph.add_edge(draw(st.integers(0, v - 1)), v)
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=2 * n)) if pairs else [])
    order = draw(st.permutations(range(n)))
    return nx.relabel_nodes(graph, dict(zip(graph.nodes, order, strict=True)))


@dataclass(frozen=True)
class Formula:
    """What a round of the classic step costs: links crossed, and numbers carried.

    Parameters
    ----------
    agree : int
        Values that it takes to agree on the winner.
    atom : int
        Links that each atom crosses.
    once : int
        Values that are sent once, before the first round.
    """

    agree: int
    atom: int
    once: int = 0


def cases(graph):
    """A cluster for every topology with as many nodes as the graph, and its formula."""
    N, M = graph.number_of_nodes(), graph.number_of_edges()
    flood = 2 * M - (N - 1)
    alone = N == 1
    return {
        "star": (
            LocalCluster(N, resend=True),
            Formula(0 if alone else 6 * N, 0 if alone else N),
        ),
        "plain star": (
            LocalCluster(N, broadcast="plain", resend=True),
            Formula(0 if alone else 3 * N * N, 0 if alone else N),
        ),
        "tree": (LocalCluster(N, "tree", resend=True), Formula(6 * (N - 1), N - 1)),
        "path-like tree": (LocalCluster(N, Tree(1), resend=True), Formula(6 * (N - 1), N - 1)),
        "plain tree": (
            LocalCluster(N, Tree(3), broadcast="plain", resend=True),
            Formula(3 * N * (N - 1), N - 1),
        ),
        "complete": (LocalCluster(N, "complete", resend=True), Formula(3 * N * (N - 1), N - 1)),
        "spanning tree": (
            LocalCluster(topology=graph, resend=True),
            Formula(6 * (N - 1), N - 1, once=2 * M),
        ),
        "flooding": (
            LocalCluster(topology=graph, broadcast="flooding", resend=True),
            Formula(4 * N * flood, flood),
        ),
    }


def problem(nodes, seed=0, d=7):
    """A dense regression problem with at least two atoms for every node."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, 2 * nodes + int(rng.integers(5))))
    return X, rng.standard_normal(d)
