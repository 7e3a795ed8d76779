"""Runs in which no more atoms are sent than are of use together: same models, true accounts."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast import (
    KernelSVC,
    Lasso,
    LocalCluster,
    MultipleKernelClassifier,
    Shards,
    Solver,
    SparseLogisticRegression,
    StructuredSVM,
)
from atomcast.network.faults import Faults
from atomcast.storage.checkpoint import Checkpoint
from certificates import assert_certified, assert_sent_once, lasso_problem
from problems import regression

FACTORS = 5


def alike(seed=0, d=40, n=400):
    """Few rows, and columns that a few factors explain for the most part."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, FACTORS)) @ rng.standard_normal((FACTORS, n))
    X += rng.standard_normal((d, n))
    return X, X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(d)


def lasso(X, y, cluster=None, beta=3.0, **how):
    return Lasso(beta, cluster=cluster, solver=Solver(thin=True, **how)).fit(X, y).result_


def sent(result):
    return [(one.round, one.atom) for one in result.ledger.disclosures]


# -- the same model -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    nodes=st.integers(1, 9),
    topology=st.sampled_from(["star", "tree", "complete", nx.cycle_graph]),
    sparse_data=st.booleans(),
)
def test_certificates_are_true(seed, nodes, topology, sparse_data):
    X, y, beta, best = lasso_problem(seed, sparse_data=sparse_data)
    nodes, topology = (nodes, topology) if isinstance(topology, str) else (3, topology(3))
    solver = Solver(thin=True, tol=1e-6)
    cluster = LocalCluster(nodes, topology)
    result = Lasso(beta, fit_intercept=False, cluster=cluster, solver=solver).fit(X, y).result_
    assert_certified(result, X, y, beta, best, 1e-6)
    assert_sent_once(result)


def test_where_a_root_looks_the_partition_and_the_network_do_not_matter():
    X, y = alike()
    star, tree = (lasso(X, y, LocalCluster(7, topology)) for topology in ("star", "tree"))
    assert sent(star) == sent(tree)
    other, alone = lasso(X, y, 31), lasso(X, y, 1)
    assert [one[1] for one in sent(star)] == [one[1] for one in sent(other)]
    for result in (tree, other, alone):
        np.testing.assert_allclose(result.weights, star.weights, atol=1e-9)
        assert result.rounds == star.rounds
    assert not alone.ledger.told
    assert not alone.ledger.values


@pytest.mark.parametrize(
    "model",
    [
        lambda **how: SparseLogisticRegression(4.0, **how),
        lambda **how: KernelSVC(C=10.0, gamma=0.02, **how),
    ],
    ids=["logistic", "kernel SVM"],
)
def test_other_models(model):
    X, y = alike(d=60, n=100)
    y = np.where(y > np.median(y), 1, -1)
    plain, thinned = (
        model(cluster=5, solver=Solver(thin=thin, tol=1e-5)).fit(X, y).result_
        for thin in (False, True)
    )
    assert plain.status == thinned.status == "optimal"
    assert thinned.objective == pytest.approx(plain.objective, rel=2e-5)
    assert thinned.ledger.atoms_sent <= plain.ledger.atoms_sent


@pytest.mark.parametrize("model", [StructuredSVM, MultipleKernelClassifier])
def test_what_changes_from_round_to_round_is_not_compared(model):
    """Sums of corners have no owner, and directions are others in every round."""
    X, y = alike(d=40, n=12)
    plain, asked = (
        model(C=1.0, cluster=2, solver=Solver(thin=thin, tol=1e-2)).fit(X, y > 0).result_
        for thin in (False, True)
    )
    assert asked.rounds == plain.rounds > 0
    assert asked.objective == plain.objective
    assert not any(one.kind == "candidate" for one in asked.ledger.told)


@pytest.mark.parametrize(
    "cluster",
    [
        LocalCluster(4, "complete"),
        LocalCluster(4, faults=Faults(loss=0.2, seed=1)),
        LocalCluster(4, asynchronous=True, compute=1e-6),
    ],
    ids=["complete", "losses", "asynchronous"],
)
def test_elsewhere_each_node_looks_at_its_own(cluster):
    X, y = alike(1)
    result = lasso(X, y, cluster)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(lasso(X, y, 4).objective, rel=2e-4)
    assert all(one.kind == "target" for one in result.ledger.told)


def test_a_node_leaves_out_what_its_own_atoms_make_superfluous():
    """Ten copies of each column, all on one node: one of them is enough."""
    X, y = regression(seed=2, d=30, n=20)
    copies = Shards.split(np.repeat(X, 10, axis=1), 4, by="contiguous")
    cluster = LocalCluster(4, "complete")
    plain = Lasso(3.0, cluster=cluster).fit(copies, y).result_
    result = Lasso(3.0, cluster=cluster, solver=Solver(thin=True)).fit(copies, y).result_
    assert result.objective == pytest.approx(plain.objective, rel=2e-4)
    assert result.ledger.atoms_sent < 0.5 * plain.ledger.atoms_sent


# -- fewer atoms --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_nearly_as_few_atoms_as_one_at_a_time_in_far_fewer_rounds(seed):
    X, y = alike(seed, d=60, n=1000)
    one = Lasso(4.0, cluster=20, solver=Solver(atoms_per_round=1)).fit(X, y).result_
    plain = Lasso(4.0, cluster=20).fit(X, y).result_
    result = lasso(X, y, 20, beta=4.0)
    assert result.ledger.atoms_sent <= 1.2 * one.ledger.atoms_sent
    assert result.ledger.atoms_sent < plain.ledger.atoms_sent
    assert result.rounds <= 0.4 * one.rounds


def test_hardly_an_atom_in_vain_where_the_curvature_changes():
    """Single runs may have more; usual batches send twice as many as are used."""
    told, used = 0, 0
    for seed in range(4):
        X, y = alike(seed, d=60, n=1000)
        solver = Solver(thin=True)
        result = SparseLogisticRegression(3.0, cluster=20, solver=solver).fit(X, y > 0).result_
        assert result.status == "optimal"
        told, used = told + result.ledger.atoms_sent, used + len(result.atom_ids)
    assert told <= 1.3 * used


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_hardly_an_example_in_vain_for_several_machines(C):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.standard_normal((300, 5)) + 2.0 * np.eye(5)[y]
    plain, thinned = (
        KernelSVC(C, gamma=0.05, cluster=20, solver=Solver(thin=thin, tol=1e-3)).fit(X, y)
        for thin in (False, True)
    )
    used, ledger = len(thinned.support_), thinned.result_.ledger
    assert thinned.result_.status == "optimal"
    assert thinned.result_.objective == pytest.approx(plain.result_.objective, rel=2e-3)
    assert ledger.atoms_sent <= 1.15 * used
    assert ledger.atoms_sent < plain.result_.ledger.atoms_sent


# -- the account --------------------------------------------------------------------------------


@pytest.mark.parametrize("topology", ["star", "tree"])
def test_candidates_cross_the_edges_to_the_root_and_atoms_the_others(topology):
    X, y = alike(3)
    N, d = 7, len(X)
    cluster = LocalCluster(N, topology)
    ledger = lasso(X, y, cluster).ledger
    network = cluster.network()
    depth, edges = network.depth, len(network.links.source) // 2
    candidates = [one for one in ledger.told if one.kind == "candidate"]
    atoms = ledger.disclosures
    assert {one.atom for one in atoms} < {one.atom for one in candidates}
    assert len({one.atom for one in candidates}) == len(candidates)
    up = sum(int(depth[one.node]) for one in candidates)
    down = sum(edges - int(depth[one.node]) for one in atoms)
    kinds = ledger.by_kind()
    assert kinds["candidate"].values == d * up
    assert kinds["atom"].values == d * down
    assert all(one.values == d for one in candidates)


def test_a_round_on_a_star_costs_what_the_formula_says():
    X, y = alike(4)
    N, d = 4, len(X)
    result = lasso(X, y, N, atoms_per_round=2, max_rounds=1)
    first = result.ledger.by_round()[0]
    candidates = sum(one.kind == "candidate" and not one.round for one in result.ledger.told)
    winners = result.ledger.atoms_sent
    # Up: as many pairs as candidates from every node, which has so many atoms, and the candidates.
    # Down: the best merit, which are asked for, and score, index and values of the winners.
    assert candidates == 2 * 2 + 80
    up = N * 2 * candidates + d * candidates
    down = N + candidates + winners * (2 * N + d * (N - 1))
    assert first.values == up + down


def test_candidates_are_in_the_account_with_node_and_round():
    X, y = alike(3)
    result = lasso(X, y, 4)
    shown = [one for one in result.ledger.told if one.kind == "candidate"]
    assert all(one.round >= 0 and 0 <= one.node < 4 for one in shown)
    assert len(result.ledger.told) == len(shown) + 1  # the target


# -- interruptions ------------------------------------------------------------------------------


def test_a_run_is_resumed_to_the_same_model(tmp_path):
    X, y = alike(5)
    whole = lasso(X, y, 6, tol=1e-8)
    path = tmp_path / "run"
    lasso(X, y, 6, tol=1e-8, max_rounds=3, callbacks=[Checkpoint(path)])
    resumed = lasso(X, y, 6, tol=1e-8, resume=path)
    assert resumed.rounds == whole.rounds
    np.testing.assert_allclose(resumed.weights, whole.weights, atol=1e-9)


def test_thin_is_true_or_false():
    with pytest.raises(ValueError, match="thin must be True or False, got 'yes'"):
        Solver(thin="yes")
