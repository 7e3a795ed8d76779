"""What the ledger counted equals the formulas of section 4.1, which only tests know."""

from __future__ import annotations

from dataclasses import astuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast.domains.balls import L1Ball
from atomcast.messages.atom import Atom
from atomcast.network.ledger import Count, Ledger
from atomcast.network.wire import codec as wire
from atomcast.simulation.local import LocalCluster
from networks import cases, connected_graphs, problem
from problems import solve, sparse_regression

ROUNDS = 4


def run(X, y, cluster, step="classic", rounds=ROUNDS, tol=1e-12, **how):
    return solve(
        X,
        y,
        L1Ball(2.0),
        nodes=cluster.nodes,
        by=how.pop("by", "contiguous"),
        cluster=cluster,
        step=step,
        max_rounds=rounds,
        tol=tol,
        **how,
    )


def atom_bytes(X, result):
    return [
        len(wire.encode(Atom(entry.atom, len(X), np.array(X[:, entry.atom]))))
        for entry in result.ledger.disclosures
    ]


@settings(deadline=None, max_examples=40)
@given(connected_graphs(), st.integers(0, 100))
def test_every_round_costs_what_the_formula_says(graph, seed):
    N = graph.number_of_nodes()
    X, y = problem(N, seed)
    d = len(X)
    for name, (cluster, formula) in cases(graph).items():
        result = run(X, y, cluster)
        rounds = result.ledger.by_round()
        if N == 1:
            assert (rounds, result.ledger.total) == ([], Count())
            continue
        # The target crosses as many links as an atom does, once, and in none of the rounds.
        assert result.ledger.by_kind()["target"].values == formula.atom * d, name
        assert result.ledger.by_kind(round=-1)["target"].bytes == 8 * formula.atom * d, name
        (target,) = result.ledger.told
        holder = -1 if "star" in name else 0
        assert (target.kind, target.node, target.values) == ("target", holder, d), name
        sizes = atom_bytes(X, result)
        assert len(sizes) == ROUNDS, name
        # The last round only finds that it is the last: its gap is known, no atom is sent.
        for k, count in enumerate(rounds):
            last, first = k == ROUNDS, k == 0
            values = formula.agree + formula.once * first + formula.atom * d * (not last)
            size = 8 * (formula.agree + formula.once * first)
            size += 0 if last else formula.atom * sizes[k]
            assert (count.values, count.bytes) == (values, size), (name, k)


@settings(deadline=None, max_examples=20)
@given(connected_graphs(smallest=2))
def test_messages_hops_and_kinds(graph):
    N, M = graph.number_of_nodes(), graph.number_of_edges()
    X, y = problem(N)
    made = cases(graph)
    agreements = ROUNDS + 1
    expected = {
        "star": 2 * N * agreements + N * ROUNDS,
        "plain star": 2 * N * agreements + N * ROUNDS,
        "tree": 2 * (N - 1) * agreements + (N - 1) * ROUNDS,
        "complete": N * (N - 1) * agreements + (N - 1) * ROUNDS,
        "spanning tree": 2 * M + 2 * (N - 1) * agreements + (N - 1) * ROUNDS,
    }
    for name, messages in expected.items():
        ledger = run(X, y, made[name][0]).ledger
        assert ledger.messages == messages, name
        kinds = {**ledger.by_kind(), "target": Count()}
        assert sum(count.messages for count in kinds.values()) == messages
    ledger = run(X, y, made["spanning tree"][0]).ledger
    assert ledger.by_kind()["control"] == Count(2 * M, 16 * M, 2 * M)
    # Every link carries exactly one message while the tree is built.
    control = ledger.by_link("control")
    assert set(control) == {(u, v) for e in graph.edges for u, v in (e, e[::-1])}
    assert set(control.values()) == {Count(1, 8, 1)}
    depth = max(nx.single_source_shortest_path_length(graph, 0).values())
    assert ledger.hops_by_round()[-1] == 2 * depth  # up and down, no atom


@settings(deadline=None, max_examples=20)
@given(connected_graphs(smallest=2))
def test_flooding_waves_are_those_of_the_distances(graph):
    """A wave t carries, over each link, the records from distance t that did not come by it."""
    N = graph.number_of_nodes()
    X, y = problem(N)
    cluster = LocalCluster(topology=graph, broadcast="flooding")
    ledger = run(X, y, cluster, rounds=0).ledger
    assert ledger.by_link(round=0) == plain_flood(graph)
    assert ledger.hops >= nx.diameter(graph)


def plain_flood(graph):
    """Flooding as a loop over single messages, as one would write it down first."""
    sent = {}
    known = {v: {v} for v in graph}
    outbox = {v: {(v, None)} for v in graph}  # (origin, the neighbour it came from)
    while any(outbox.values()):
        inbox = {v: {} for v in graph}
        for u in sorted(graph):
            for v in graph[u]:
                records = {origin for origin, first in outbox[u] if first != v}
                if records:
                    amount = Count(4 * len(records), 32 * len(records), 1)
                    sent[u, v] = sent.get((u, v), Count()) + amount
                    for origin in records:
                        inbox[v].setdefault(origin, u)
        outbox = {
            v: {(origin, u) for origin, u in inbox[v].items() if origin not in known[v]}
            for v in graph
        }
        for v in graph:
            known[v] |= {origin for origin, _ in outbox[v]}
    assert all(len(heard) == len(graph) for heard in known.values())
    return dict(sorted(sent.items()))


@settings(deadline=None, max_examples=6)
@given(connected_graphs(smallest=2, largest=8), st.integers(0, 100))
def test_breakdowns_add_up(graph, seed):
    N = graph.number_of_nodes()
    X, y = problem(N, seed)
    edges = {tuple(sorted(edge)) for edge in graph.edges}
    for name, (cluster, _) in cases(graph).items():
        ledger = run(X, y, cluster, step="corrective", rounds=3, tol=1e-6).ledger
        total, in_rounds = ledger.total, Count(ledger.values, ledger.bytes, ledger.messages)
        for view in (ledger.by_edge(), ledger.by_node(), ledger.by_link(), ledger.by_kind()):
            assert sum(view.values(), Count()) == total, name
        assert sum(ledger.by_round(), Count()) == in_rounds, name
        assert total == in_rounds + ledger.by_kind()["target"], name
        per_round = [ledger.by_edge(round=k) for k in range(-1, len(ledger.by_round()))]
        assert sum((sum(v.values(), Count()) for v in per_round), Count()) == total
        by_kind = [ledger.by_node(kind=kind) for kind in ledger.by_kind()]
        assert sum((sum(v.values(), Count()) for v in by_kind), Count()) == total
        if name in ("spanning tree", "flooding"):
            assert set(ledger.by_edge()) <= edges
            assert {tuple(edge) for edge in ledger.edges.tolist()} == edges
        table = ledger.to_pandas()
        assert not table.duplicated(["round", "source", "target", "kind"]).any()
        for row in table.itertuples():
            count = Count(row.values, row.bytes, row.messages)
            assert ledger.by_link(row.kind, row.round)[row.source, row.target] == count
        assert table[["values", "bytes", "messages"]].sum().tolist() == list(astuple(total))


@settings(deadline=None, max_examples=15)
@given(connected_graphs(), st.sampled_from(["classic", "line-search", "pairwise", "corrective"]))
def test_the_result_is_the_same_on_every_topology(graph, step):
    N = graph.number_of_nodes()
    X, y = problem(N)
    X = np.hstack((X, X[:, :3]))  # equal atoms on different nodes: ties
    reference = run(X, y, LocalCluster(1), step=step, rounds=12, tol=1e-9)
    for name, (cluster, _) in cases(graph).items():
        result = run(X, y, cluster, step=step, rounds=12, tol=1e-9, by="random")
        np.testing.assert_array_equal(result.weights, reference.weights, err_msg=name)
        assert result.rounds == reference.rounds
        assert result.status == reference.status
        # Partial sums are added in another order on every topology, so that digits may differ.
        np.testing.assert_allclose(result.gap, reference.gap, rtol=1e-9, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(connected_graphs(), st.integers(1, 50), st.sampled_from(["prediction", "corner"]))
def test_sums_over_all_nodes_cost_as_much_as_agreements(graph, rows, kind):
    """A number of a sum goes where each of the three numbers of the classic proposal does."""
    nodes = graph.number_of_nodes()
    for name, (cluster, formula) in cases(graph).items():
        network, ledger = cluster.network(), Ledger(nodes)
        network.prepare(Ledger(nodes))
        network.add_up(rows, ledger, kind)
        signed = name == "flooding"
        links = formula.agree // (4 if signed else 3)
        kinds = ledger.by_kind()
        assert (kinds[kind].values, kinds[kind].bytes) == (rows * links, 8 * rows * links), name
        assert kinds["control"].values == links * signed, name
        assert ledger.values == (rows + signed) * links, name


def test_batches_are_thinned_out_on_a_tree():
    """Each node forwards at most the batch, however many proposals its subtree has."""
    X, y = problem(31, d=40)
    ledger = run(X, y, LocalCluster(31, "tree"), "corrective", 1, atoms_per_round=2).ledger
    up = {
        ends: count
        for ends, count in ledger.by_link("index", round=0).items()
        if ends[1] == (ends[0] - 1) // 2
    }
    assert len(up) == 30
    assert {count.values for count in up.values()} == {2}


def test_atoms_of_a_round_share_messages():
    X, y = problem(6, d=30)
    ledger = run(X, y, LocalCluster(6), "corrective", 1, atoms_per_round=5).ledger
    owners = {entry.node for entry in ledger.disclosures}
    assert len(ledger.disclosures) == 5
    assert ledger.by_kind()["atom"].messages == len(owners) + 6
    assert ledger.by_kind()["atom"].values == 5 * 6 * 30


def test_nodes_without_atoms_say_only_that():
    X, y = problem(2)
    n = X.shape[1]
    ledger = run(X, y, LocalCluster(4), rounds=0, by=[n - 1, 0, 1, 0]).ledger
    up = {ends: c for ends, c in ledger.by_link("index").items() if ends[1] == -1}
    assert {ends[0] for ends, count in up.items() if count.values} == {0, 2}
    assert ledger.by_kind()["proposal"].values == 8  # a number up and down for each node
    assert ledger.by_kind()["index"].values == 2 + 4


@settings(deadline=None, max_examples=15)
@given(connected_graphs(smallest=2), st.integers(0, 100))
def test_batches_of_sparse_atoms_cost_what_they_hold(graph, seed):
    """Several atoms of different sizes a round: each crosses as many links as one alone."""
    X, y = sparse_regression(seed, d=40, n=4 * graph.number_of_nodes(), density=0.2)
    column = sparse.csc_array(X)
    for name, (cluster, formula) in cases(graph).items():
        ledger = run(X, y, cluster, "corrective", 3, 1e-6, by="random").ledger
        atoms = [entry.atom for entry in ledger.disclosures]
        part = [slice(*column.indptr[j : j + 2]) for j in atoms]
        sizes = [
            wire.encoded_size(Atom(j, 40, column.data[p], column.indices[p]))
            for j, p in zip(atoms, part, strict=True)
        ]
        nonzeros = sum(p.stop - p.start for p in part)
        sent = ledger.by_kind()["atom"]
        assert (sent.values, sent.bytes) == (formula.atom * nonzeros, formula.atom * sum(sizes)), (
            name
        )


@pytest.mark.parametrize(("step", "sums"), [("classic", True), ("away", False)])
def test_only_algorithm_3_sends_partial_sums(step, sums):
    X, y = problem(4)
    assert bool(run(X, y, LocalCluster(4), step).ledger.by_kind()["partial sum"].values) is sums
