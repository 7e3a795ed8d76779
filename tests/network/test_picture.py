"""Pictures of networks: every edge is there, and the busiest is the widest."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.simulation.local import LocalCluster
from networks import problem
from problems import solve


@pytest.fixture(autouse=True)
def plt():
    """pyplot, of which no figure is left by one test to the next."""
    import matplotlib.pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")


def ledger_of(cluster):
    X, y = problem(cluster.nodes)
    return solve(X, y, L1Ball(2.0), nodes=cluster.nodes, cluster=cluster, max_rounds=2).ledger


def lines(ax):
    idle, *busy = ax.collections[:2]
    return len(idle.get_segments()), busy[0]


@pytest.mark.parametrize(
    ("cluster", "edges"),
    [
        (LocalCluster(6), 6),
        (LocalCluster(7, "tree"), 6),
        (LocalCluster(5, "complete"), 10),
        (LocalCluster(topology=nx.cycle_graph(8), broadcast="flooding"), 8),
        (LocalCluster(topology=nx.complete_graph(4)), 6),
    ],
)
@pytest.mark.parametrize("weight", ["values", "bytes", "messages"])
def test_every_edge_is_drawn(cluster, edges, weight):
    ledger = ledger_of(cluster)
    idle, busy = lines(ledger.plot_network(weight=weight))
    traffic = sorted(getattr(count, weight) for count in ledger.by_edge().values())
    assert idle + len(busy.get_segments()) == edges
    assert busy.get_array().tolist() == traffic
    assert np.all(np.diff(busy.get_linewidths()) >= 0)


def test_labels_and_a_single_node():
    ax = ledger_of(LocalCluster(topology=nx.Graph([("oslo", "rome"), ("rome", "bern")])))
    shown = {text.get_text() for text in ax.plot_network().texts}
    assert shown == {"oslo", "rome", "bern"}
    assert "1 nodes, 0 edges" in ledger_of(LocalCluster(1)).plot_network().get_title()


def test_parties_are_called_by_their_names():
    X, y = problem(3)
    shards = Shards.split(X, 3, party_names=["north", "south", "it"])
    ax = solve(shards, y, L1Ball(2.0)).ledger.plot_network()
    assert {text.get_text() for text in ax.texts} == {"north", "south", "it", "hub"}
    assert "hub – " in ax.get_title()


def test_many_nodes_are_not_named_and_an_axis_can_be_given():
    from atomcast.plots.drawing import new_figure

    given = new_figure().subplots()
    ax = ledger_of(LocalCluster(450, "tree")).plot_network(ax=given)
    assert ax is given
    assert not ax.texts


def test_it_is_drawn_on_the_current_axes_of_pyplot_unless_they_are_in_use(plt):
    result = solve(*problem(3), L1Ball(2.0), nodes=3, max_rounds=2)
    assert result.ledger.plot_network() is plt.gca()
    trace = result.trace.plot(ax=plt.figure().subplots())
    network = result.ledger.plot_network()
    assert network is plt.gca()
    assert network is not trace
    assert len(plt.get_fignums()) == 3


def test_an_unknown_weight_is_refused():
    with pytest.raises(ValueError, match="weight must be one of 'values', 'bytes', 'messages'"):
        ledger_of(LocalCluster(2)).plot_network(weight="atoms")
