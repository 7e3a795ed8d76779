"""Selections: what they leave out, what that costs, and how it is reported."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from atomcast import KernelSVC, Lasso, LocalCluster, MCenters, RandomSubset, Shards, Solver
from atomcast.atoms.explicit import DenseAtoms
from atomcast.messages.proposals import random_order
from atomcast.objectives import SquaredError
from atomcast.selection.choosers import amounts
from atomcast.selection.m_centers import GreedyCenters


def regression(n=60, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((20, n)) * (rng.random((20, n)) < 0.7)
    return A, A[:, :5] @ rng.standard_normal(5) + 0.1 * rng.standard_normal(20)


def l1_distances(A):
    return np.abs(A[:, :, None] - A[:, None, :]).sum(axis=0)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 12), st.integers(1, 4), st.integers(0, 1000))
def test_greedy_centers_are_within_twice_the_best_radius(n, m, seed):
    A = np.random.default_rng(seed).standard_normal((3, n))
    greedy = GreedyCenters(DenseAtoms(A).space(), np.arange(n))
    greedy.grow(m)
    D = l1_distances(A)
    best = min(
        D[list(chosen)].min(axis=0).max() for chosen in itertools.combinations(range(n), min(m, n))
    )
    assert greedy.radius == pytest.approx(D[greedy.centers].min(axis=0).max(), abs=1e-12)
    assert greedy.radius <= 2 * best + 1e-12


def test_centers_never_leave_and_the_radius_never_grows():
    A, _ = regression()
    greedy = GreedyCenters(DenseAtoms(A).space(), np.arange(10, 50))
    radii, before = [], []
    for m in (1, 2, 5, 20, 40, 90):
        greedy.grow(m)
        assert greedy.centers[: len(before)] == before
        before = list(greedy.centers)
        radii.append(greedy.radius)
    assert len(set(before)) == 40
    assert np.all(np.diff(radii) <= 0)
    assert radii[-1] == 0.0


def test_loss_of_a_proposal_is_within_lemma_1():
    """A center promises at most r G less than the best atom, G the largest partial derivative."""
    A, y = regression(n=300)
    atoms, objective = DenseAtoms(A), SquaredError(y)
    rng = np.random.default_rng(1)
    for m in (5, 30, 120):
        greedy = GreedyCenters(atoms.space(), np.arange(300))
        greedy.grow(m)
        for _ in range(20):
            alpha = rng.standard_normal(300)
            gradient = objective.gradient(A @ (alpha / np.abs(alpha).sum()))
            scores = np.abs(A.T @ gradient)
            loss = scores.max() - scores[greedy.centers].max()
            assert 0 <= loss <= greedy.radius * np.abs(gradient).max() + 1e-12


@pytest.mark.parametrize("classes", [2, 3])
def test_loss_of_a_proposal_in_kernel_space(classes):
    """By Cauchy-Schwarz a center promises at most 2 r ||phi(alpha)|| less than the best atom."""
    X, y = make_classification(
        300, 8, n_informative=5, n_classes=classes, class_sep=0.5, random_state=0
    )
    losses = []

    def watch(state):
        active = state.replica.active
        if not state.replica.feasible:
            return
        signs = np.where(y[:, None] == y, 1.0, -1.0 / (classes - 1))
        squares = ((X[:, None] - X) ** 2).sum(axis=2)
        K = signs * (np.exp(-0.05 * squares) + 1) + np.eye(300)
        weights = np.zeros(300)
        weights[active.ids] = active.weights
        scores = 2 * K @ weights
        proposed = state.objective * 2 - state.gap  # the best score among the centers
        bound = 2 * max(state.replica.radius.values()) * np.sqrt(weights @ K @ weights)
        losses.append(proposed - scores.min())
        assert -1e-9 <= losses[-1] <= bound + 1e-9

    solver = Solver("classic", selection=MCenters(m=15), callbacks=[watch], max_rounds=30, tol=1e-9)
    with pytest.warns(ConvergenceWarning):
        KernelSVC(gamma=0.05, cluster=4, solver=solver).fit(X, y)
    assert max(losses) > 0


def test_amounts():
    sizes = np.array([10, 40, 0, 25])
    np.testing.assert_array_equal(amounts(12, None, sizes, 0), [10, 12, 0, 12])
    np.testing.assert_array_equal(amounts(0.5, None, sizes, 0), [5, 20, 0, 13])
    np.testing.assert_array_equal(amounts([1, 2, 3, 4], None, sizes, 0), [1, 2, 0, 4])
    np.testing.assert_array_equal(amounts(lambda k: 3 + k, None, sizes, 7), [10, 10, 0, 10])
    by_node = amounts(lambda node, k: 1 + node + k, None, sizes, 2)
    np.testing.assert_array_equal(by_node, [3, 4, 0, 6])
    with pytest.raises(ValueError, match="m must be"):
        amounts(lambda node, k: -1, None, sizes, 2)
    np.testing.assert_array_equal(amounts("equal-work", None, sizes, 0), [10, 10, 0, 10])
    speeds = [1.0, 8.0, 1.0, 2.0]
    np.testing.assert_array_equal(amounts("equal-work", speeds, sizes, 0), [5, 40, 0, 10])


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("rule", [MCenters, RandomSubset])
def test_only_chosen_atoms_are_sent_and_the_gap_is_the_true_one(rule, isolated):
    A, y = regression(n=80)
    sizes = (50, 10, 10, 10)
    shards = Shards.split(A, 4, by=sizes)
    cluster = LocalCluster(4, isolated=isolated)
    model = Lasso(
        beta=2.0, fit_intercept=False, cluster=cluster, solver=Solver(selection=rule(), tol=1e-6)
    ).fit(shards, y)
    result = model.result_
    first = [d.atom for d in result.ledger.disclosures if d.atom < 50]
    if rule is MCenters:
        greedy = GreedyCenters(DenseAtoms(A).space(), np.arange(50))
        greedy.grow(10)
        assert set(first) <= set(greedy.centers)
        assert result.radius[0] == pytest.approx(greedy.radius)
        assert result.radius[1] == 0.0
    scores = A.T @ (2 * (A @ model.coef_ - y))
    gap = model.coef_ @ scores + 2.0 * np.abs(scores).max()
    assert result.gap == pytest.approx(gap, rel=1e-6)
    assert result.status == "stopped"
    assert result.relative_gap > 1e-6


def test_a_selection_of_everything_is_exact():
    A, y = regression(n=40)
    exact = Lasso(beta=2.0, cluster=3, solver=Solver(tol=1e-8)).fit(A, y)
    all_in = Lasso(beta=2.0, cluster=3, solver=Solver(selection=MCenters(m=1.0), tol=1e-8)).fit(
        A, y
    )
    assert all_in.result_.status == "optimal"
    np.testing.assert_allclose(all_in.coef_, exact.coef_, atol=1e-9)


def test_growing_centers_reach_the_optimum():
    X, y = make_classification(200, 6, class_sep=0.5, random_state=0)
    few = Solver(selection=MCenters(m=10), tol=1e-4)
    growing = Solver(selection=MCenters(m=lambda round: 10 + 15 * round), tol=1e-4)
    exact = KernelSVC(gamma=0.1, cluster=4).fit(X, y).result_.objective
    restricted = KernelSVC(gamma=0.1, cluster=4, solver=few).fit(X, y).result_
    grown = KernelSVC(gamma=0.1, cluster=4, solver=growing).fit(X, y).result_
    assert restricted.objective > grown.objective
    assert grown.objective == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("selection", ["random-violators", "per-node"])
def test_other_orders_reach_the_same_optimum(selection):
    X, y = make_classification(300, 6, class_sep=0.5, random_state=0)
    exact = KernelSVC(gamma=0.1, cluster=4, solver=Solver(tol=1e-6)).fit(X, y).result_
    solver = Solver(selection=selection, tol=1e-6, atoms_per_round=20)
    other = KernelSVC(gamma=0.1, cluster=4, solver=solver).fit(X, y).result_
    assert other.status == "optimal"
    assert other.objective == pytest.approx(exact.objective, rel=1e-6)
    if selection == "per-node":
        per_round = {}
        for d in other.ledger.disclosures:
            if d.round:
                per_round.setdefault((d.round, d.node), []).append(d.atom)
        assert max(len(atoms) for atoms in per_round.values()) <= 5


def test_random_order_depends_on_id_and_round_alone():
    ids = np.arange(1000)
    order = random_order(ids, 3)
    np.testing.assert_array_equal(random_order(ids[500:], 3), order[500:])
    assert not np.array_equal(random_order(ids, 4), order)
    assert len(np.unique(order)) == 1000
    assert 0 <= order.min() < 0.02
    assert 0.98 < order.max() < 1
    assert abs(np.corrcoef(order, random_order(ids, 4))[0, 1]) < 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Solver(selection="best"),
        lambda: MCenters(m=0),
        lambda: MCenters(m=1.5),
        lambda: RandomSubset(m="half"),
        lambda: RandomSubset(speeds=[1.0, 0.0]),
    ],
)
def test_bad_selections_are_named(make):
    with pytest.raises(ValueError, match=r"selection|m |m=|speeds"):
        make()
