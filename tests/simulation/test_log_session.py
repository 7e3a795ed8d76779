"""Whole runs over a network with faults, `recovery="log"`: the answer, its gap, the account."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as PenalisedLasso

import realdata
from atomcast import (
    Faults,
    KernelSVC,
    LocalCluster,
    Outage,
    Partition,
    Shards,
    Solver,
    StallError,
)
from atomcast.data import load_adult
from atomcast.domains.balls import L1Ball
from atomcast.loop.replica import Replica
from atomcast.network.tree import Tree
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.log_session import LogSession
from atomcast.steps import STEPS
from problems import STEPS as STEP_NAMES
from problems import mixture, regression

X, Y = regression(seed=3, d=30, n=60)


def reference():
    """The radius and the objective of a Lasso that scikit-learn has solved."""
    model = PenalisedLasso(alpha=0.15, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(X, Y)
    return float(np.abs(model.coef_).sum()), float(np.sum((Y - X @ model.coef_) ** 2))


BETA, OPTIMUM = reference()


def solve(cluster, step="corrective", tol=1e-6, rounds=300, **how):
    problem = explicit_problem(SquaredError(Y), L1Ball(BETA))
    solver = Solver(step, tol=tol, max_rounds=rounds, **how)
    return solver.solve(problem, Shards.split(X, cluster.nodes), cluster)


def kept_session(monkeypatch):
    """The sessions that are opened, so that a test can look at their logs."""
    opened = []
    begin = LogSession.begin

    def watched(self, replica, settings):
        opened.append((self, replica))
        return begin(self, replica, settings)

    monkeypatch.setattr(LogSession, "begin", watched)
    return opened


NETWORKS = {
    "star": lambda n: {"nodes": n},
    "tree": lambda n: {"nodes": n, "topology": "tree"},
    "path": lambda n: {"nodes": n, "topology": Tree(1)},
    "graph": lambda n: {"topology": nx.cycle_graph(n) if n > 2 else nx.path_graph(n)},
}


# -- without faults -------------------------------------------------------------------------


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("step", STEP_NAMES)
def test_without_faults_nothing_differs_but_version_numbers(network, step):
    how = NETWORKS[network](5)
    plain = solve(LocalCluster(**how), step, rounds=25)
    logged = solve(LocalCluster(**how, faults=Faults()), step, rounds=25)
    np.testing.assert_array_equal(logged.weights, plain.weights)
    np.testing.assert_array_equal(logged.trace.objective, plain.trace.objective)
    np.testing.assert_allclose(logged.trace.gap, plain.trace.gap, rtol=1e-9, atol=1e-12)
    assert (logged.status, logged.rounds) == (plain.status, plain.rounds)
    assert logged.ledger.disclosures == plain.ledger.disclosures
    mine, theirs = logged.ledger.by_kind(), plain.ledger.by_kind()
    kinds = ["proposal", "partial sum", "atom", "repair"]
    if step == "away":  # the log names a winner only where the step is towards it
        assert mine["index"].values < theirs["index"].values
    else:
        kinds.append("index")
    for kind in kinds:
        assert (mine[kind].values, mine[kind].bytes) == (theirs[kind].values, theirs[kind].bytes)
    assert theirs["repair"].messages == 0
    # A version with each message, and with each request for atoms also their ids.
    messages = logged.ledger.messages - theirs["control"].messages
    winners = mine["control"].values - theirs["control"].values - messages
    assert 0 <= winners <= sum(4 for _ in logged.ledger.disclosures)


def test_a_single_node_needs_no_network():
    result = solve(LocalCluster(1, faults=Faults(loss=0.5)))
    assert result.status == "optimal"
    assert result.ledger.messages == 0


# -- loss and the rest -----------------------------------------------------------------------


faults_of_all_kinds = st.builds(
    Faults,
    loss=st.sampled_from([0.0, 0.1, 0.4]),
    per=st.sampled_from(["link", "receiver"]),
    delay=st.sampled_from([0.0, 0.005]),
    duplicates=st.sampled_from([0.0, 0.3]),
    reorder=st.sampled_from([0.0, 0.3]),
    slow=st.sampled_from([{}, {1: 10.0}]),
    outages=st.sampled_from([(), (Outage(1, 0, 4),), (Outage(2, 1, 3), Outage(1, 2, 6))]),
    partitions=st.sampled_from([(), (Partition((1, 2), 1, 5),)]),
    seed=st.integers(0, 1000),
)


@given(
    network=st.sampled_from(sorted(NETWORKS)),
    nodes=st.integers(3, 7),
    step=st.sampled_from(STEP_NAMES),
    faults=faults_of_all_kinds,
)
@settings(max_examples=60, deadline=None)
def test_the_gap_is_true_and_every_log_replays_to_the_same_weights(network, nodes, step, faults):
    with pytest.MonkeyPatch.context() as monkeypatch:
        opened = kept_session(monkeypatch)
        result = solve(LocalCluster(**NETWORKS[network](nodes), faults=faults), step, rounds=20)
    ((session, replica),) = opened
    # The gap is one of these very weights, and true: it reaches down to an optimum that another
    # program has found.
    assert np.abs(result.weights).sum() <= BETA * (1 + 1e-9)
    objective = float(np.sum((Y - X @ result.weights) ** 2))
    assert result.objective == pytest.approx(objective, rel=1e-9)
    gradient = -2 * X.T @ (Y - X @ result.weights)
    gap = gradient @ result.weights + BETA * np.abs(gradient).max()
    assert result.gap == pytest.approx(gap, rel=1e-6, abs=1e-7 * objective)
    assert objective - result.gap <= OPTIMUM * (1 + 1e-6)
    # In rounds in which somebody was missing, none was claimed.
    finite = np.isfinite(result.trace.gap)
    reached = result.trace.objective[finite] - result.trace.gap[finite]
    assert np.all(reached <= OPTIMUM * (1 + 1e-6))
    head = session.simulator.root.log
    for vertex in session.simulator.vertices:
        assert all(a is b for a, b in zip(vertex.log, head, strict=False))
    # A node that has the whole log, and nothing else, has the weights.
    fresh = Replica(replica.problem, STEPS[step]("auto"), replica.tol)
    for entry in head:
        if not entry.final:
            fresh.advance(entry.agreement, entry.atoms)
    np.testing.assert_array_equal(fresh.active.weights, replica.active.weights)
    assert fresh.active.ids == replica.active.ids
    ids = [atom.id for entry in head for atom in entry.atoms]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("network", ["star", "tree", "graph"])
@pytest.mark.parametrize("loss", [0.1, 0.4])
def test_the_corrective_step_certifies_the_same_gap_under_loss(network, loss):
    how = NETWORKS[network](8)
    result = solve(LocalCluster(**how, faults=Faults(loss=loss, seed=1)), tol=1e-8)
    assert result.status == "optimal"
    assert result.relative_gap <= 1e-8
    assert result.objective == pytest.approx(OPTIMUM, rel=1e-7)


@pytest.mark.parametrize(("nodes", "seed"), [(10, 0), (10, 1), (10, 2), (100, 0), (100, 2)])
def test_the_classic_step_hardly_suffers_from_loss(nodes, seed):
    data, target = mixture(seed=seed, d=40, n=300)
    problem = explicit_problem(SquaredError(target), L1Ball(3.0))
    solver = Solver("classic", tol=1e-9, max_rounds=150)
    shards = Shards.split(data, nodes)
    plain = solver.solve(problem, shards, LocalCluster(nodes))
    lossy = solver.solve(problem, shards, LocalCluster(nodes, faults=Faults(loss=0.4, seed=seed)))
    assert lossy.rounds == plain.rounds
    assert lossy.trace.objective[-1] <= 1.1 * plain.trace.objective[-1]


def test_adult_over_a_network_that_loses_four_messages_in_ten(monkeypatch):
    realdata.use("a9a", monkeypatch)
    data = load_adult()
    rows = slice(0, 1000)
    solver = Solver("classic", tol=1e-6, max_rounds=100)

    def last(faults):
        cluster = LocalCluster(10, faults=faults)
        model = KernelSVC(C=100.0, gamma=0.05, cluster=cluster, solver=solver)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(data.X[rows], data.y[rows]).result_.trace.objective[-1]

    assert last(Faults(loss=0.4)) <= 1.1 * last(None)


def test_faults_are_replayed_by_their_seed():
    runs = [
        solve(
            LocalCluster(6, faults=Faults(loss=0.4, delay=0.01, reorder=0.2, seed=seed)),
            *("away", 1e-6, 20),
        )
        for seed in (5, 5, 6)
    ]
    assert runs[0].ledger.by_link() == runs[1].ledger.by_link()
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].ledger.seconds == runs[1].ledger.seconds > 0
    assert runs[0].ledger.by_link() != runs[2].ledger.by_link()


# -- nodes that are missing ------------------------------------------------------------------


def test_a_node_that_comes_back_has_replayed_the_log(monkeypatch):
    opened = kept_session(monkeypatch)
    faults = Faults(outages=[Outage(2, 3, 40)])
    result = solve(LocalCluster(4, faults=faults), "classic", rounds=60)
    trace = result.trace
    assert np.all(np.isfinite(trace.gap[1:3]))
    assert np.all(np.isinf(trace.gap[3:40]))
    assert np.all(np.isfinite(trace.gap[41:]))
    assert result.ledger.by_kind()["repair"].values > 0
    ((session, _),) = opened
    assert session.simulator.vertices[2].log == session.simulator.root.log
    assert np.isfinite(result.gap)
    assert result.objective - result.gap <= OPTIMUM * (1 + 1e-9)


@pytest.mark.parametrize(
    ("nodes", "topology", "faults"),
    [
        (5, "star", Faults(outages=[Outage(4, 2, 5)])),
        (7, "star", Faults(slow={1: 3.0}, outages=[Outage(1, 3, 5)])),
        (7, "tree", Faults(partitions=[Partition((0,), 3, 6)])),  # the root, which goes on alone
    ],
)
def test_whoever_is_back_is_heard_again(nodes, topology, faults):
    result = solve(LocalCluster(nodes, topology, faults=faults), "line-search", 1e-12, rounds=60)
    finite = np.isfinite(result.trace.gap)
    assert not finite[4]
    assert np.all(finite[9:])


def test_nobody_waits_round_after_round_for_a_node_that_is_much_too_slow():
    cluster = LocalCluster(4, latency=1.0, faults=Faults(slow={2: 500.0}))
    result = solve(cluster, "classic", rounds=400)
    seconds = np.array(result.ledger.seconds_by_round())
    assert np.mean(seconds[1:400] > 3 * np.median(seconds)) < 0.05


def test_nobody_waits_round_after_round_for_a_node_that_is_gone():
    long = solve(
        LocalCluster(4, latency=1.0, faults=Faults(outages=[Outage(2, 3, 90)])),
        "classic",
        rounds=90,
    )
    seconds = np.array(long.ledger.seconds_by_round())
    usual = np.median(seconds[1:3])
    assert seconds[3] > 3 * usual  # it might only be late
    assert np.median(seconds[5:60]) <= usual


def test_a_partition_heals(monkeypatch):
    opened = kept_session(monkeypatch)
    faults = Faults(partitions=[Partition((3, 4, 5), 2, 20)])
    result = solve(LocalCluster(6, "tree", faults=faults), "line-search", rounds=40)
    assert np.all(np.isinf(result.trace.gap[2:20]))
    ((session, _),) = opened
    logs = [vertex.log for vertex in session.simulator.vertices]
    assert all(log == logs[0] for log in logs)
    assert np.isfinite(result.gap)


def test_the_run_ends_although_all_nodes_are_away_for_a_while():
    faults = Faults(outages=[Outage(i, 2, 9) for i in range(3)])
    result = solve(LocalCluster(3, faults=faults), tol=1e-8)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(OPTIMUM, rel=1e-7)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(outages=[Outage(1, 2, 200)]),
        Faults(outages=[Outage(1, 2, 30), Outage(2, 20, 300)]),  # begins while the root waits
        Faults(partitions=[Partition((1, 2), 1, 300)]),
    ],
)
def test_the_end_of_faults_is_waited_for(faults):
    result = solve(LocalCluster(4, faults=faults), tol=1e-8)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(OPTIMUM, rel=1e-7)


def test_a_node_that_never_comes_back_is_named_with_the_round():
    faults = Faults(outages=[Outage(1, 2)])
    with pytest.raises(StallError, match=r"round \d+: node 1 was not heard.* give it an end"):
        solve(LocalCluster(3, faults=faults))
    with pytest.raises(StallError, match=r"round 30: node 1 was not heard"):
        solve(LocalCluster(3, faults=faults), "classic", rounds=30)


def test_a_partition_that_does_not_heal_in_time_is_an_error():
    faults = Faults(partitions=[Partition((1, 2), 1, 10**9)])
    with pytest.raises(StallError, match=r"round \d+: node 1, 2 was not heard.* 1000000000"):
        solve(LocalCluster(4, faults=faults))


def test_a_node_that_is_hopelessly_slow_is_an_error_that_says_so():
    with pytest.raises(StallError, match=r"node 2 was not heard.* Node 2 is slow=1e\+06 times"):
        solve(LocalCluster(4, faults=Faults(slow={2: 1e6})))


def test_a_slow_node_is_heard_in_the_end():
    result = solve(LocalCluster(4, faults=Faults(slow={2: 1000.0})), "classic", rounds=20)
    assert np.any(np.isinf(result.trace.gap))
    assert np.isfinite(result.gap)


# -- with the rest of the library -------------------------------------------------------------


def test_a_path_goes_on_with_the_same_log():
    from atomcast import lasso_path

    cluster = LocalCluster(5, "tree", faults=Faults(loss=0.3, outages=[Outage(2, 3, 5)]))
    path = lasso_path(X, Y, betas=[0.5, 1.0, 2.0], cluster=cluster)
    expected = lasso_path(X, Y, betas=[0.5, 1.0, 2.0], cluster=5)
    np.testing.assert_allclose(path.coefs, expected.coefs, atol=1e-3)
    assert all(result.relative_gap <= 1e-4 for result in path.results)


def test_a_restricted_selection_is_certified_over_all_atoms():
    result = solve(
        LocalCluster(4, faults=Faults(loss=0.3)), tol=1e-4, rounds=15, selection="random-subset"
    )
    gradient = -2 * X.T @ (Y - X @ result.weights)
    gap = gradient @ result.weights + BETA * np.abs(gradient).max()
    assert result.gap == pytest.approx(gap, rel=1e-6)


def test_a_run_over_a_lossy_network_is_resumed(tmp_path):
    from atomcast import Checkpoint

    path = tmp_path / "run.safetensors"
    cluster = LocalCluster(4, faults=Faults(loss=0.3))
    solve(cluster, "pairwise", rounds=6, callbacks=[Checkpoint(path, rounds=1)])
    resumed = solve(cluster, "pairwise", resume=path)
    assert resumed.trace.round[0] == 6
    assert resumed.status == "optimal"
    assert resumed.objective == pytest.approx(OPTIMUM, rel=1e-5)


def test_isolated_shards_give_the_same():
    together, alone = (
        solve(LocalCluster(5, isolated=isolated, faults=Faults(loss=0.3)), "pairwise", rounds=25)
        for isolated in (False, True)
    )
    np.testing.assert_allclose(together.weights, alone.weights, atol=1e-9)
    assert together.ledger.by_link() == alone.ledger.by_link()
