"""The corrective step where the objective is not quadratic: awkward data, certified answers."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from atomcast import Solver, SparseLogisticRegression
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom
from atomcast.objectives import Logistic, LogMeanExp
from atomcast.steps.inner import block_pivots
from atomcast.steps.inner.corral import Corral
from atomcast.steps.inner.newton import Newton, QuadraticModel


def awkward(seed, d, n):
    """Columns that are zero, constant, repeated, opposite, huge or tiny, and a few labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    for j in rng.choice(n, n // 2, replace=False):
        kind = rng.integers(6)
        other = X[:, rng.integers(n)]
        X[:, j] = [0.0 * other, 0.0 * other + 1.0, other, -other, 1e4 * other, 1e-4 * other][kind]
    return X, rng


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(6, 30),
    st.integers(2, 25),
    st.sampled_from([0.01, 1.0, 20.0, 100.0]),
    st.sampled_from([2, 3]),
    st.booleans(),
    st.sampled_from([None, 3]),
)
def test_awkward_data_is_fitted_and_the_gap_is_true(seed, d, n, beta, classes, intercept, cluster):
    X, rng = awkward(seed, d, n)
    y = rng.permutation(np.arange(d) % classes)
    model = SparseLogisticRegression(
        beta, fit_intercept=intercept, cluster=cluster, solver=Solver(tol=1e-5)
    ).fit(X, y)
    result = model.result_
    assert result.status == "optimal"
    assert np.abs(model.coef_).sum() <= beta * (1 + 1e-9)
    # The gap, by hand.
    scores = X @ model.coef_.T + model.intercept_
    if classes == 2:
        gradient = (expit(scores) - y[:, None]).T @ X
    else:
        gradient = (softmax(scores, axis=1) - (y[:, None] == np.arange(classes))).T @ X
    gap = np.vdot(model.coef_, gradient) + beta * np.abs(gradient).max()
    size = beta * np.abs(X).max() * d
    assert gap <= result.gap + 1e-9 * size + 1e-9


@pytest.mark.parametrize("domain", [L1Ball(2.0), Simplex()])
def test_newton_steps_find_the_optimum_among_the_known_atoms(domain):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 15)), rng.choice([-1.0, 1.0], 40)
    for objective in (Logistic(y, True), LogMeanExp(y, 0.4)):
        active = ExplicitActiveSet(objective)
        active.append([Atom(j, 40, A[:, j].copy()) for j in range(15)])
        Newton(domain, lambda: Corral(domain)).minimise(active, 1e-10)
        scores = A.T @ objective.gradient(A @ active.weights)
        best = domain.scale * domain.merit(scores).max()
        assert active.weights @ scores + best <= 1e-9
        # A second call has nothing to do, and changes nothing.
        before = active.weights.copy()
        Newton(domain, lambda: Corral(domain)).minimise(active, 1e-10)
        np.testing.assert_array_equal(active.weights, before)


def test_the_model_touches_the_objective():
    rng = np.random.default_rng(1)
    A, y = rng.standard_normal((30, 6)), rng.choice([-1.0, 1.0], 30)
    active = ExplicitActiveSet(Logistic(y, True))
    active.append([Atom(j, 30, A[:, j].copy()) for j in range(6)])
    active.set_weights(0.1 * rng.standard_normal(6))
    every = np.arange(6)
    hessian = active.hessian(every)
    np.testing.assert_allclose(hessian, active.products(0, 6), atol=1e-12)
    np.testing.assert_allclose(active.hessian(every[2:5]), hessian[2:5, 2:5], atol=1e-12)
    model = QuadraticModel(active.ids, active.weights.copy(), active.scores(), hessian)
    value, start, step = active.value(), active.weights.copy(), 1e-3 * rng.standard_normal(6)
    active.set_weights(start + step)
    model.set_weights(start + step)
    assert model.value() == pytest.approx(active.value() - value, rel=1e-3)
    np.testing.assert_allclose(model.scores(), active.scores(), atol=1e-4)
    model.set_weights(start)
    taken = model.search(-model.scores(), 10.0)
    assert 0.0 < taken <= 10.0
    assert model.value() < 0.0


@pytest.mark.parametrize("beta", [10.0, 40.0])
@pytest.mark.parametrize("seed", range(3))
def test_rough_models_end_where_exact_ones_do_with_fewer_faces(seed, beta, monkeypatch):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 60))
    y = np.where(X[:, :12] @ rng.standard_normal(12) + rng.standard_normal(80) > 0.0, 1.0, -1.0)
    faces, solve, found = [], block_pivots.dposv, []

    def counted(matrix, *rest, **how):
        faces[-1] += 1
        return solve(matrix, *rest, **how)

    monkeypatch.setattr(block_pivots, "dposv", counted)
    for rough in (False, True):
        active = ExplicitActiveSet(Logistic(y))
        active.append([Atom(j, 80, X[:, j].copy()) for j in range(60)])
        faces.append(0)
        Newton(L1Ball(beta), partial(Corral, L1Ball(beta)), rough=rough).minimise(active, 1e-8)
        merit = np.abs(active.scores()).max()
        assert active.inner() + beta * merit <= 1e-8
        found.append(active.weights.copy())
    np.testing.assert_allclose(*found, atol=1e-4)
    assert faces[1] < faces[0]


@pytest.mark.parametrize("seed", range(4))
def test_all_features_of_a_small_table_join_at_once_and_one_round_is_enough(seed):
    """The target falls with the objective, far below what it was when the round began."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 60))
    y = X[:, :12] @ rng.standard_normal(12) + rng.standard_normal(80) > 0.0
    model = SparseLogisticRegression(20.0).fit(X, y)
    assert model.result_.objective < 0.2 * 80 * np.log(2.0)
    assert model.n_iter_ == 1
    assert list(model.result_.trace.atoms) == [0, 60]


def test_redundant_features_take_no_more_rounds():
    # Weights with a smaller gap, but a slightly larger value, were refused in 70 rounds.
    X, y = make_classification(2000, 400, n_informative=80, random_state=2)
    result = SparseLogisticRegression(beta=40.0).fit(X, y).result_
    assert result.status == "optimal"
    assert result.rounds <= 20


def walks(seed, d=120, n=200):
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.standard_normal((d, n)), axis=1)
    return X, X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(d) > 0.0


@pytest.mark.parametrize("intercept", [False, True])
def test_losses_that_fall_like_exponentials_take_few_models(intercept, monkeypatch):
    """A model of the loss itself ends at a third of it: it would take 25 to 34 of them."""
    models, step = [], Newton._step
    monkeypatch.setattr(Newton, "_step", lambda *given: models.append(1) or step(*given))
    for seed in range(3):
        X, y = walks(seed)
        models.clear()
        result = SparseLogisticRegression(100.0, fit_intercept=intercept).fit(X, y).result_
        assert result.status == "optimal"
        assert result.objective < 1e-7 * 120 * np.log(2.0)
        assert len(models) <= 22


def test_a_loss_that_is_all_but_nothing_is_certified_for_three_classes():
    """Its digits were lost in a difference of large scores, and steps that helped were refused."""
    X, rng = awkward(15, 16, 17)
    y = rng.permutation(np.arange(16) % 3)
    result = SparseLogisticRegression(100.0, solver=Solver(tol=1e-5)).fit(X, y).result_
    assert result.status == "optimal"
    assert result.objective < 2e-5


def test_signs_that_come_out_wrong_far_away_leave_one_after_the_other():
    """Sweeps would take for ever there: `CoordinateDescent._around`."""
    rng = np.random.default_rng(29)
    X = sparse.random_array((84, 384), density=0.1, format="csc", rng=rng)
    X.data = rng.standard_normal(len(X.data))
    y = X[:, :20].sum(axis=1) + 0.1 * rng.standard_normal(84) > 0.0
    model = SparseLogisticRegression(beta=50.0, fit_intercept=False).fit(X, y)
    reference = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=model.C_, fit_intercept=False, tol=1e-10,
        max_iter=100_000,
    ).fit(X, y)  # fmt: skip
    w = reference.coef_[0]
    penalised = np.abs(w).sum() + model.C_ * np.logaddexp(0.0, -(2.0 * y - 1.0) * (X @ w)).sum()
    assert 50.0 + model.C_ * model.result_.objective == pytest.approx(penalised, rel=1e-5)
