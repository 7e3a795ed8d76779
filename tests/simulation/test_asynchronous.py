"""Simulated nodes at their own pace: true certificates, and the same run again."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification

from atomcast import (
    Checkpoint,
    Faults,
    KernelSVC,
    KernelSVR,
    L1AdaBoost,
    LocalCluster,
    Shards,
    Solver,
    SparseLogisticRegression,
    lasso_path,
)
from atomcast.domains.balls import L1Ball, Simplex
from certificates import assert_certified, assert_sent_once, lasso_problem, true_gap
from problems import mixture, optimum, regression, solve


def cluster_of(nodes, slow=None, **how):
    how = {"asynchronous": True, "compute": 1e-3, "latency": 1e-4} | how
    return LocalCluster(nodes, faults=Faults(slow=slow or {}), **how)


@st.composite
def runs(draw):
    """A problem, who holds what, and how slow everybody is."""
    n, nodes = draw(st.integers(20, 60)), draw(st.integers(2, 6))
    cuts = sorted(draw(st.lists(st.integers(0, n), min_size=nodes - 1, max_size=nodes - 1)))
    factor = st.one_of(st.just(1.0), st.floats(0.2, 50.0))
    return {
        "seed": draw(st.integers(0, 10_000)),
        "n": n,
        "sizes": np.diff([0, *cuts, n]).tolist(),
        "slow": {node: draw(factor) for node in range(nodes)},
        "staleness": draw(st.sampled_from([0, 1, 3, 10, 1000])),
        "tol": draw(st.sampled_from([1e-2, 1e-3, 1e-6])),
        "latency": draw(st.sampled_from([0.0, 1e-4, 0.1])),
        "sparse_data": draw(st.booleans()),
        "atoms_per_round": draw(st.sampled_from(["auto", 1, 7])),
    }


@given(runs())
@settings(deadline=None, max_examples=60)
def test_a_run_ends_with_a_true_certificate(run):
    X, y, beta, best = lasso_problem(run["seed"], n=run["n"], sparse_data=run["sparse_data"])
    shards = Shards.split(X, len(run["sizes"]), by=run["sizes"])
    cluster = cluster_of(
        shards.nodes, run["slow"], staleness=run["staleness"], latency=run["latency"]
    )
    how = {"tol": run["tol"], "atoms_per_round": run["atoms_per_round"]}
    result = solve(shards, y, L1Ball(beta), cluster=cluster, **how)
    assert_certified(result, X, y, beta, best, run["tol"])
    assert_sent_once(result)


@given(runs())
@settings(deadline=None, max_examples=15)
def test_a_run_can_be_replayed(run):
    X, y, beta, _ = lasso_problem(run["seed"], n=run["n"])
    shards = Shards.split(X, len(run["sizes"]), by=run["sizes"])
    cluster = cluster_of(shards.nodes, run["slow"], staleness=run["staleness"])
    one, two = (solve(shards, y, L1Ball(beta), cluster=cluster, tol=1e-3) for _ in range(2))
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.ledger.disclosures == two.ledger.disclosures
    assert one.ledger.by_link() == two.ledger.by_link()
    for column in ("objective", "gap", "atoms", "values", "bytes", "simulated_seconds"):
        np.testing.assert_array_equal(one.trace[column], two.trace[column])


@pytest.mark.parametrize("seed", range(3))
def test_nobody_waits_for_a_slow_node(seed):
    """With one of 8 nodes 10 times slower, a third of the synchronous time is enough."""
    X, y = regression(seed, d=200, n=3200, support=60)
    domain, shards = L1Ball(30.0), Shards.split(X, 8, random_state=seed)
    seconds = {}
    for asynchronous in (False, True):
        cluster = cluster_of(8, {7: 10.0}, asynchronous=asynchronous)
        result = solve(shards, y, domain, cluster=cluster, tol=1e-3)
        assert result.status == "optimal"
        assert result.gap == pytest.approx(true_gap(X, y, result.weights, 30.0), abs=1e-9 * (y @ y))
        seconds[asynchronous] = result.ledger.seconds
        assert result.trace.simulated_seconds[-1] == result.ledger.seconds
    assert seconds[True] <= seconds[False] / 3


def test_equal_nodes_lose_nothing():
    X, y = regression(1, d=100, n=800, support=30)
    shards, domain = Shards.split(X, 8), L1Ball(10.0)
    plain = solve(shards, y, domain, cluster=cluster_of(8, asynchronous=False), tol=1e-3)
    free = solve(shards, y, domain, cluster=cluster_of(8), tol=1e-3)
    assert free.ledger.seconds <= 1.5 * plain.ledger.seconds
    assert free.ledger.atoms_sent <= 2 * plain.ledger.atoms_sent


@pytest.mark.parametrize("slow", [{}, {0: 10.0}, {2: 30.0, 3: 5.0}])
def test_a_simplex(slow):
    X, y = mixture(3, d=25, n=80)
    result = solve(X, y, Simplex(), nodes=4, cluster=cluster_of(4, slow), tol=1e-8)
    assert result.status == "optimal"
    best, _ = optimum(X, y, Simplex())
    assert -1e-9 <= result.objective - best <= result.gap + 1e-9


def test_logistic_regression_and_boosting_are_as_good_as_in_step():
    X, y = make_classification(120, 40, n_informative=6, random_state=0)
    for model in (
        SparseLogisticRegression(beta=4.0, solver=Solver(tol=1e-4)),
        L1AdaBoost(solver=Solver(tol=1e-3)),
    ):
        results = [
            model.set_params(cluster=cluster).fit(X, y).result_
            for cluster in (LocalCluster(4), cluster_of(4, {1: 10.0}))
        ]
        assert [result.status for result in results] == ["optimal", "optimal"]
        lowest = max(result.objective - result.gap for result in results)
        assert all(result.objective >= lowest - 1e-12 for result in results)


def test_a_kernel_machine_is_as_good_as_in_step():
    X, y = make_classification(300, 10, n_informative=5, class_sep=0.7, random_state=1)
    how = {"solver": Solver(tol=1e-4)}
    plain = KernelSVC(cluster=LocalCluster(4), **how).fit(X, y).result_
    free = KernelSVC(cluster=cluster_of(4, {3: 10.0}), **how).fit(X, y).result_
    assert free.status == "optimal"
    assert abs(free.objective - plain.objective) <= max(free.gap, plain.gap)


def test_machines_for_numbers_and_of_several_classes_are_as_good_as_in_step():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(250)
    for model, target in (
        (KernelSVR(C=10.0, epsilon=0.1, gamma=0.2, tol=1e-5), y),
        (KernelSVC(C=10.0, gamma=0.2, tol=1e-5), np.digitize(X[:, 0], [-0.5, 0.5])),
    ):
        plain = model.set_params(cluster=LocalCluster(4)).fit(X, target).result_
        free = model.set_params(cluster=cluster_of(4, {3: 10.0})).fit(X, target).result_
        assert free.status == "optimal"
        assert free.rounds > 1
        assert free.objective == pytest.approx(plain.objective, rel=2e-5)


def test_a_path_with_warm_starts():
    X, y = regression(2, d=40, n=80)
    betas = [0.5, 1.0, 3.0]
    path = lasso_path(X, y, betas=betas, fit_intercept=False, cluster=cluster_of(4, {2: 10.0}))
    for beta, result in zip(betas, path.results, strict=True):
        best, _ = optimum(X, y, L1Ball(beta))
        assert_certified(result, X, y, beta, best, 1e-4)
    assert_sent_once(path.results[-1])


@pytest.mark.parametrize("staleness", [0, 2, 10])
@pytest.mark.parametrize("rounds", [0, 1, 4, 9, 15])
def test_a_run_that_is_cut_short_still_has_a_true_gap(rounds, staleness):
    X, y, beta, best = lasso_problem(5)
    cluster = cluster_of(4, {1: 10.0}, staleness=staleness)
    result = solve(X, y, L1Ball(beta), nodes=4, cluster=cluster, tol=1e-9, max_rounds=rounds)
    assert result.status == "max_rounds" or result.relative_gap <= 1e-9
    assert math.isfinite(result.gap)
    assert result.gap == pytest.approx(true_gap(X, y, result.weights, beta))
    assert result.objective - best <= result.gap


def test_a_perfect_fit():
    """The bound of the objective ends the run, before all nodes were heard."""
    X, y = regression(5, d=30, n=200)
    cluster = cluster_of(4, {1: 10.0}, staleness=1)
    result = solve(X, y, L1Ball(1000.0), nodes=4, cluster=cluster, tol=1e-3)
    assert result.status == "optimal"
    assert result.objective <= 1e-9 * (y @ y)


def test_a_callback_stops_the_run():
    X, y, beta, _ = lasso_problem(6)
    watch = [lambda state: state.round < 5]
    cluster = cluster_of(4, {1: 10.0})
    result = solve(X, y, L1Ball(beta), nodes=4, cluster=cluster, tol=1e-9, callbacks=watch)
    assert (result.status, result.rounds) == ("stopped", 5)
    assert result.gap == pytest.approx(true_gap(X, y, result.weights, beta))


def test_a_run_is_resumed(tmp_path):
    X, y, beta, best = lasso_problem(7)
    path, domain = tmp_path / "run.safetensors", L1Ball(beta)
    how = {"nodes": 4, "tol": 1e-6, "cluster": cluster_of(4, {1: 10.0})}
    solve(X, y, domain, max_rounds=5, callbacks=[Checkpoint(path, rounds=1)], **how)
    assert_certified(solve(X, y, domain, resume=path, **how), X, y, beta, best, 1e-6)


def test_values_on_the_ledger_are_those_of_the_messages():
    """Every node is told of every atom once, and every answer counts its proposals."""
    X, y, beta, _ = lasso_problem(8)
    result = solve(X, y, L1Ball(beta), nodes=4, cluster=cluster_of(4, {1: 10.0}), tol=1e-6)
    kinds, sent = result.ledger.by_kind(), result.ledger.atoms_sent
    values = sum(disclosure.values for disclosure in result.ledger.disclosures)
    assert kinds["atom"].values == 4 * values  # up from its owner, and down to the others
    assert kinds["index"].values >= 5 * sent  # the owner is told that it has won, then everybody
    assert kinds["control"].values == 0 < kinds["control"].bytes


def test_one_node_has_nobody_to_wait_for():
    X, y, beta, best = lasso_problem(9)
    result = solve(X, y, L1Ball(beta), cluster=cluster_of(1, {0: 2.0}), tol=1e-6)
    assert_certified(result, X, y, beta, best, 1e-6)
    assert result.ledger.seconds == pytest.approx((result.rounds + 1) * 2.0 * 1e-3 * X.shape[1])


# -- simulated time in step -----------------------------------------------------------------


@pytest.mark.parametrize("topology", ["star", "tree", "complete", nx.path_graph(3)])
def test_a_round_lasts_as_long_as_its_slowest_node(topology):
    # After a broadcast of its own atoms alone, a node need not wait: with this seed there is none.
    X, y, beta, _ = lasso_problem(11)
    shards, times = Shards.split(X, 3, by=[10, 20, 30]), {}
    for compute in (None, 0.5):
        faults = None if compute is None else Faults(slow={0: 8.0})
        cluster = LocalCluster(3, topology, latency=1.0, compute=compute, faults=faults)
        result = solve(shards, y, L1Ball(beta), cluster=cluster, tol=1e-6)
        times[compute] = np.array(result.ledger.seconds_by_round())
    slowest = 0.5 * max(8 * 10, 20, 30)
    extra = times[0.5] - times[None]
    assert np.all(extra <= slowest + 1e-9)
    # On a tree the messages of the other nodes are on their way meanwhile.
    assert np.all(extra >= slowest - 2.0 - 1e-9)
    if topology == "star":
        np.testing.assert_allclose(extra, slowest)


# -- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"topology": "tree"}, "asynchronous=True needs a coordinator"),
        ({"broadcast": "plain"}, "asynchronous=True needs a coordinator"),
        ({"staleness": -1}, "staleness must be a whole number >= 0"),
        ({"staleness": 1.5}, "staleness must be a whole number >= 0"),
        ({"compute": 0.0}, "compute must be a finite number > 0"),
        ({"faults": "slow"}, "faults must be a Faults object"),
        ({"faults": Faults(slow={4: 2.0})}, "faults name node 4, but there are 4 nodes"),
        ({"faults": Faults(loss=0.1)}, "more than slow nodes"),
    ],
)
def test_bad_clusters(how, message):
    with pytest.raises(ValueError, match=message):
        LocalCluster(4, **{"asynchronous": True} | how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"step": "classic"}, "step='classic' depends on the order"),
        ({"step": "away"}, 'use step="corrective"'),
        ({"selection": "random-subset"}, "leaves atoms out"),
        ({"selection": "balanced"}, "leaves atoms out"),
    ],
)
def test_runs_that_cannot_do_without_rounds(how, message):
    X, y, beta, _ = lasso_problem(11)
    with pytest.raises(ValueError, match=message):
        solve(X, y, L1Ball(beta), nodes=4, cluster=cluster_of(4), **how)
