"""ADMM for the logistic loss: its proximal step, its solution, and how it is measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from atomcast.baselines.admm import Admm
from atomcast.baselines.admm_losses import SharingLogistic, logistic_prox
from atomcast.data.shards import Shards
from problems import sparse_regression


def classification(seed=0, d=80, n=25):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    score = X[:, :3] @ [2.0, -1.5, 1.0] + 0.5 * rng.standard_normal(d)
    return X, np.where(score > 0, 1.0, -1.0)


def penalty(X, y, share=0.1):
    """So much of the smallest penalty for which all weights are zero."""
    return share * float(np.abs(X.T @ y).max()) / 2


@settings(deadline=None, max_examples=60)
@given(
    v=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=5),
    step=st.floats(1e-3, 1e4),
)
def test_the_proximal_step_is_where_the_slope_is_zero(v, step):
    v = np.array(v)
    found = logistic_prox(v, step)
    for t, start in zip(found, v, strict=True):
        exact = brentq(
            lambda t, a=start: t - a - step * expit(-t), start - 1, start + step + 1, xtol=1e-13
        )
        assert t == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_the_coordinators_step_is_that_of_the_sharing_problem():
    """min over all z_i of l(sum z_i) + rho/2 sum ||z_i - a_i||^2, nothing simplified, by CVXPY."""
    import cvxpy as cp

    rng = np.random.default_rng(0)
    N, d, rho = 4, 6, 0.7
    a, y = rng.standard_normal((N, d)), np.where(rng.random(d) > 0.5, 1.0, -1.0)
    z = cp.Variable((N, d))
    loss = cp.sum(cp.logistic(-cp.multiply(y, cp.sum(z, axis=0))))
    task = cp.Problem(cp.Minimize(loss + rho / 2 * cp.sum_squares(z - a)))
    task.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    found = SharingLogistic(y).mean_update(a.mean(axis=0), N, rho)
    np.testing.assert_allclose(found, z.value.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "rho", "alpha"), [(1, 1.0, 1.0), (3, 0.1, 1.5), (3, 1.0, 1.0), (30, 1.0, 1.5)]
)
def test_it_converges_to_scikit_learn_and_celer(nodes, rho, alpha):
    from celer import LogisticRegression as Celer

    X, y = classification()  # 25 features: of 30 nodes, some have none
    lam = penalty(X, y)
    how = Admm(lam, rho, alpha, max_rounds=20_000, tol=1e-9, local_tol=1e-11, loss="logistic")
    result = how.solve(y, Shards.split(X, nodes))
    assert result.status == "optimal"
    model = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=1 / lam, fit_intercept=False, tol=1e-12, max_iter=10**5
    ).fit(X, y)
    celer = Celer(C=1 / lam, tol=1e-10, max_iter=500).fit(X, y)
    for expected in (model.coef_.ravel(), celer.coef_.ravel()):
        np.testing.assert_allclose(result.weights, expected, atol=1e-4)
        losses = np.logaddexp(0, -y * (X @ expected)).sum()
        assert result.objective == pytest.approx(losses, rel=1e-4)
    assert result.relative_gap < 1e-5


def test_sparse_features_and_charges_are_as_for_the_lasso():
    from celer import LogisticRegression as Celer

    X, y = sparse_regression()
    labels = np.where(y > 0, 1.0, -1.0)
    lam = penalty(X, labels, 0.3)
    how = Admm(lam, 1.0, 1.5, max_rounds=5000, tol=1e-8, local_tol=1e-10, loss="logistic")
    result = how.solve(labels, Shards.split(X, 5))
    expected = Celer(C=1 / lam, tol=1e-10, max_iter=500).fit(X, labels).coef_.ravel()
    np.testing.assert_allclose(result.weights, expected, atol=1e-4)
    assert result.ledger.messages == 2 * 5 * result.rounds
    assert result.trace["values"][-1] == result.ledger.values
    assert result.trace.objective[0] == pytest.approx(len(y) * np.log(2))


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 100), nodes=st.integers(2, 6), beta=st.floats(0.2, 5.0))
def test_on_the_ball_no_iterate_beats_the_optimum_and_gaps_hold(seed, nodes, beta):
    import cvxpy as cp

    X, y = classification(seed)
    w = cp.Variable(X.shape[1])
    task = cp.Problem(
        cp.Minimize(cp.sum(cp.logistic(-cp.multiply(y, X @ w)))), [cp.norm1(w) <= beta]
    )
    best = task.solve(solver="CLARABEL", tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    how = Admm(penalty(X, y), 1.0, 1.5, beta, 15, loss="logistic")
    trace = how.solve(y, Shards.split(X, nodes)).trace
    assert np.all(trace.objective >= best - 1e-6 * len(y))
    assert np.all(trace.gap >= trace.objective - best - 1e-6 * len(y))


def test_wrong_parameters_are_named():
    X, y = classification()
    with pytest.raises(ValueError, match="loss must be one of"):
        Admm(1.0, loss="hinge")
    with pytest.raises(ValueError, match="labels -1 and 1"):
        Admm(1.0, loss="logistic").solve(2 * y, Shards.split(X, 2))
