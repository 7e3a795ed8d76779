"""What users may say of a network, what is refused and how, and how long messages take."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from atomcast import Lasso, LocalCluster, Solver
from atomcast.domains.balls import L1Ball
from atomcast.network import flood
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links
from atomcast.network.record_sets import Scales, all_of, as_set, own_records
from atomcast.network.spanning_tree import build_spanning_tree
from atomcast.network.tree import Tree
from networks import connected_graphs, problem
from problems import solve


def fit(cluster, rounds=2, step="classic"):
    X, y = problem(cluster.nodes)
    how = {"by": "contiguous", "step": step, "max_rounds": rounds, "tol": 1e-12}
    return solve(X, y, L1Ball(2.0), nodes=cluster.nodes, cluster=cluster, **how)


# -- what is accepted -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grid.graphml", "grid.edges", "grid.graphml.gz"])
def test_files_give_the_same_network_as_the_graph(tmp_path, name):
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))
    path = tmp_path / name
    (nx.write_edgelist if name.endswith("edges") else nx.write_graphml)(graph, path)
    for broadcast in ("spanning-tree", "flooding"):
        expected = fit(LocalCluster(topology=graph, broadcast=broadcast)).ledger
        for given_as in (path, str(path)):
            cluster = LocalCluster(topology=given_as, broadcast=broadcast)
            assert cluster.nodes == 12
            # Texts such as "10" and "2" are numbered as numbers: 2 comes before 10.
            assert fit(cluster).ledger.by_link() == expected.by_link()


def test_an_edge_list_may_have_latencies(tmp_path):
    path = tmp_path / "pair.txt"
    path.write_text("# a comment\n0 1 {'latency': 0.25}\n1 2 {'latency': 0.5}\n")
    assert fit(LocalCluster(topology=path), rounds=0).ledger.seconds > 1.0


def test_labels_are_numbered_in_sorted_order():
    graph = nx.Graph([("b", "c"), ("a", "c")])
    ledger = fit(LocalCluster(topology=graph)).ledger
    assert ledger.labels == ["a", "b", "c"]
    assert ledger.edges.tolist() == [[0, 2], [1, 2]]
    mixed = nx.Graph([("b", 3), (3, (1, 2))])
    assert fit(LocalCluster(topology=mixed)).ledger.labels == [3, "b", (1, 2)]


def test_clusters_are_copied_and_shown_in_full():
    graph = nx.path_graph(4)
    for cluster in (LocalCluster(4, Tree(3)), LocalCluster(topology=graph, latency=0.1)):
        model = clone(Lasso(beta=2.0, cluster=cluster, solver=Solver(max_rounds=1)))
        assert repr(model.cluster) == repr(cluster)
        again = pickle.loads(pickle.dumps(copy.deepcopy(cluster)))
        assert fit(again).ledger.by_link() == fit(cluster).ledger.by_link()
    assert repr(cluster) == (
        "LocalCluster(nodes=4, topology=<Graph with 4 nodes and 3 edges>, latency=0.1)"
    )
    assert repr(LocalCluster(4, Tree(3))) == "LocalCluster(nodes=4, topology=Tree(arity=3))"


def test_the_graph_is_left_as_it_is():
    graph = nx.path_graph(4)
    before = nx.to_dict_of_dicts(graph)
    cluster = LocalCluster(topology=graph)
    assert cluster.topology is graph
    fit(cluster)
    assert nx.to_dict_of_dicts(graph) == before


# -- what is refused ------------------------------------------------------------------------


def broken(graph, *loops):
    graph.add_edges_from((v, v) for v in loops)
    return graph


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LocalCluster(3, "ring"), "topology must be one of 'star', 'tree', 'complete'"),
        (lambda: LocalCluster(3, 7), "topology must be one of 'star', 'tree'"),
        (lambda: LocalCluster(3, broadcast="flooding"), "'improved', 'plain', got 'flooding'"),
        (lambda: LocalCluster(3, "complete", broadcast="plain"), "must be one of 'direct'"),
        (
            lambda: LocalCluster(topology=nx.path_graph(3), broadcast="plain"),
            "'spanning-tree', 'flooding', got 'plain'",
        ),
        (
            lambda: LocalCluster(topology=nx.Graph([("a", "b"), ("c", "d")])),
            "not connected: from node 'a' there is no path to 'c', 'd'",
        ),
        (
            lambda: LocalCluster(topology=nx.empty_graph(30)),
            "no path to 1, 2, 3, 4, 5, 6, 7, 8, and 21 more",
        ),
        (lambda: LocalCluster(topology=broken(nx.path_graph(4), 1, 3)), "to itself: 1, 3;"),
        (
            lambda: LocalCluster(5, nx.path_graph(["x", "y", "z"])),
            r"3 nodes \('x', 'y', 'z'\), but the cluster has 5",
        ),
        (lambda: LocalCluster(topology=nx.DiGraph([(0, 1)])), "DiGraph, but edges must be undir"),
        (lambda: LocalCluster(topology=nx.MultiGraph([(0, 1)])), "MultiGraph, but edges"),
        (lambda: LocalCluster(topology=nx.Graph()), "nodes must be a whole number >= 1"),
        (lambda: LocalCluster(3, latency=-1.0), "latency must be a finite number of seconds >= 0"),
        (lambda: LocalCluster(3, latency=np.nan), "latency must be a finite number"),
        (lambda: LocalCluster(3, bandwidth=0), "bandwidth must be a finite number > 0"),
        (
            lambda: LocalCluster(topology=nx.Graph([("a", "b", {"latency": -0.5})])),
            "the edge 'a' - 'b' has latency=-0.5",
        ),
        (
            lambda: LocalCluster(topology=nx.Graph([(0, 1, {"bandwidth": "fast"})])),
            "the edge 0 - 1 has bandwidth='fast'",
        ),
        (lambda: LocalCluster(3, cast="float8"), "cast must be one of 'float16', 'bfloat16'"),
        (lambda: LocalCluster(3, Tree(0)), "arity must be a whole number >= 1"),
        (lambda: LocalCluster(0), "nodes must be a whole number >= 1"),
    ],
)
def test_bad_input_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_file_that_is_no_graph_is_refused(tmp_path):
    for name, text in (("a.graphml", "<not xml"), ("a.txt", "0 1 2 3 {oops")):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(ValueError, match="cannot be read as a graph"):
            LocalCluster(topology=path)
    with pytest.raises(
        ValueError, match=r"the path of an existing file with a graph, got .*missing"
    ):
        LocalCluster(topology=tmp_path / "missing.graphml")


def test_a_file_of_the_wrong_size_is_refused_when_the_data_comes(tmp_path):
    path = tmp_path / "path.edges"
    nx.write_edgelist(nx.path_graph(3), path)
    with pytest.raises(ValueError, match=r"3 nodes .* but the cluster has 4"):
        fit(LocalCluster(4, path))


# -- how long it takes ----------------------------------------------------------------------


def test_latency_adds_up_along_the_longest_way():
    """On a star, up and down for the agreement, up and down for the atom: four latencies."""
    ledger = fit(LocalCluster(5, latency=0.5, resend=True), rounds=2).ledger
    assert ledger.seconds_by_round() == pytest.approx([2.0, 2.0, 1.0])
    assert ledger.hops_by_round() == [4, 4, 2]
    assert ledger.seconds == pytest.approx(5.0)


def test_bandwidth_is_shared_by_what_crosses_an_edge():
    """Two nodes, a number a second: 3 values each way, then 7 values of an atom."""
    slow = fit(LocalCluster(2, "complete", bandwidth=8.0), rounds=1).ledger
    size = slow.by_kind()["atom"].bytes
    assert slow.seconds_by_round() == pytest.approx([3 + size / 8, 3])


def test_the_slowest_edge_of_a_tree_holds_up_the_root_only():
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, {(0, 1): 1.0, (1, 2): 10.0, (2, 3): 100.0}, "latency")
    ledger = fit(LocalCluster(topology=graph), rounds=0).ledger
    # The tree: "join" down 111 s; the answers overlap with it but for the last, which takes 100.
    # Then proposals climb from node 3, 111 s, and the verdict comes down, 111 s.
    assert ledger.seconds == pytest.approx(3 * 111)


def test_without_latencies_no_time_passes():
    assert fit(LocalCluster(5, "tree")).ledger.seconds == 0.0


@settings(deadline=None, max_examples=25)
@given(connected_graphs(smallest=2))
def test_flooding_takes_as_long_as_its_waves(graph):
    """With equal latencies a wave takes one; the last wave only tells what is known already."""
    ledger = fit(LocalCluster(topology=graph, broadcast="flooding", latency=2.0), 0).ledger
    assert ledger.seconds == pytest.approx(2.0 * ledger.hops)
    assert nx.diameter(graph) <= ledger.hops <= nx.diameter(graph) + 1


# -- the pieces -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(connected_graphs())
def test_the_spanning_tree_is_one_of_shortest_paths(graph):
    n = graph.number_of_nodes()
    parent = build_spanning_tree(Links(n, list(graph.edges)), Ledger(n))
    assert parent[0] == -1
    distance = nx.single_source_shortest_path_length(graph, 0)
    for v in range(1, n):
        closer = [u for u in graph[v] if distance[u] == distance[v] - 1]
        assert parent[v] == min(closer)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([0, 3, 2**40])), min_size=1, max_size=150
    ),
    st.integers(0, 2**32 - 1),
)
def test_weighing_sets_is_a_matrix_product(pairs, seed):
    amounts = np.array(pairs).T
    amounts = np.vstack((amounts, np.full(len(pairs), 7)))
    member = np.random.default_rng(seed).random((6, len(pairs))) < 0.4
    weights = Scales(amounts).weigh(np.stack([as_set(row) for row in member]))
    np.testing.assert_array_equal(weights, amounts @ member.T)


@settings(deadline=None, max_examples=25)
@given(connected_graphs(smallest=2, largest=30), st.integers(1, 150), st.integers(0, 1000))
def test_compiled_flooding_is_the_same(graph, records, seed):
    n = graph.number_of_nodes()
    rng = np.random.default_rng(seed)
    links = Links(n, list(graph.edges))
    source, amounts = rng.integers(0, n, records), rng.integers(0, 5, (2, records))
    outcomes = []
    for waves in (flood._sparse_waves, flood._dense_waves):
        known = own_records(source, n)
        outcome = []
        for used, carried in waves(links, source, known, Scales(amounts)):
            order = np.argsort(used)
            outcome.append((used[order].tolist(), carried[:, order].tolist()))
        assert np.all(known == all_of(records))
        outcomes.append(outcome)
    assert outcomes[0] == outcomes[1]


# -- fewer digits ---------------------------------------------------------------------------


@pytest.mark.parametrize("cast", ["float16", "bfloat16"])
@pytest.mark.parametrize("step", ["classic", "corrective"])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_cast_solves_the_rounded_problem_and_certifies_it(cast, step, isolated):
    X, y = problem(5, d=30)
    if cast == "float16":
        X_rounded = X.astype(np.float16).astype(np.float64)
    else:
        torch_like = X.astype(np.float32).view(np.uint32).astype(np.uint64)
        torch_like = (torch_like + 0x7FFF + ((torch_like >> 16) & 1)) >> 16 << 16
        X_rounded = torch_like.astype(np.uint32).view(np.float32).astype(np.float64)
    how = {"nodes": 5, "step": step, "max_rounds": 30, "tol": 1e-8}
    exact = solve(X, y, L1Ball(2.0), cluster=LocalCluster(5), **how)
    sent = solve(X, y, L1Ball(2.0), cluster=LocalCluster(5, cast=cast, isolated=isolated), **how)
    plain = solve(X_rounded, y, L1Ball(2.0), cluster=LocalCluster(5), **how)
    np.testing.assert_array_equal(sent.weights, plain.weights)
    assert sent.gap == pytest.approx(plain.gap, rel=1e-9)
    assert sent.ledger.bytes < 0.6 * exact.ledger.bytes
    # The certificate is that of the rounded atoms: no point of that problem is better by more.
    gradient = 2 * X_rounded.T @ (X_rounded @ sent.weights - y)
    true_gap = gradient @ sent.weights + 2.0 * np.abs(gradient).max()
    assert sent.gap == pytest.approx(true_gap, rel=1e-6, abs=1e-9)


def test_a_cast_that_overflows_is_refused():
    X, y = problem(2)
    with pytest.raises(ValueError, match=r"cast='float16': shard 0 .* a value of 1e\+09"):
        solve(X * 0 + 1e9, y, L1Ball(2.0), nodes=2, cluster=LocalCluster(2, cast="float16"))


def test_a_cast_leaves_the_data_alone():
    X, y = problem(2)
    before = X.copy()
    solve(X, y, L1Ball(2.0), nodes=2, cluster=LocalCluster(2, cast="bfloat16"))
    np.testing.assert_array_equal(X, before)
