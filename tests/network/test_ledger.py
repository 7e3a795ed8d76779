"""The account: every atom once, by its owner, in its round; all sums agree; nothing at N = 1."""

import gc
import pickle
import sys
import tracemalloc

import networkx
import numpy as np
import pytest

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.messages.proposals import Proposals
from atomcast.network.build import make_topology
from atomcast.network.ledger import COORDINATOR, Accountant, Count, Ledger
from atomcast.simulation.local import LocalCluster
from problems import (
    DOMAINS,
    STEPS,
    dense_problem,
    make_domain,
    regression,
    solve,
    sparse_regression,
)


def total(counts):
    result = Count()
    for count in counts:
        result = result + count
    return result


def check_sums(ledger):
    in_rounds = Count(ledger.values, ledger.bytes, ledger.messages)
    assert total(ledger.by_round()) == in_rounds
    assert ledger.total == in_rounds + ledger.by_kind()["target"]
    assert total(ledger.by_kind().values()) == ledger.total
    assert total(ledger.by_node().values()) == ledger.total
    assert total(ledger.by_edge().values()) == ledger.total


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_disclosures_are_the_active_set(domain, step):
    X, y = dense_problem(domain, seed=1, d=20, n=30)
    shards = Shards.split(X, 6, random_state=3, names=[f"x{j}" for j in range(30)])
    owner = shards.assignment()
    arrivals = {}

    def watch(state):
        for id in state.replica.active.ids:
            # An atom that is known in a round was broadcast in the one before.
            arrivals.setdefault(id, state.round - 1)
        watch.known = list(state.replica.active.ids)

    result = solve(shards, y, make_domain(domain, 1.0), step=step, max_rounds=15, callbacks=[watch])
    sent = result.ledger.disclosures
    assert [entry.atom for entry in sent] == watch.known  # each once, in order
    assert result.ledger.atoms_sent == len(sent) == len(set(watch.known)) > 0
    for entry in sent:
        assert entry.node == owner[entry.atom]
        assert entry.round == arrivals[entry.atom]
        assert entry.name == f"x{entry.atom}"
        assert entry.values == 20
    assert set(result.atom_ids.tolist()) <= set(watch.known)
    check_sums(result.ledger)


@pytest.mark.parametrize("step", STEPS)
def test_the_trace_fits_the_ledger(step):
    X, y = regression(seed=2)
    result = solve(X, y, L1Ball(1.5), nodes=5, step=step, max_rounds=12)
    trace, ledger = result.trace, result.ledger
    assert len(trace) == result.rounds + 1
    assert trace.round.tolist() == list(range(len(trace)))
    assert np.all(np.diff(trace.seconds) >= 0)
    by_round, atoms = ledger.by_round(), [0] * (len(trace) + 1)
    assert len(by_round) == len(trace)
    for entry in ledger.disclosures:
        atoms[entry.round + 1] += 1
    np.testing.assert_array_equal(trace.atoms, np.cumsum(atoms)[: len(trace)])
    # A row counts the traffic up to the proposals of its round, before the atoms that follow.
    assert np.all(trace.values[1:] >= np.cumsum([c.values for c in by_round])[:-1])
    assert trace.values[-1] == ledger.values
    assert trace.bytes[-1] == ledger.bytes
    assert np.all(np.diff(trace.values) > 0)
    assert result.objective in trace.objective
    assert result.gap in trace.gap


@pytest.mark.parametrize("step", STEPS)
def test_a_node_alone_sends_nothing(step):
    X, y = regression(seed=3)
    ledger = solve(X, y, L1Ball(1.0), step=step, max_rounds=10).ledger
    assert (ledger.values, ledger.bytes, ledger.messages) == (0, 0, 0)
    assert ledger.disclosures == ledger.told == []
    check_sums(ledger)


@pytest.mark.parametrize("step", ["classic", "line-search"])
@pytest.mark.parametrize("nodes", [2, 3, 10])
def test_the_paper_s_count_for_a_star(nodes, step):
    """Algorithm 3 on a star: 3 values up and 3 down for each node, and d on N edges an atom."""
    X, y = regression(seed=4, d=17, n=30)
    result = solve(
        X, y, L1Ball(1.5), nodes=nodes, by="contiguous", step=step, tol=1e-9, max_rounds=20
    )
    ledger, rounds = result.ledger, len(result.trace)
    kinds = ledger.by_kind()
    assert kinds["proposal"].values == kinds["index"].values == 2 * nodes * rounds
    assert kinds["partial sum"].values == 2 * nodes * rounds
    assert kinds["atom"].values == 17 * nodes * ledger.atoms_sent
    assert kinds["atom"].messages == nodes * ledger.atoms_sent
    assert kinds["control"] == kinds["prediction"] == Count()
    assert kinds["target"] == Count(17 * nodes, 8 * 17 * nodes, nodes)
    assert ledger.values == 6 * nodes * rounds + 17 * nodes * ledger.atoms_sent
    assert set(ledger.by_edge()) == {(COORDINATOR, i) for i in range(nodes)}


def test_resending_counts_every_win():
    X, y = regression(seed=5, d=10, n=6)
    once = solve(X, y, L1Ball(1.0), nodes=2, step="classic", tol=1e-9, max_rounds=30)
    again = solve(
        X,
        y,
        L1Ball(1.0),
        nodes=2,
        step="classic",
        tol=1e-9,
        max_rounds=30,
        cluster=LocalCluster(2, resend=True),
    )
    np.testing.assert_allclose(once.weights, again.weights)
    assert once.ledger.atoms_sent <= 6
    assert again.ledger.atoms_sent == again.rounds
    check_sums(again.ledger)


def test_a_sparse_atom_counts_its_nonzeros():
    X, y = sparse_regression(seed=6)
    result = solve(X, y, L1Ball(3.0), nodes=4)
    nonzeros = np.diff(X.indptr)
    assert all(entry.values == nonzeros[entry.atom] for entry in result.ledger.disclosures)
    sent = sum(nonzeros[entry.atom] for entry in result.ledger.disclosures)
    assert result.ledger.by_kind()["atom"].values == 4 * sent


def test_empty_shards_still_answer():
    """A node without atoms says so in every round, or the others could not know the gap."""
    X, y = regression(seed=7, d=10, n=5)
    result = solve(X, y, L1Ball(0.5), nodes=3, by=[5, 0, 0], step="classic", max_rounds=4)
    by_node = result.ledger.by_node()
    assert set(by_node) == {COORDINATOR, 0, 1, 2}
    assert by_node[1] == by_node[2]
    assert {entry.node for entry in result.ledger.disclosures} == {0}
    check_sums(result.ledger)


def test_parties_go_by_their_names():
    X, y = regression(seed=9, d=10, n=6)
    shards = Shards.split(X, 2, by="contiguous", party_names=["north", "south"])
    named = solve(shards, y, L1Ball(1.0)).ledger
    plain = solve(Shards.split(X, 2, by="contiguous"), y, L1Ball(1.0)).ledger
    names = {-1: "coordinator", 0: "north", 1: "south"}
    assert named.by_node() == {names[i]: count for i, count in plain.by_node().items()}
    for view in ("by_edge", "by_link"):
        assert getattr(named, view)() == {
            (names[u], names[v]): count for (u, v), count in getattr(plain, view)().items()
        }
    assert set(named.to_pandas()["source"]) == set(names.values())
    for one, other in zip(named.disclosures, plain.disclosures, strict=True):
        assert (one.party, one.who) == (names[one.node], names[one.node])
        assert (other.party, other.who) == ("", str(other.node))
    assert [one.who for one in named.told + plain.told] == ["coordinator"] * 2


def calls_of(function):
    """How many times Python enters or resumes a function meanwhile."""
    calls = 0

    def watch(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("view", ["by_node", "by_edge", "by_link"])
def test_breakdowns_take_time_in_proportion_to_the_waves(view):
    def ledger_of(waves):
        ledger, one = Ledger(2), np.array([1])
        for _ in range(waves):
            ledger.record("atom", one - 1, one, one, one)
        return ledger

    few, many = (calls_of(getattr(ledger_of(waves), view)) for waves in (200, 800))
    assert many < 5 * few


def test_an_empty_ledger():
    ledger = Ledger(3)
    check_sums(ledger)
    assert ledger.by_node() == ledger.by_edge() == {}
    assert ledger.by_round() == []
    assert "0 atoms sent" in repr(ledger)


def test_a_trace_as_a_table(tmp_path):
    import pandas as pd

    X, y = regression(seed=8)
    trace = solve(X, y, L1Ball(1.0), nodes=3).trace
    frame = trace.to_pandas()
    assert list(frame.columns) == [
        "round",
        "seconds",
        "objective",
        "gap",
        "atoms",
        "values",
        "bytes",
        "simulated_seconds",
        "unread",
    ]
    trace.to_csv(tmp_path / "trace.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "trace.csv"), frame)
    np.testing.assert_array_equal(trace["gap"], trace.gap)
    with pytest.raises(AttributeError):
        trace.gaps  # noqa: B018


NETWORKS = [
    lambda **time: make_topology("star", 9, None, **time),
    lambda **time: make_topology("star", 9, "plain", **time),
    lambda **time: make_topology("tree", 9, None, **time),
    lambda **time: make_topology("tree", 9, "plain", **time),
    lambda **time: make_topology("complete", 9, None, **time),
    lambda **time: make_topology(networkx.wheel_graph(9), 9, None, **time),
    lambda **time: make_topology(networkx.wheel_graph(9), 9, "flooding", **time),
]


def talked(network, rounds, owners=lambda round: [round % 9]):
    """The ledger of rounds that are alike, with a sum and an atom in each."""
    accountant = Accountant(network, target=5)
    nodes, score = np.arange(9), np.linspace(1.0, 2.0, 9)
    said = Proposals(nodes, nodes, score, score, score, partial=score)
    for round in range(rounds):
        accountant.agree(said, 1, round)
        network.add_up(3, accountant.ledger, "corner")
        each = owners(round)
        network.broadcast(each, [7] * len(each), [60] * len(each), accountant.ledger)
    return accountant.ledger


def views(ledger):
    check_sums(ledger)
    kinds = ledger.by_kind(), ledger.by_kind(1), ledger.by_round(), ledger.hops_by_round()
    table = ledger.to_pandas().to_dict("list")
    return kinds, ledger.by_node("atom"), ledger.by_edge(), ledger.by_link(round=2), table


@pytest.mark.parametrize("make", NETWORKS)
@pytest.mark.parametrize("owners", [lambda round: [round % 9], lambda round: [8, round % 3, 4, 8]])
def test_rounds_that_are_alike_are_told_as_if_each_had_been_carried(make, owners):
    alike = talked(make(latency=0.0, bandwidth=np.inf), 12, owners)
    # Where messages take their time, every one of them is carried.
    assert views(alike) == views(talked(make(latency=1.0, bandwidth=np.inf), 12, owners))
    assert views(pickle.loads(pickle.dumps(alike))) == views(alike)


@pytest.mark.parametrize("make", NETWORKS)
def test_rounds_that_are_alike_are_kept_once(make):
    def kept(rounds):
        network = make(latency=0.0, bandwidth=np.inf)
        gc.collect()
        tracemalloc.start()
        ledger = talked(network, rounds)
        by_edge = ledger.by_edge()  # to look at it takes no memory that stays
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert by_edge
        return size

    kept(10)
    # The entries of three talks, and the owner of an atom on a star.
    assert kept(300) - kept(150) < 150 * 500


@pytest.mark.parametrize("make", NETWORKS)
def test_rounds_that_are_alike_are_sent_once_to_other_processes(make):
    def size(rounds):
        return len(pickle.dumps(talked(make(latency=0.0, bandwidth=np.inf), rounds)))

    # A number or two for each of three talks, however much there is in them.
    assert size(1000) - size(500) < 500 * 50
