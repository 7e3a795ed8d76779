"""Slow nodes that score fewer atoms: rounds of equal length, and the same certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast import Balanced, Checkpoint, Faults, LocalCluster, MCenters, Shards
from atomcast.cluster.validation import refuse_balanced
from atomcast.domains.balls import L1Ball
from atomcast.loop.replica import Replica, Tolerance
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.steps import STEPS as RULES
from certificates import assert_certified, assert_sent_once, lasso_problem
from problems import STEPS, regression, solve


def cluster_of(nodes, slow=None, **how):
    return LocalCluster(nodes, compute=1e-3, faults=Faults(slow=slow or {}), **how)


@pytest.mark.parametrize("base", ["random-subset", "m-centers"])
@pytest.mark.parametrize("isolated", [False, True])
@given(
    seed=st.integers(0, 1000),
    slow=st.dictionaries(st.integers(0, 4), st.floats(0.5, 20.0)),
    sizes=st.permutations([0, 5, 10, 20, 25]),
    sparse_data=st.booleans(),
)
@settings(deadline=None, max_examples=10)
def test_a_run_ends_with_a_true_certificate(base, isolated, seed, slow, sizes, sparse_data):
    X, y, beta, best = lasso_problem(seed, n=60, sparse_data=sparse_data)
    shards = Shards.split(X, 5, by=list(sizes))
    how = {"cluster": cluster_of(5, slow, isolated=isolated), "selection": Balanced(base, seed)}
    result = solve(shards, y, L1Ball(beta), tol=1e-4, **how)
    assert_certified(result, X, y, beta, best, 1e-4)
    assert_sent_once(result)


@pytest.mark.parametrize("base", ["random-subset", "m-centers"])
def test_a_round_takes_as_long_as_that_of_equal_nodes(base):
    X, y = regression(1, d=100, n=1600, support=30)
    shards, domain = Shards.split(X, 8, by="contiguous"), L1Ball(15.0)

    def rounds(slow, selection):
        cluster = cluster_of(8, slow)
        result = solve(shards, y, domain, cluster=cluster, tol=1e-3, selection=selection)
        assert result.status == "optimal"
        return np.array(result.ledger.seconds_by_round())

    alone = 1e-3 * 1600 / 8
    np.testing.assert_allclose(rounds({}, "exact"), alone)
    np.testing.assert_allclose(rounds({7: 10.0}, "exact"), 10 * alone)
    times = rounds({7: 10.0}, Balanced(base))
    assert times[0] == pytest.approx(10 * alone)  # where the speeds are measured
    # The atoms that the slow node has sent already are scored beside its part of the others.
    assert np.median(times) <= 1.5 * alone
    assert times.mean() <= rounds({7: 10.0}, "exact").mean() / 2


def test_equal_nodes_do_as_with_an_exact_selection():
    X, y = regression(2, d=50, n=200, support=10)
    shards, how = Shards.split(X, 4, by="contiguous"), {"tol": 1e-6}
    one, two = (
        solve(shards, y, L1Ball(5.0), cluster=LocalCluster(4), selection=selection, **how)
        for selection in ("exact", "balanced")
    )
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.trace.gap, two.trace.gap)


@pytest.mark.parametrize("step", STEPS)
def test_every_step(step):
    X, y, beta, best = lasso_problem(3)
    tol = 0.1 if step in ("classic", "line-search") else 1e-3
    how = {"cluster": cluster_of(4, {1: 5.0}), "selection": "balanced", "tol": tol}
    result = solve(X, y, L1Ball(beta), nodes=4, step=step, max_rounds=3000, **how)
    assert_certified(result, X, y, beta, best, tol)


def test_a_run_can_be_replayed():
    X, y, beta, _ = lasso_problem(4)
    how = {"nodes": 4, "cluster": cluster_of(4, {1: 5.0}), "selection": "balanced"}
    one, two = (solve(X, y, L1Ball(beta), **how) for _ in range(2))
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.ledger.disclosures == two.ledger.disclosures
    assert one.ledger.seconds == two.ledger.seconds


@pytest.mark.parametrize("base", ["random-subset", "m-centers"])
@pytest.mark.parametrize("step", ["corrective", "line-search"])
def test_a_resumed_run_knows_the_stated_pace(base, step, tmp_path):
    X, y, beta, _ = lasso_problem(4)
    how = {"nodes": 4, "cluster": cluster_of(4, {1: 5.0}), "selection": Balanced(base)}
    how |= {"step": step, "tol": 1e-6}
    whole = solve(X, y, L1Ball(beta), max_rounds=12, **how)
    assert not np.all(np.isfinite(whole.trace.gap))  # some rounds left atoms out
    for stop in range(whole.rounds):
        path = tmp_path / f"{stop}.safetensors"
        keep = Checkpoint(path, rounds=1)
        solve(X, y, L1Ball(beta), max_rounds=stop, callbacks=[keep], **how)
        resumed = solve(X, y, L1Ball(beta), max_rounds=12, resume=path, **how)
        assert (resumed.rounds, resumed.status) == (whole.rounds, whole.status)
        np.testing.assert_allclose(resumed.weights, whole.weights, atol=1e-9 * beta)
        np.testing.assert_allclose(resumed.trace.gap, whole.trace.gap[stop:], rtol=1e-6, atol=1e-9)


def test_speeds_that_are_measured_by_the_clock():
    """How long a real node takes differs from run to run; what it certifies must not."""
    X, y, beta, best = lasso_problem(5)
    cluster = LocalCluster(4, isolated=True)
    result = solve(X, y, L1Ball(beta), nodes=4, cluster=cluster, selection="balanced", tol=1e-6)
    assert_certified(result, X, y, beta, best, 1e-6)


def test_bad_input():
    with pytest.raises(ValueError, match="base must be one of 'random-subset', 'm-centers'"):
        Balanced("exact")
    with pytest.raises(ValueError, match="seed must be a whole number >= 0"):
        Balanced(seed=-1)


def test_other_clusters_refuse():
    problem = explicit_problem(SquaredError(np.ones(3)), L1Ball(1.0))
    step = RULES["corrective"]("auto")
    with pytest.raises(ValueError, match="which only LocalCluster does"):
        refuse_balanced(Replica(problem, step, Tolerance(1e-4), Balanced()))
    refuse_balanced(Replica(problem, step, Tolerance(1e-4), MCenters(m=3)))


@pytest.mark.parametrize("recovery", ["log", "none"])
def test_networks_with_faults_refuse(recovery):
    X, y = regression(0, d=20, n=30)
    cluster = LocalCluster(3, faults=Faults(loss=0.1), recovery=recovery)
    with pytest.raises(ValueError, match=r"selection=Balanced\(.*compute=1e-3"):
        solve(X, y, L1Ball(1.0), nodes=3, cluster=cluster, step="classic", selection="balanced")
