"""Faults that make no sense are refused, with a sentence that says what does."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest

from atomcast import Faults, LocalCluster, MPICluster, Outage, Partition, RayCluster


@pytest.mark.parametrize(
    ("name", "value"),
    [("loss", 1.0), ("loss", -0.1), ("duplicates", "often"), ("reorder", True), ("loss", None)],
)
def test_probabilities(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be a probability in \[0, 1\)"):
        Faults(**{name: value})


def test_other_numbers():
    with pytest.raises(ValueError, match="delay must be a finite number > 0"):
        Faults(delay=-1.0)
    with pytest.raises(ValueError, match="slow must be a finite number > 0"):
        Faults(slow={1: 0.0})
    with pytest.raises(ValueError, match="per must be one of 'link', 'receiver'"):
        Faults(per="message")
    with pytest.raises(ValueError, match="end must be a round after start=3, got 3"):
        Outage(0, 3, 3)
    with pytest.raises(ValueError, match="nodes must be a whole number >= 0"):
        Partition((-1,), 0, 3)


@pytest.mark.parametrize(
    ("name", "value", "example"),
    [
        ("slow", [1], r"\{3: 10.0\}"),
        ("slow", None, r"\{3: 10.0\}"),
        ("outages", [(1, 2, 3)], r"\[Outage\(node=3, start=10, end=20\)\]"),
        ("outages", Outage(1, 2, 3), r"\[Outage\("),
        ("partitions", [Outage(1, 2, 3)], r"\[Partition\("),
        ("partitions", None, r"\[Partition\("),
    ],
)
def test_parts_of_the_wrong_kind(name, value, example):
    with pytest.raises(ValueError, match=rf"{name} must be a .*such as {example}.*, got"):
        Faults(**{name: value})


def test_a_list_is_as_good_as_a_tuple():
    assert Faults(outages=[Outage(1, 2, 3)]) == Faults(outages=(Outage(1, 2, 3),))
    slow = Faults(slow={1: 2.0}, outages=[], partitions=[])
    LocalCluster(2, compute=1e-3, faults=slow)
    LocalCluster(2, asynchronous=True, faults=slow)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(outages=[Outage(5, 0, 3)]),
        Faults(slow={5: 2.0}),
        Faults(partitions=[Partition((1, 5), 0, 3)]),
    ],
)
def test_nodes_that_do_not_exist(faults):
    with pytest.raises(ValueError, match="faults name node 5, but there are 5 nodes: 0 to 4"):
        LocalCluster(5, faults=faults)


def test_recovery():
    with pytest.raises(ValueError, match="recovery must be one of 'log', 'none', got 'raft'"):
        LocalCluster(3, recovery="raft")
    with pytest.raises(ValueError, match=r"faults must be None or Faults\(loss=...\), got 0.2"):
        LocalCluster(3, faults=0.2)
    with pytest.raises(ValueError, match="resend=True and faults do not go together"):
        LocalCluster(3, faults=Faults(), resend=True)


@pytest.mark.parametrize(
    ("recovery", "how"),
    [
        ("log", {"topology": "complete"}),
        *itertools.product(
            ("log", "none"),
            [{"broadcast": "plain"}, {"topology": nx.cycle_graph(4), "broadcast": "flooding"}],
        ),
    ],
)
def test_networks_without_a_root(recovery, how):
    with pytest.raises(ValueError, match=r"with a root|on a star"):
        LocalCluster(4, **how, faults=Faults(loss=0.1), recovery=recovery)


def test_the_root_of_a_tree_does_not_die():
    faults = Faults(outages=[Outage(0, 1, 2)])
    for topology in ("tree", nx.cycle_graph(4)):
        with pytest.raises(ValueError, match="node 0, the root of this tree"):
            LocalCluster(4, topology, faults=faults)
    LocalCluster(4, faults=faults)  # the coordinator of a star is nobody's node


@pytest.mark.parametrize(
    "fault",
    [
        {"delay": 0.1},
        {"duplicates": 0.1},
        {"reorder": 0.1},
        {"slow": {1: 2.0}},
        {"outages": [Outage(1, 0, 2)]},
    ],
)
def test_what_the_papers_protocol_does_not_know(fault):
    with pytest.raises(ValueError, match=rf"faults.{next(iter(fault))}=.* needs recovery=\"log\""):
        LocalCluster(3, faults=Faults(**fault), recovery="none")


def test_real_clusters_have_real_faults():
    with pytest.raises(TypeError, match="faults"):
        MPICluster(faults=Faults())
    with pytest.raises(ValueError, match="more than slow nodes"):
        RayCluster(2, faults=Faults(loss=0.1))


def test_computing_time_goes_with_slow_nodes_alone():
    LocalCluster(2, "complete", compute=1e-3, faults=Faults(slow={1: 2.0}))
    with pytest.raises(ValueError, match="more than slow nodes"):
        LocalCluster(2, compute=1e-3, faults=Faults(loss=0.1, slow={1: 2.0}))


def test_the_repr_says_what_goes_wrong():
    shown = repr(LocalCluster(3, faults=Faults(loss=0.2), recovery="none"))
    assert "loss=0.2" in shown
    assert "recovery='none'" in shown
