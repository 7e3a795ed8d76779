"""Lasso where columns are copies of others, or add up to a constant, beside scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso as PenalisedLasso

from atomcast import Lasso


def one_hot(seed, d, *sizes):
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, size, d) for size in sizes]
    ones = [sparse.csc_array((np.ones(d), (range(d), v)), shape=(d, v.max() + 1)) for v in drawn]
    X = sparse.csc_array(sparse.hstack(ones))
    return X, X @ rng.standard_normal(X.shape[1]) + 0.5 * rng.standard_normal(d)


def test_copies_do_not_join():
    rng = np.random.default_rng(0)
    distinct = rng.standard_normal((200, 100))
    X = distinct[:, rng.integers(0, 100, 400)] * rng.choice([-1.0, 1.0], 400)
    y = X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(200)
    model = Lasso(alpha=0.02, tol=1e-8).fit(X, y)
    theirs = PenalisedLasso(alpha=0.02, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-3)
    assert model.result_.status == "optimal"
    # In the first round, scores that are equal by chance are not told from those of copies.
    assert model.result_.trace["atoms"][-1] <= 100 + 32


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_columns_that_add_up_to_one(seed, fit_intercept):
    """Faces are flat, and most columns are in use: nothing but sweeps tells the penalty."""
    X, y = one_hot(seed, 3000, 300, 300, 50, 10, 3)
    alpha = 5e-4 * np.abs(X.T @ y).max() / len(y)
    theirs = PenalisedLasso(
        alpha=alpha, fit_intercept=fit_intercept, tol=1e-9, max_iter=100_000
    ).fit(X.toarray(), y)
    beta = float(np.abs(theirs.coef_).sum())
    model = Lasso(beta, fit_intercept=fit_intercept).fit(X, y)
    assert model.result_.status == "optimal"
    best = float(np.sum((y - theirs.predict(X.toarray())) ** 2))
    assert model.result_.objective <= best * (1.0 + 1.1e-4)
    assert model.result_.rounds <= 12


@pytest.mark.parametrize("mean", [1e3, 1e4])
def test_columns_far_from_zero_and_no_intercept(mean):
    """All but coincide: the search for a small penalty's radius ended at half of it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((132, 323))
    y = X[:, :20] @ rng.standard_normal(20) + 0.5 * rng.standard_normal(132)
    X += mean
    model = Lasso(alpha=0.01, fit_intercept=False).fit(X, y)
    assert model.result_.status == "optimal"
    rest = y - X @ model.coef_
    slopes = np.abs(X.T @ rest) / len(y)
    assert slopes.max() <= 0.01 * (1.0 + 1e-2)
    # The gap, by the residual as a point of the dual problem, scaled into it.
    dual = rest / len(y) * min(1.0, 0.01 / slopes.max())
    primal = 0.5 * rest @ rest / len(y) + 0.01 * np.abs(model.coef_).sum()
    assert primal - (dual @ y - 0.5 * len(y) * dual @ dual) <= 1e-3 * primal
