"""KernelSVR against closed forms, an independent solver, and itself on other nodes and data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_friedman1, make_friedman2
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from atomcast import Checkpoint, KernelSVR, LocalCluster, Shards, Solver


def examples(n=150, seed=0):
    X, y = make_friedman1(n, 6, noise=0.5, random_state=seed)
    return X, y


def primal(model, X, y, weights=1.0):
    """What the model costs in the primal, from its predictions and coefficients."""
    beta = model.dual_coef_[0]
    K = rbf_kernel(X[model.support_], gamma=model.gamma_)
    excess = np.maximum(np.abs(y - model.predict(X)) - model.epsilon, 0.0)
    return 0.5 * beta @ K @ beta + 0.5 * model.C * float(np.sum(weights * excess**2))


def test_without_a_tube_a_linear_machine_is_ridge_regression():
    X, y = examples()
    model = KernelSVR(C=2.0, epsilon=0.0, kernel="linear", cluster=3, tol=1e-10).fit(X, y + 1e4)
    ridge = Ridge(alpha=0.5).fit(X, y + 1e4)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), rtol=1e-10)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-9)
    assert model.n_support_ == [150]


@pytest.mark.parametrize("n", [150, 600])
@pytest.mark.parametrize("nodes", [None, 3])
def test_the_intercept_goes_with_the_weights(n, nodes):
    """Beyond the tube, an error is what its weight costs, whoever knows the level."""
    X, y = examples(n)
    model = KernelSVR(C=3.0, epsilon=0.4, gamma=0.2, cluster=nodes, tol=1e-6).fit(X, y)
    beta, own = model.dual_coef_[0], model.support_
    lacking = (y - model.predict(X))[own] - 0.4 * np.sign(beta) - beta / 3.0
    assert abs(lacking.mean()) <= 1e-9
    assert np.abs(lacking).max() <= 1e-2


@pytest.mark.parametrize("epsilon", [0.3, 1.5, 4.0])
def test_an_independent_solver_finds_the_same(epsilon):
    cvxpy = pytest.importorskip("cvxpy")
    X, y = examples(80)
    model = KernelSVR(C=5.0, epsilon=epsilon, gamma=0.7, cluster=4, tol=1e-9).fit(X, y)
    root = np.linalg.cholesky(rbf_kernel(X, gamma=0.7) + 1e-11 * np.eye(len(y)))
    w, b = cvxpy.Variable(len(y)), cvxpy.Variable()
    excess = cvxpy.pos(cvxpy.abs(y - root @ w - b) - epsilon)
    cost = cvxpy.sum_squares(w) / 2 + 2.5 * cvxpy.sum_squares(excess)
    optimum = cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver="CLARABEL")
    assert model.result_.objective == pytest.approx(-optimum, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), root @ w.value + b.value, atol=1e-4)
    outside = np.flatnonzero(np.abs(y - model.predict(X)) > epsilon + 1e-6)
    np.testing.assert_array_equal(model.support_, outside)


@given(
    seed=st.integers(0, 10**6),
    nodes=st.integers(2, 6),
    cost=st.sampled_from([0.1, 1.0, 100.0]),
    epsilon=st.sampled_from([0.0, 0.2, 2.0]),
)
@settings(max_examples=12, deadline=None)
def test_neither_nodes_nor_doubts_change_the_certified_model(seed, nodes, cost, epsilon):
    X, y = examples(160, seed)
    alone, here, spread = (
        KernelSVR(cost, epsilon=epsilon, cluster=cluster, tol=1e-4).fit(X, y)
        for cluster in (None, 1, LocalCluster(nodes, isolated=True))
    )
    np.testing.assert_array_equal(here.support_, spread.support_)
    np.testing.assert_allclose(spread.dual_coef_, here.dual_coef_, rtol=1e-6, atol=1e-9)
    # Without a cluster all examples join, also those that violate less than the tolerance.
    for model in (alone, here):
        assert model.result_.status == "optimal"
        # The gap bounds the distance to the primal, which nothing but predictions is needed for.
        result, cost_here = model.result_, primal(model, X, y)
        assert -1e-9 * cost_here <= cost_here + result.objective <= result.gap + 1e-9 * cost_here


def test_a_gap_counts_also_where_it_is_large():
    X, y = examples(400)
    with pytest.warns(UserWarning, match="raise max_rounds"):
        model = KernelSVR(10.0, epsilon=0.2, gamma=0.7, cluster=2, max_rounds=2).fit(X, y)
    best = KernelSVR(10.0, epsilon=0.2, gamma=0.7, tol=1e-8).fit(X, y)
    above = model.result_.objective - best.result_.objective
    assert 0 < above <= model.result_.gap < np.inf


def test_many_points_outside_the_tube_are_found_by_gradients(monkeypatch):
    from atomcast.steps.inner import tube_newton

    X, y = examples(400)
    fits = []
    for few, dense in ((500, 500), (50, 500), (50, 50)):
        monkeypatch.setattr(tube_newton, "FEW", few)
        monkeypatch.setattr(tube_newton, "DENSE", dense)
        fits.append(KernelSVR(10.0, epsilon=0.3, gamma=0.7, tol=1e-6).fit(X, y))
    assert [fit.result_.status for fit in fits] == ["optimal"] * 3
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.predict(X), fits[0].predict(X), atol=1e-2)
        assert fit.result_.objective == pytest.approx(fits[0].result_.objective, rel=2e-6)


def test_many_points_at_once_have_the_weights_that_newton_finds(monkeypatch):
    from atomcast.steps.inner import tube_descent

    X, y = examples(900)
    weights = np.random.default_rng(0).random(900) + 0.1
    for cost, epsilon in ((0.1, 0.5), (1.0, 0.0), (30.0, 1.0)):
        fits = []
        for few in (10**6, 500):
            monkeypatch.setattr(tube_descent, "FEW", few)
            model = KernelSVR(cost, epsilon=epsilon, gamma=0.7, tol=1e-5).fit(X, y, weights)
            fits.append(model)
            above = primal(model, X, y, weights) + model.result_.objective
            assert -1e-9 <= above / abs(model.result_.objective) <= 1e-5
        assert fits[1].result_.objective == pytest.approx(fits[0].result_.objective, rel=2e-5)
        assert fits[1].n_iter_ == 1


@pytest.mark.parametrize(("cost", "rows"), [(1.0, 20), (1.0, 300), (100.0, 100)])
def test_where_there_is_no_room_for_all_rows_some_will_do(cost, rows):
    X, y = examples(900)
    model = KernelSVR(cost, epsilon=0.5, gamma=0.7, cache_bytes=rows * 4 * 900).fit(X, y)
    assert model.result_.status == "optimal"
    above = (primal(model, X, y) + model.result_.objective) / abs(model.result_.objective)
    assert -1e-4 <= above <= 1e-3


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_rounding_that_leaves_the_matrix_indefinite_is_no_end(epsilon):
    X = np.random.default_rng(0).random((700, 1))
    y = np.sin(9.0 * X[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(700)
    model = KernelSVR(1e6, epsilon=epsilon, gamma=0.1).fit(X, y)
    assert model.result_.status == "optimal"


@pytest.mark.parametrize("cost", [1.0, 300.0, 3e4])
def test_a_kernel_of_low_rank_is_no_trouble(cost):
    X = 20.0 * np.random.default_rng(0).random((1500, 1))
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(1500)
    model = KernelSVR(cost, epsilon=0.2, gamma=0.02).fit(X, y)
    assert model.result_.status == "optimal"
    above = (primal(model, X, y) + model.result_.objective) / abs(model.result_.objective)
    assert -1e-4 <= above <= 1e-3  # the objective itself is rounded where kernel values are


def test_inexact_gradients_leave_no_weights_of_the_wrong_sign(monkeypatch):
    from atomcast.steps.inner import tube_newton

    solve, worst = tube_newton.TubeNewton.minimise, []

    def watched(self, active, aim):
        share = aim * abs(active.value()) / 800
        solve(self, active, aim)
        if share > 0.0:
            worst.append(np.abs(active.scores()).max() / share)

    monkeypatch.setattr(tube_newton, "FEW", 50)
    monkeypatch.setattr(tube_newton, "DENSE", 50)
    monkeypatch.setattr(tube_newton.TubeNewton, "minimise", watched)
    X, y = make_friedman1(800, 10, noise=1.0, random_state=2)
    KernelSVR(1000.0, epsilon=0.2, gamma=0.5, cluster=2, tol=9e-4).fit(X, y)
    assert len(worst) > 5
    assert max(worst) <= 1.0


def test_a_smooth_kernel_and_dear_errors_leave_no_small_weights_behind():
    X, y = make_friedman2(1500, noise=50.0, random_state=0)
    X, y = (StandardScaler().fit_transform(np.c_[part]) for part in (X, y))
    model = KernelSVR(100.0, epsilon=0.2, gamma=0.125, cluster=2).fit(X, y.ravel())
    assert model.result_.status == "optimal"
    assert model.result_.relative_gap <= 1e-3


def test_dear_errors_take_few_rounds_where_hardly_a_point_is_sent_in_vain():
    X, y = make_friedman1(600, 10, noise=1.0, random_state=0)
    model = KernelSVR(1000.0, epsilon=0.2, cluster=4).fit(X, y)
    assert model.result_.status == "optimal"
    assert model.n_iter_ <= 15
    assert model.result_.ledger.atoms_sent <= 1.1 * model.n_support_[0]


@pytest.mark.parametrize(("cost", "epsilon"), [(1.0, 0.0), (1e4, 0.0), (1e5, 0.1)])
def test_extreme_costs_without_noise_end_with_a_certificate(cost, epsilon):
    X, y = make_friedman1(400, 10, random_state=0)
    assert KernelSVR(cost, epsilon=epsilon, cluster=2).fit(X, y).result_.status == "optimal"


def test_a_run_that_a_callback_stops_warns():
    X, y = examples(400)
    solver = Solver(tol=1e-3, callbacks=[lambda state: state.round < 2])
    words = r"the relative gap is .*, above tol=0.001, after 2 rounds: .*let it go on"
    with pytest.warns(ConvergenceWarning, match=words):
        KernelSVR(10.0, cluster=1, solver=solver).fit(X, y)


def test_weights_are_repetitions_and_travel():
    X, y = examples(50)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = KernelSVR(gamma=0.7, tol=1e-10, cluster=2).fit(X, y, times)
    repeated = KernelSVR(gamma=0.7, tol=1e-10).fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)
    assert np.all(times[weighted.support_] > 0)
    assert {d.values for d in weighted.result_.ledger.disclosures} == {6 + 1 + 1}


def test_targets_within_the_tube_need_no_support_vectors():
    X, y = examples(60)
    model = KernelSVR(epsilon=100.0).fit(X, y)
    assert model.n_support_ == [0]
    assert model.result_.status == "optimal"
    np.testing.assert_allclose(model.predict(X), (y.min() + y.max()) / 2)


def test_sparse_precomputed_and_shards_agree(tmp_path):
    X, y = examples(90)
    plain = KernelSVR(gamma=0.7, tol=1e-8, cluster=3).fit(X, y)
    compressed = KernelSVR(gamma=0.7, tol=1e-8, cluster=3).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(compressed.predict(X), plain.predict(X), rtol=1e-6)
    K = rbf_kernel(X, gamma=0.7)
    known = KernelSVR(kernel="precomputed", tol=1e-8).fit(K, y)
    np.testing.assert_allclose(known.predict(K[:5]), plain.predict(X[:5]), rtol=1e-6)
    np.save(tmp_path / "a.npy", X[:40])
    np.save(tmp_path / "b.npy", X[40:])
    files = Shards.files([tmp_path / "a.npy", tmp_path / "b.npy"])
    held = KernelSVR(gamma=0.7, tol=1e-8).fit(files, y)
    np.testing.assert_allclose(held.predict(files), plain.predict(X), rtol=1e-6)
    mine = KernelSVR(gamma=0.7, tol=1e-8).fit(Shards.mine(X), y)
    np.testing.assert_allclose(mine.predict(X), plain.predict(X), rtol=1e-6)


def test_a_resumed_fit_is_the_one_that_was_never_interrupted(tmp_path):
    X, y = examples(400)
    path = tmp_path / "run.safetensors"

    def fit(nodes, **how):
        return KernelSVR(10.0, cluster=nodes, solver=Solver(tol=1e-3, **how)).fit(X, y)

    whole = fit(3)
    with pytest.warns(UserWarning, match="raise max_rounds"):
        fit(3, max_rounds=3, callbacks=[Checkpoint(path, rounds=1)])
    resumed = fit(2, resume=path)
    assert resumed.result_.rounds == whole.result_.rounds
    np.testing.assert_array_equal(resumed.dual_coef_, whole.dual_coef_)


def test_scikit_learns_checks():
    check_estimator(KernelSVR(tol=1e-9))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": -1.0}, "epsilon must be a finite number >= 0"),
        ({"epsilon": "wide"}, "epsilon must be a finite number >= 0"),
        ({"C": 0}, "C must be a finite number > 0"),
        ({"solver": "classic"}, "needs the corrective step.*got step=.classic.: leave solver out"),
        ({"kernel": "precomputed"}, "X must be a square matrix"),
    ],
)
def test_what_is_refused(settings, words):
    X, y = examples(30)
    with pytest.raises(ValueError, match=words):
        KernelSVR(**settings).fit(X, y)
