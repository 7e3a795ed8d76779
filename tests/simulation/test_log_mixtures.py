"""Mixtures, and atoms for the root alone, over a network with faults, `recovery="log"`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast import Checkpoint, Faults, LocalCluster, Outage, Shards, Solver
from atomcast.cluster.mixing import mixers_of
from atomcast.cluster.node import Fleet
from atomcast.domains.balls import L1Ball
from atomcast.loop.replica import Replica
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.log_messages import Fetch
from atomcast.simulation.places import make_vertices, rooted
from atomcast.steps import STEPS
from problems import optimum, regression
from simulation.test_log_session import NETWORKS, faults_of_all_kinds, kept_session

X, Y = regression(seed=3, d=30, n=90, support=50)
BETA = 12.0
BOTH = ("compound", "auto")


def solve(cluster, step, tol=1e-6, **how):
    problem = explicit_problem(SquaredError(Y), L1Ball(BETA))
    return Solver(step, tol=tol, **how).solve(problem, Shards.split(X, cluster.nodes), cluster)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("step", BOTH)
def test_without_faults_nothing_differs_but_what_the_log_needs(network, step):
    how = NETWORKS[network](5)
    plain, logged = (solve(LocalCluster(**how, faults=faults), step) for faults in (None, Faults()))
    np.testing.assert_array_equal(logged.weights, plain.weights)
    np.testing.assert_array_equal(logged.trace.objective, plain.trace.objective)
    assert logged.ledger.told == plain.ledger.told
    assert logged.ledger.disclosures == plain.ledger.disclosures
    mine, theirs = logged.ledger.by_kind(), plain.ledger.by_kind()
    for kind in ("mixture", "atom", "repair"):
        assert (mine[kind].values, mine[kind].bytes) == (theirs[kind].values, theirs[kind].bytes)
    # An entry of the log has the shares of all nodes, for anybody may have to repeat it.
    edges, shares = mine["image"].messages // plain.rounds, 5 * 8 if step == "compound" else 0
    assert mine["image"].values <= plain.rounds * edges * (30 + shares)


@given(
    network=st.sampled_from(list(NETWORKS)),
    nodes=st.integers(3, 6),
    step=st.sampled_from(BOTH),
    faults=faults_of_all_kinds,
)
@settings(max_examples=20, deadline=None)
def test_the_gap_is_true_and_a_node_that_has_the_log_has_its_weights(network, nodes, step, faults):
    with pytest.MonkeyPatch.context() as monkeypatch:
        opened = kept_session(monkeypatch)
        result = solve(LocalCluster(**NETWORKS[network](nodes), faults=faults), step)
    ((session, replica),) = opened
    best, _ = optimum(X, Y, L1Ball(BETA))
    assert result.status == "optimal"
    assert np.abs(result.weights).sum() <= BETA * (1 + 1e-9)
    assert result.objective == pytest.approx(np.sum((Y - X @ result.weights) ** 2), rel=1e-7)
    assert best * (1 - 1e-6) <= result.objective <= best + result.gap + 1e-6 * best
    finite = np.isfinite(result.trace.gap)
    assert np.all((result.trace.objective - result.trace.gap)[finite] <= best * (1 + 1e-6))
    head = session.simulator.root.log
    for vertex in session.simulator.vertices:
        assert all(a is b for a, b in zip(vertex.log, head, strict=False))
    # A node that has forgotten everything but its atoms takes part again from the log alone.
    for fleet in replayed(head, session, replica, step) if step == "compound" else ():
        (mixer,) = mixers_of(fleet[0], fleet[1])
        ids, weights = mixer.weights(fleet[1].active)
        np.testing.assert_allclose(weights, result.weights[ids], rtol=0, atol=1e-7)


def replayed(log, session, replica, step):
    """Every node with what it knows once it has gone through the log with its atoms alone."""
    shards = Shards.split(X, session.nodes)
    for i in range(session.nodes):
        fresh = Replica(replica.problem, STEPS[step]("auto", False), replica.tol)
        shard = shards.shard(i)
        atoms = replica.problem.make_atoms(shard)
        fleet = Fleet(atoms, shard.ids, np.full(len(shard.ids), i), session.nodes)
        for entry in log:
            if entry.final:
                continue
            if entry.senders >> i & 1:
                fleet.propose(fresh, fresh.request())
                (mixer,) = mixers_of(fleet, fresh)
                assert mixer.said(fresh, entry.agreement.best)
            fresh.advance(entry.agreement, entry.atoms)
        np.testing.assert_array_equal(fresh.active.image, replica.active.image)
        yield fleet, fresh


def test_a_node_that_is_behind_is_not_believed_to_know_its_mixture():
    root, *others = make_vertices(rooted(LocalCluster(3, topology="tree").network()))
    owner = others[0]
    number = owner.place.number
    fetch = Fetch(root.place.number, number, number, 0, (-1,))
    owner.start()
    assert owner.on_message(fetch)
    owner.restart()  # it has died, and asks for the log
    assert owner.on_message(fetch) == []


@pytest.mark.parametrize("step", BOTH)
def test_a_run_with_faults_goes_on_from_a_checkpoint(step, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    cluster = LocalCluster(5, faults=Faults(loss=0.2, outages=[Outage(3, 1, 4)], seed=1))
    part = solve(cluster, step, max_rounds=3, callbacks=[Checkpoint(path)])
    resumed = solve(cluster, step, resume=path)
    whole = solve(LocalCluster(5), step)
    assert resumed.status == "optimal"
    assert resumed.rounds >= part.rounds
    assert resumed.objective == pytest.approx(whole.objective, rel=2e-6)
