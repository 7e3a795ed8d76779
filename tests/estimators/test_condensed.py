"""A tall table, condensed to as many rows as it has columns, has the same least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

from atomcast import LassoCV
from atomcast.data import Shards
from atomcast.estimators import path_cv
from atomcast.estimators.condensed import condensed
from atomcast.objectives import SquaredError


def table(seed, d=300, n=8, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n)) * rng.lognormal(0.0, 1.0, n) + 5.0
    return X, X @ rng.standard_normal(n) + noise * rng.standard_normal(d) + 100.0, rng


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_and_slopes_are_those_of_the_table(intercept, weighted):
    X, y, rng = table(0)
    rows = np.sort(rng.choice(300, 240, replace=False))
    weights = rng.integers(0, 3, 240).astype(float) if weighted else None
    objective = SquaredError(y[rows], intercept, weights)
    few = condensed(Shards.split(X, nodes=1), rows, objective)
    assert few is not None
    small = few.shards.matrix
    assert small.shape == (9, 8)
    for w in rng.standard_normal((5, 8)):
        image, condensed_image = X[rows] @ w, small @ w
        assert few.objective.value(condensed_image) == pytest.approx(objective.value(image))
        slopes = X[rows].T @ objective.gradient(image)
        found = small.T @ few.objective.gradient(condensed_image)
        np.testing.assert_allclose(found, slopes, atol=1e-9 * np.abs(slopes).max())
        assert few.intercept(w) == pytest.approx(objective.intercept(image))
    best = LinearRegression(fit_intercept=intercept).fit(X[rows], y[rows], weights)
    solution = np.linalg.lstsq(small, few.objective.y, rcond=None)[0]
    np.testing.assert_allclose(solution, best.coef_, rtol=1e-7)


def test_what_rounding_could_spoil_is_not_condensed():
    X, y, _ = table(1)
    rows = np.arange(len(y))
    alike = np.column_stack([X, X[:, 0] + 1e-6 * X[:, 1]])
    for matrix, target in [(alike, y), (X, X @ np.ones(8)), (X[:, [0, 0]], y)]:
        assert condensed(Shards.split(matrix, nodes=1), rows, SquaredError(target)) is None


def test_neither_wide_nor_sparse_data_nor_several_targets_are_condensed():
    X, y, _ = table(2)
    rows = np.arange(len(y))
    assert condensed(Shards.split(X[:20], nodes=1), rows[:20], SquaredError(y[:20])) is None
    assert condensed(Shards.split(sparse.csc_array(X), nodes=1), rows, SquaredError(y)) is None
    both = SquaredError(np.column_stack([y, y]))
    assert condensed(Shards.split(X, nodes=1), rows, both) is None


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"positive": True}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_validation_is_the_same(monkeypatch, options, dtype):
    X, y, rng = table(3)
    X, weights = X.astype(dtype), rng.random(300)
    found = LassoCV(n_betas=8, **options).fit(X, y, weights)
    monkeypatch.setattr(path_cv, "condensed", lambda *_: None)
    usual = LassoCV(n_betas=8, **options).fit(X, y, weights)
    np.testing.assert_allclose(found.betas_, usual.betas_)
    np.testing.assert_allclose(found.mse_path_, usual.mse_path_, rtol=1e-3)
    np.testing.assert_allclose(found.coef_, usual.coef_, rtol=1e-6, atol=1e-9)
