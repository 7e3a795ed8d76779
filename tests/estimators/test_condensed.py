"""A table with fewer rows, condensed or centred, has the same least squares and the same paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso as Penalised
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, ShuffleSplit

from atomcast import LassoCV, LocalCluster, Solver
from atomcast.data import Shards
from atomcast.estimators import condensed, path_cv, trial
from atomcast.estimators.condensed import condensable
from atomcast.objectives import SquaredError


def table(seed, d=300, n=8, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n)) * rng.lognormal(0.0, 1.0, n) + 5.0
    return X, X @ rng.standard_normal(n) + noise * rng.standard_normal(d) + 100.0, rng


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "rows", "condensed_to"), [(300, 240, 9), (300, 90, 9), (30, 25, 25)])
def test_losses_and_slopes_are_those_of_the_table(intercept, weighted, d, rows, condensed_to):
    X, y, rng = table(0, d)
    kept = np.sort(rng.choice(d, rows, replace=False))
    weights = rng.integers(0, 3, d).astype(float) if weighted else None
    some = None if weights is None else weights[kept]
    objective = SquaredError(y[kept], intercept, some)
    tables = condensable(Shards.split(X, nodes=1), SquaredError(y, intercept, weights))
    few = tables.of(kept, objective)
    small = few.columns
    assert small.shape == (condensed_to, 8)
    for w in rng.standard_normal((5, 8)):
        image, condensed_image = X[kept] @ w, small @ w
        assert few.objective.value(condensed_image) == pytest.approx(objective.value(image))
        slopes = X[kept].T @ objective.gradient(image)
        found = small.T @ few.objective.gradient(condensed_image)
        np.testing.assert_allclose(found, slopes, atol=1e-9 * np.abs(slopes).max())
        assert few.intercept(w) == pytest.approx(objective.intercept(image))
    products = np.stack([few.products(column) for column in range(8)])
    np.testing.assert_allclose(products, small.T @ small, rtol=1e-9, atol=1e-9 * products.max())
    best = LinearRegression(fit_intercept=intercept).fit(X[kept], y[kept], some)
    solution = np.linalg.lstsq(small, few.objective.y, rcond=None)[0]
    np.testing.assert_allclose(solution, best.coef_, rtol=1e-7)


def test_rows_that_are_drawn_twice_count_twice():
    X, y, rng = table(4)
    rows = rng.integers(0, 300, 250)
    objective = SquaredError(y[rows], fit_intercept=True)
    few = condensable(Shards.split(X, nodes=1), SquaredError(y, fit_intercept=True)).of(
        rows, objective
    )
    assert len(few.columns) == 9
    np.testing.assert_allclose(few.products(3), few.columns.T @ few.columns[:, 3], rtol=1e-9)
    w = rng.standard_normal(8)
    assert few.objective.value(few.columns @ w) == pytest.approx(objective.value(X[rows] @ w))


def test_what_rounding_could_spoil_is_not_condensed(monkeypatch):
    X, y, _ = table(1)
    alike = np.column_stack([X, X[:, 0] + 1e-6 * X[:, 1]])
    for matrix, target in [(alike, y), (X, X @ np.ones(8)), (X[:, [0, 0]], y)]:
        tables = condensable(Shards.split(matrix, nodes=1), SquaredError(target))
        np.testing.assert_allclose(tables.whole().columns, matrix)  # as it is small
        with monkeypatch.context() as patch:
            patch.setattr(condensed, "SMALL", 100)
            assert tables.whole() is None


def test_neither_large_nor_sparse_data_nor_several_targets_are_condensed(monkeypatch):
    X, y, _ = table(2)
    monkeypatch.setattr(condensed, "SMALL", 100)
    assert condensable(Shards.split(X[:20], nodes=1), SquaredError(y[:20])).whole() is None
    assert condensable(Shards.split(sparse.csc_array(X), nodes=1), SquaredError(y)) is None
    both = SquaredError(np.column_stack([y, y]))
    assert condensable(Shards.split(X, nodes=1), both) is None


OPTIONS = [{}, {"fit_intercept": False}, {"positive": True}, {"betas": [0.5, 3.0, 40.0]}]
FOLDS = [5, ShuffleSplit(3, test_size=0.7, random_state=0)]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cv", FOLDS)
@pytest.mark.parametrize("shape", [(300, 8), (30, 8), (40, 90)])
def test_cross_validation_is_the_same(monkeypatch, options, dtype, cv, shape):
    X, y, rng = table(3, *shape)
    X, weights = X.astype(dtype), rng.random(len(X))
    options = {"n_betas": 8, "cv": cv, **options}
    with monkeypatch.context() as patch:  # the loop is asked for the model alone
        patch.setattr(trial, "LEAD", 1)
        patch.setattr(trial.Trial, "_condensed", with_path(trial.Trial._condensed))
        found = LassoCV(**options).fit(X, y, weights)
    monkeypatch.setattr(path_cv, "condensable", lambda *_: None)
    usual = LassoCV(tol=1e-9, **options).fit(X, y, weights)
    np.testing.assert_allclose(found.betas_, usual.betas_, rtol=1e-6)
    assert found.result_.relative_gap <= 1e-4
    if shape[0] < shape[1]:  # where nothing is left to explain, solutions are not unique
        np.testing.assert_allclose(found.mse_path_[:2], usual.mse_path_[:2], rtol=1e-4)
        return
    np.testing.assert_allclose(found.mse_path_, usual.mse_path_, rtol=1e-4)
    assert found.beta_ == pytest.approx(usual.beta_)
    np.testing.assert_allclose(found.coef_, usual.coef_, atol=1e-5 * np.abs(usual.coef_).max())


def with_path(condensed_fold):
    """A fold that must have a path of its own."""

    def checked(*arguments):
        few, path = condensed_fold(*arguments)
        assert path is not None
        return few, path

    return checked


def test_every_model_of_a_fold_is_certified_by_scikit_learn():
    X, y, _ = table(5, 60, 100)
    model = LassoCV(n_betas=6, cv=3).fit(X, y)
    for k, (train, _) in enumerate(KFold(3).split(X)):
        for r in (1, 2, 3):
            coef = model.coefs_paths_[k, r, 0, :-1]
            rest = y[train] - X[train] @ coef
            slopes = X[train].T @ (rest - rest.mean()) / len(train)
            alpha = np.abs(slopes).max()
            theirs = Penalised(alpha, tol=1e-12, max_iter=100_000).fit(X[train], y[train])
            np.testing.assert_allclose(coef, theirs.coef_, atol=1e-5 * np.abs(coef).max())
            assert model.coefs_paths_[k, r, 0, -1] == pytest.approx(theirs.intercept_, rel=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": Solver(callbacks=[lambda state: None])},
        {"solver": "away"},
        {"max_rounds": 300},
        {"cluster": LocalCluster(1)},
    ],
)
def test_who_asks_for_another_way_goes_it(monkeypatch, options):
    X, y, _ = table(6)
    monkeypatch.setattr(trial.WholePath, "models", None)  # it would not be callable
    assert LassoCV(betas=[1.0, 3.0], cv=2, **options).fit(X, y).mse_path_.shape == (2, 2)


def test_a_path_that_is_lost_is_gone_by_rounds(monkeypatch):
    X, y, _ = table(7, 60, 30)
    usual = LassoCV(n_betas=8, cv=3).fit(X, y)
    asked = []

    def lost(self, radii, tol=None):
        asked.append(len(radii))

    monkeypatch.setattr(trial.WholePath, "models", lost)
    found = LassoCV(n_betas=8, cv=3).fit(X, y)
    assert asked[0] > 3  # all steps of the walk at once
    assert asked[1:4] == [8, 8, 8]  # the folds
    np.testing.assert_allclose(found.betas_, usual.betas_, rtol=1e-5)
    np.testing.assert_allclose(found.mse_path_, usual.mse_path_, rtol=1e-3)
    np.testing.assert_allclose(found.coef_, usual.coef_, atol=1e-4)
