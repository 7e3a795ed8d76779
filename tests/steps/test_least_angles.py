"""The whole path of the lasso, beside scikit-learn's, which is exact as well."""

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import lars_path

from atomcast.steps.inner.least_angles import LeastAngles


def table(seed, d, n, common=0.0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n)) + common * rng.standard_normal((d, 1))
    return X, 3.0 * X[:, 0] - X[:, 1 % n] + noise * rng.standard_normal(d)


def gaps(X, y, W, radii, signed=True):
    """The duality gap of each row of weights, as a share of the sum of squares without features."""
    slopes = 2.0 * X.T @ (y[:, None] - X @ W.T)
    steepest = (np.abs(slopes) if signed else np.maximum(slopes, 0.0)).max(axis=0)
    return (radii * steepest - np.sum(slopes * W.T, axis=0)) / (y @ y)


SHAPES = [(60, 8), (30, 80), (20, 20), (50, 1), (2, 7), (90, 200)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("common", [0.0, 2.0])
def test_corners_are_those_of_scikit_learn(shape, common):
    for seed in range(4):
        X, y = table(seed, *shape, common)
        alphas, _, coefs = lars_path(X, y, method="lasso", alpha_min=1e-7)
        radii = np.abs(coefs).sum(axis=0)
        path = LeastAngles(X, y)
        weights = path.weights(radii)
        np.testing.assert_allclose(X @ weights.T, X @ coefs, atol=1e-7 * np.abs(y).max())
        # Square tables are so badly conditioned that weights are known to fewer digits.
        np.testing.assert_allclose(weights, coefs.T, atol=1e-5 * np.abs(coefs).max())
        levels = [path.penalty(radius) / (2.0 * len(y)) for radius in radii]
        np.testing.assert_allclose(levels, alphas, atol=1e-7 * alphas[0])
        assert not path.lost


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("signed", [True, False])
def test_all_weights_are_the_best_of_their_ball(shape, signed):
    for seed in range(4):
        X, y = table(seed, *shape, common=1.0)
        path, radii = LeastAngles(X, y, signed), np.geomspace(0.01, 10.0, 12)
        W = path.weights(radii)
        assert np.all(np.abs(W).sum(axis=1) <= radii * (1 + 1e-12))
        assert signed or W.min() >= 0.0
        assert gaps(X, y, W, radii, signed).max() < 1e-9


@pytest.mark.parametrize("signed", [True, False])
def test_radii_may_be_asked_for_in_any_order_and_end_where_nothing_is_left(signed):
    X, y = table(1, 40, 12)
    path = LeastAngles(X, y, signed)
    best = np.linalg.lstsq(X, y, rcond=None)[0] if signed else nnls(X, y)[0]
    most = np.abs(best).sum()
    radii = np.array([0.3, 0.9, 0.1, 2.0]) * most
    found = path.weights(radii)
    np.testing.assert_allclose(found[3], best, atol=1e-9)
    assert path.norm(radii[3]) == pytest.approx(most)
    assert path.penalty(radii[3]) == 0.0
    np.testing.assert_allclose(np.abs(found[:3]).sum(axis=1), radii[:3])
    for weights, radius in zip(found, radii, strict=True):
        alone = LeastAngles(X, y, signed).weights([radius])[0]
        np.testing.assert_allclose(weights, alone, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_between_corners_only_those_in_use_have_weights(seed):
    X, y = table(seed, 40, 90, common=1.0)
    coefs = lars_path(X, y, method="lasso", alpha_min=1e-4)[2].T
    assert np.any((coefs[:-1] != 0.0) & (coefs[1:] == 0.0))  # some leave
    between = (coefs[1:] + coefs[:-1]) / 2.0
    found = LeastAngles(X, y).weights(np.abs(between).sum(axis=1))
    np.testing.assert_array_equal(found != 0.0, np.abs(between) > 1e-9)


def test_products_need_not_be_those_of_columns():
    """Of dependent rows, whose products another table has as well."""
    X, y = table(3, 30, 70)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 30)))[0]
    gram, radii = X.T @ X, np.geomspace(0.1, 5.0, 8)
    path = LeastAngles(Q @ X, Q @ y, products=gram.__getitem__)
    np.testing.assert_allclose(path.weights(radii), LeastAngles(X, y).weights(radii), atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_columns_that_depend_on_others_are_mostly_left_out(seed):
    X, y = table(seed, 40, 10)
    X = np.hstack([X, X[:, :4], -X[:, 2:5], np.zeros((40, 1)), X[:, :2] @ [[1.0], [1.0]]])
    path, radii = LeastAngles(X, y), np.array([0.5, 2.0, 3.5, 10.0])
    assert gaps(X, y, path.weights(radii), radii).max() < 1e-9
    assert not path.lost


def test_ties_are_no_trouble():
    """Columns of an orthogonal design with equal scores all join at the same corner."""
    X, y = np.eye(6), np.array([2.0, 2.0, -2.0, 1.0, 1.0, 0.0])
    path = LeastAngles(X, y)
    np.testing.assert_allclose(path.weights([1.5])[0], [0.5, 0.5, -0.5, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(path.weights([5.5])[0], [1.5, 1.5, -1.5, 0.5, 0.5, 0], atol=1e-12)
    np.testing.assert_allclose(path.weights([99.0])[0], y, atol=1e-12)


@pytest.mark.parametrize("signed", [True, False])
def test_nothing_is_of_use(signed):
    path = LeastAngles(np.ones((5, 3)), np.zeros(5), signed)
    assert path.penalty(1.0) == 0.0
    assert not path.weights([0.0, 1.0]).any()
    worse = LeastAngles(np.ones((5, 3)), -np.ones(5), signed=False)
    assert not worse.weights([1.0]).any()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_what_squares_cannot_be_taken_of_is_lost(scale):
    X, y = table(0, 20, 5)
    path, radii = LeastAngles(scale * X, y), np.array([1.0 / scale])
    weights = path.weights(radii)
    assert path.lost or not np.isfinite(gaps(scale * X, y, weights, radii)).all()
