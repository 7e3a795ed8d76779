"""Mixtures of every node's own atoms, and the best combination of them."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from atomcast import (
    Checkpoint,
    Faults,
    GroupLasso,
    Lasso,
    LocalCluster,
    MPICluster,
    Shards,
    Solver,
    SparseLogisticRegression,
    lasso_path,
)
from atomcast.data.generators import make_sparse_regression
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.objectives import Multinomial, SquaredError
from atomcast.steps import Compound
from atomcast.steps.inner.cone import Cones, Norms
from atomcast.steps.inner.interior_point import minimise_in_ball
from problems import optimum, regression, solve, sparse_regression

BOTH = ("compound", "auto")


def dense_fit(step="compound", nodes=5, **how):
    """A Lasso whose solution has as many features as there are rows."""
    X, y = regression(seed=3, d=60, n=200, support=100)
    cluster = how.pop("cluster", LocalCluster(nodes))
    return Lasso(20.0, cluster=cluster, solver=Solver(step=step, **how)).fit(X, y)


# -- the certificate ------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    step=st.sampled_from(["compound", "auto"]),
    seed=st.integers(0, 10**6),
    d=st.integers(2, 12),
    n=st.integers(1, 20),
    nodes=st.integers(1, 6),
    beta=st.sampled_from([0.01, 0.5, 2.0, 20.0]),
    rounds=st.integers(1, 8),
    fit_intercept=st.booleans(),
)
def test_the_gap_bounds_the_distance_to_the_optimum(
    step, seed, d, n, nodes, beta, rounds, fit_intercept
):
    X, y = regression(seed, d, n)
    domain = L1Ball(beta)
    how = {"step": step, "tol": 1e-6, "max_rounds": rounds}
    result = solve(X, y, domain, nodes=nodes, fit_intercept=fit_intercept, **how)
    residual = y - X @ result.weights
    residual = residual - residual.mean() * fit_intercept
    unit = float(y @ y)
    assert np.abs(result.weights).sum() <= beta * (1 + 1e-9)
    assert result.objective == pytest.approx(residual @ residual, rel=1e-7, abs=1e-9 * unit)
    best, _ = optimum(X, y, domain, fit_intercept)
    assert result.objective >= best - 1e-7 * unit
    assert result.gap >= result.objective - best - 1e-9 * unit


@pytest.mark.parametrize("nodes", [1, 2, 7, 200])
@pytest.mark.parametrize("topology", ["star", "tree"])
@pytest.mark.parametrize("step", BOTH)
def test_the_same_model_for_any_partition_and_topology(step, nodes, topology):
    reference = dense_fit("corrective", tol=1e-9)
    model = dense_fit(step, cluster=LocalCluster(nodes, topology=topology), tol=1e-6)
    assert model.result_.status == "optimal"
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-3)


@pytest.mark.parametrize("step", BOTH)
def test_sparse_data_and_a_shard_for_each_node(step):
    X, y = sparse_regression(seed=1)
    together, apart = (
        Lasso(5.0, cluster=LocalCluster(4, isolated=isolated), solver=step).fit(X, y)
        for isolated in (False, True)
    )
    np.testing.assert_allclose(together.coef_, apart.coef_, atol=1e-9)
    assert together.result_.ledger.total == apart.result_.ledger.total


# -- other losses and balls -----------------------------------------------------------------


@pytest.mark.parametrize("step", BOTH)
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_losses(classes, step):
    X, y = regression(seed=4, d=90, n=40, support=10)
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    one, other = (
        SparseLogisticRegression(4.0, cluster=4, solver=Solver(step=this, tol=1e-7)).fit(X, labels)
        for this in (step, "corrective")
    )
    assert one.result_.status == "optimal"
    assert one.result_.objective == pytest.approx(other.result_.objective, rel=2e-7)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)


@pytest.mark.parametrize("step", BOTH)
def test_groups(step):
    X, y = regression(seed=5, d=60, n=80, support=20)
    groups = [list(range(j, j + 4)) for j in range(0, 80, 4)]
    shards = Shards.split(X, 5, by=[16] * 5)
    one, other = (
        GroupLasso(6.0, groups=groups, cluster=5, solver=Solver(step=this, tol=1e-8)).fit(shards, y)
        for this in (step, "corrective")
    )
    assert one.result_.status == "optimal"
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)
    assert np.array_equal(one.coef_ != 0, other.coef_ != 0)


# -- what is sent ---------------------------------------------------------------------------


def test_every_value_is_on_the_ledger():
    result = dense_fit(nodes=5, tol=1e-4).result_
    kinds, rounds = result.ledger.by_kind(), result.rounds
    assert result.ledger.disclosures == []
    mixtures = [one for one in result.ledger.told if one.kind == "mixture"]
    assert {one.node for one in mixtures} == set(range(5))
    assert kinds["mixture"].values == sum(one.values for one in mixtures)
    assert kinds["image"].values == rounds * 5 * (60 + 8)
    assert kinds["atom"].values == 0
    # A mixture of some features is an image and their weights.
    assert all(one.values == 60 + int(one.name.split()[-1]) for one in mixtures)


def test_no_mixture_of_few_features_is_sent():
    X, y = regression(seed=3, d=60, n=200, support=100)
    solver = Solver(step="compound", min_mixture=6)
    result = Lasso(20.0, cluster=5, solver=solver).fit(X, y).result_
    mixed = [int(one.name.split()[-1]) for one in result.ledger.told if one.kind == "mixture"]
    assert min(mixed) >= 6
    assert dense_fit(tol=1e-4).result_.objective <= result.objective * (1 + 1e-4)
    with pytest.raises(ValueError, match="compound"):
        Solver(step="corrective", min_mixture=6)


def test_where_nobody_may_send_its_mixture_the_run_stops_at_zero():
    result = dense_fit(min_mixture=1000).result_
    assert (result.status, result.gap > 0.0, np.any(result.weights)) == ("stopped", True, False)


@pytest.mark.parametrize("reveal", ["always", "never"])
def test_a_warm_start_sends_no_single_feature(reveal):
    X, y = regression(seed=3, d=60, n=200, support=100)
    solver = Solver(step="compound", tol=1e-6, reveal=reveal)
    model = Lasso(20.0, warm_start=True, cluster=5, solver=solver).fit(X, y)
    cold = model.result_
    warm = model.fit(X, y).result_
    assert warm.ledger.disclosures == []
    assert warm.rounds < 0.5 * cold.rounds
    smaller = model.set_params(beta=15.0).fit(X, y).result_
    assert np.abs(smaller.weights).sum() <= 15.0 * (1 + 1e-9)
    assert smaller.status == warm.status == "optimal"


def test_on_a_tree_mixtures_are_passed_on_and_the_answer_comes_down_once():
    star, tree = (
        dense_fit(cluster=LocalCluster(7, topology=topology), tol=1e-4).result_
        for topology in ("star", "tree")
    )
    assert star.rounds == tree.rounds
    # Node 0 is the root; 1 and 2 are one hop away, the others two.
    sent = dict.fromkeys(range(7), 0)
    for one in tree.ledger.told:
        if one.kind == "mixture":
            sent[one.node] += one.values
    hops = np.array([0, 1, 1, 2, 2, 2, 2])
    assert tree.ledger.by_kind()["mixture"].values == sum(hops[i] * sent[i] for i in range(7))
    assert tree.ledger.by_kind()["image"].values == tree.rounds * (6 * 60 + 8 * hops.sum())


def test_fewer_values_than_simple_atoms_where_the_solution_is_dense():
    simple, compound, auto = (
        dense_fit(step, nodes=20, tol=1e-4).result_.ledger.values
        for step in ("corrective", "compound", "auto")
    )
    assert compound < 0.5 * simple
    assert auto < 0.5 * simple


def test_atoms_go_to_the_coordinator_once_and_the_image_to_everybody():
    result = dense_fit("auto", nodes=20, tol=1e-6).result_
    ledger, kinds = result.ledger, result.ledger.by_kind()
    sent = [one.atom for one in ledger.disclosures]
    assert len(sent) == len(set(sent)) >= np.count_nonzero(result.weights)
    assert kinds["atom"].values == sum(one.values for one in ledger.disclosures)
    assert kinds["image"].values == result.rounds * 20 * 60


def test_where_atoms_are_cheaper_to_broadcast_they_are():
    X, y = sparse_regression(seed=2, d=2000, density=0.002)
    one, other = (
        Lasso(3.0, cluster=10, solver=Solver(step=step, tol=1e-4)).fit(X, y).result_
        for step in ("auto", "corrective")
    )
    assert one.ledger.by_kind() == other.ledger.by_kind()
    assert one.ledger.disclosures == other.ledger.disclosures


@pytest.mark.parametrize(("beta", "pays"), [(30.0, False), (100.0, True)])
def test_auto_foresees_whether_images_pay(beta, pays):
    """77 atoms are cheaper to broadcast than four images, 241 are not; either is known at once."""
    made = make_sparse_regression(500, 5000, 0.02, 0.1)
    auto, simple = (
        Lasso(beta, fit_intercept=False, cluster=50, solver=step).fit(made.X, made.y).result_
        for step in ("auto", "corrective")
    )
    assert auto.status == "optimal"
    assert bool(auto.ledger.by_kind()["image"].values) == pays
    assert auto.ledger.values <= (0.6 if pays else 1.0) * simple.ledger.values


@pytest.mark.parametrize(
    "cluster",
    [
        LocalCluster(5, asynchronous=True),
        LocalCluster(5, topology="complete"),
    ],
)
def test_auto_broadcasts_where_there_is_no_coordinator(cluster):
    result = dense_fit("auto", cluster=cluster, tol=1e-5).result_
    assert result.status == "optimal"
    assert result.ledger.by_kind()["image"].values == 0


# -- weights that stay with their owners ----------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(2, 12),
    n=st.integers(1, 20),
    nodes=st.integers(1, 6),
    beta=st.sampled_from([0.01, 0.5, 2.0, 20.0]),
    topology=st.sampled_from(["star", "tree"]),
)
def test_owners_that_keep_their_weights_come_to_the_same_model(seed, d, n, nodes, beta, topology):
    X, y = regression(seed, d, n)
    how = {"step": "compound", "tol": 1e-6, "max_rounds": 30}
    cluster = LocalCluster(nodes, topology=topology)
    one, other = (
        solve(X, y, L1Ball(beta), nodes=nodes, cluster=cluster, reveal=reveal, **how)
        for reveal in ("never", "always")
    )
    best, _ = optimum(X, y, L1Ball(beta))
    unit = float(y @ y)
    assert np.abs(one.weights).sum() <= beta * (1 + 1e-9)
    assert one.gap >= one.objective - best - 1e-9 * unit
    assert one.objective == pytest.approx(other.objective, rel=1e-5, abs=1e-9 * unit)
    assert one.objective == pytest.approx(
        float(np.sum((y - X @ one.weights) ** 2)), rel=1e-7, abs=1e-9 * unit
    )


def test_other_balls_and_losses_with_weights_that_stay():
    X, y = regression(seed=5, d=60, n=80, support=20)
    solvers = [Solver(step="compound", reveal=reveal) for reveal in ("never", "always")]
    groups = [list(range(j, j + 4)) for j in range(0, 80, 4)]
    shards = Shards.split(X, 5, by=[16] * 5)
    for make, target in (
        (lambda how: GroupLasso(6.0, groups=groups, cluster=5, solver=how), y),
        (lambda how: SparseLogisticRegression(4.0, cluster=5, solver=how), np.digitize(y, [-1, 1])),
    ):
        one, other = (make(how).fit(shards, target) for how in solvers)
        assert one.result_.status == "optimal"
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


def test_the_coordinator_is_told_no_weights_and_every_answer_is_on_the_ledger(monkeypatch):
    told, heard = [], []
    answer, combine = Cones.__call__, Compound.combine

    def listen(self, question, common, each):
        rows = answer(self, question, common, each)
        told.append(rows.size + each.size + len(rows) * len(common))
        return rows

    def look(self, replica, nodes, best, mixtures, asked=None):
        heard.extend(mixtures)
        return combine(self, replica, nodes, best, mixtures, asked)

    monkeypatch.setattr(Cones, "__call__", listen)
    monkeypatch.setattr(Compound, "combine", look)
    result = dense_fit(nodes=5, reveal="never").result_
    assert heard
    assert not any(len(one.ids) for one in heard)
    kinds = result.ledger.by_kind()
    assert kinds["combination"].values == sum(told)
    assert kinds["mixture"].values == 60 * len(heard)


def test_on_a_tree_answers_are_passed_on():
    ledger = dense_fit(cluster=LocalCluster(7, topology="tree"), reveal="never").result_.ledger
    star = dense_fit(cluster=LocalCluster(7), reveal="never").result_.ledger
    # Of seven nodes one is the root, and the others are ten hops away from it, together.
    below, all_seven = ledger.by_kind()["combination"].values, star.by_kind()["combination"].values
    assert 6 / 7 * all_seven < below < 10 / 7 * all_seven


@pytest.mark.parametrize(
    ("how", "remedy"),
    [
        ({"step": "corrective"}, "compound"),
        ({"step": "compound", "resume": "run.safetensors"}, "leave Checkpoint"),
        ({"step": "compound", "callbacks": [Checkpoint("run.safetensors")]}, "leave Checkpoint"),
    ],
)
def test_where_weights_cannot_stay_is_said(how, remedy):
    with pytest.raises(ValueError, match=remedy):
        Solver(reveal="never", **how)


def test_ranks_that_end_with_the_run_cannot_keep_weights():
    with pytest.raises(ValueError, match="mpirun"):
        dense_fit(cluster=MPICluster.launch(2), reveal="never")


# -- interrupted runs, paths, refusals ------------------------------------------------------


@pytest.mark.parametrize("step", BOTH)
def test_a_run_goes_on_from_a_checkpoint_on_another_number_of_nodes(step, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        part = dense_fit(step, nodes=5, max_rounds=4, callbacks=[Checkpoint(path)]).result_
    whole = dense_fit(step, nodes=5, tol=1e-6).result_
    for nodes in (5, 3):
        resumed = dense_fit(step, nodes=nodes, tol=1e-6, resume=path).result_
        assert resumed.status == "optimal"
        assert resumed.rounds >= part.rounds
        assert resumed.trace.objective[0] <= part.trace.objective[-2]
        assert resumed.objective == pytest.approx(whole.objective, rel=2e-6)


@pytest.mark.parametrize("step", BOTH)
def test_a_path_sends_nothing_again(step):
    X, y = regression(seed=3, d=60, n=200, support=100)
    path = lasso_path(X, y, betas=[15.0, 20.0], cluster=5, solver=Solver(step=step, tol=1e-6))
    expected = dense_fit(step, tol=1e-6)
    assert path.results[-1].objective == pytest.approx(expected.result_.objective, rel=2e-6)
    assert path.results[-1].rounds < expected.result_.rounds


@pytest.mark.parametrize(
    "how",
    [
        {"cluster": LocalCluster(5, asynchronous=True)},
        {"cluster": LocalCluster(5, faults=Faults(loss=0.1), recovery="none")},
        {"cluster": LocalCluster(5, faults=Faults(loss=0.1)), "reveal": "never"},
        {"cluster": LocalCluster(5, topology="complete")},
        {"selection": "random-subset"},
    ],
)
def test_where_it_cannot_be_is_said(how):
    with pytest.raises(ValueError, match="use"):
        dense_fit(**how)


def test_a_simplex_is_refused():
    X, y = regression()
    with pytest.raises(ValueError, match="ball of the l1 norm"):
        solve(X, y, Simplex(), step="compound")


# -- the parts ------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("beta", [3.0, 1e5])
def test_the_cone_solver_finds_what_cvxpy_finds(grouped, beta):
    import cvxpy as cp

    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 12, size=8)
    rows, node = rng.standard_normal((sizes.sum(), 4)), np.repeat(np.arange(8), sizes)
    U = rng.standard_normal((60, 32))
    U[:, 1], rows[node == 0, 1] = U[:, 0], rows[node == 0, 0]  # two that are the same
    y = U @ rng.standard_normal(32)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    starts = first if grouped else np.arange(len(rows))
    norms = Norms(rows, node, starts, rng.uniform(0.5, 2.0, len(starts)))
    P, q, unit = 2 * U.T @ U, -2 * U.T @ y, float(y @ y)
    owners = Cones(norms)
    c = minimise_in_ball(P, q, owners, beta, np.zeros((8, 4)), 1e-11 * unit, unit)
    W = np.zeros((len(rows), 32))
    for f, i in enumerate(node):
        W[f, 4 * i : 4 * i + 4] = rows[f]
    x, ends = cp.Variable(32), [*starts[1:], len(rows)]
    parts = [cp.norm(W[a:b] @ x) for a, b in zip(starts, ends, strict=True)]
    limit = cp.sum(cp.multiply(norms.omega, cp.hstack(parts))) <= beta
    task = cp.Problem(cp.Minimize(cp.sum_squares(U @ x - y)), [limit])
    task.solve(solver="CLARABEL")
    assert norms.size(c).sum() <= beta * (1 + 1e-12)
    c = c.ravel()
    assert np.sum((U @ c - y) ** 2) <= task.value + 1e-6 * unit
    assert np.sum((U @ c - y) ** 2) >= task.value - 1e-6 * unit


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_curvature_times_directions_is_the_change_of_the_gradient(fit_intercept):
    rng = np.random.default_rng(1)
    losses = {
        (9,): SquaredError(rng.standard_normal(9), fit_intercept),
        (9, 3): Multinomial(np.arange(9) % 3, fit_intercept),
    }
    for shape, loss in losses.items():
        z, directions = rng.standard_normal(shape), rng.standard_normal((*shape, 4))
        applied = loss.curvature(z).applied(directions)
        for k in range(4):
            ahead, behind = (loss.gradient(z + h * directions[..., k]) for h in (1e-5, -1e-5))
            np.testing.assert_allclose(applied[..., k], (ahead - behind) / 2e-5, atol=1e-7)
