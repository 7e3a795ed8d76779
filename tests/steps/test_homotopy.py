"""From face to face to the best weights: against the exact path of scikit-learn's LARS."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import lars_path

from atomcast import Lasso, LassoCV
from atomcast.domains.balls import L1Ball, SolidSimplex
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom
from atomcast.objectives import SquaredError
from atomcast.steps.inner import choice
from atomcast.steps.inner.homotopy import minimise_by_homotopy


def drawn(seed: int, d: int, n: int, kind: str = "independent"):
    """Columns, and a target that some of them explain."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    if kind == "correlated":
        X += 2.0 * rng.standard_normal((d, 1))
    w = np.zeros(n)
    w[:10] = np.abs(rng.standard_normal(10))
    y = X @ w + 0.5 * rng.standard_normal(d)
    if kind == "badly scaled":
        X = X * 10.0 ** rng.uniform(-2.0, 2.0, n)
    return X, y


def known(X, y, fit_intercept=False):
    """All columns known, with weights of zero."""
    active = ExplicitActiveSet(SquaredError(y, fit_intercept))
    active.append([Atom(j, len(y), column) for j, column in enumerate(X.T.copy())])
    return active


def lars_at(X, y, radii, positive=False):
    """The weights at each radius, between the knots of the path."""
    *_, coefs = lars_path(X, y, method="lasso", positive=positive)
    norms = np.abs(coefs).sum(axis=0)
    return np.array([[np.interp(r, norms, row) for row in coefs] for r in radii]), norms[-1]


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", ["independent", "correlated", "badly scaled"])
@pytest.mark.parametrize("shape", [(60, 40), (40, 90)])
@pytest.mark.parametrize("warm", [True, False])
def test_it_is_the_path_of_lars(kind, shape, warm, positive):
    X, y = drawn(0, *shape, kind)
    end = lars_at(X, y, [1.0], positive)[1]
    # Rising radii, and back again: the way leads in both directions.
    radii = end * np.array([0.05, 0.2, 0.5, 0.8, 0.9, 0.4, 0.6])
    expected = lars_at(X, y, radii, positive)[0]
    active = known(X, y)
    for radius, weights in zip(radii, expected, strict=True):
        if not warm:
            active = known(X, y)
        domain = (SolidSimplex if positive else L1Ball)(float(radius))
        norm = np.abs(active.weights).sum()
        if norm > radius:
            active.set_weights(radius / norm * active.weights)
        assert minimise_by_homotopy(domain, active, 1e-9 * float(y @ y))
        assert np.abs(active.weights).sum() <= radius * (1.0 + 1e-12)
        np.testing.assert_allclose(X @ active.weights, X @ weights, atol=1e-6 * np.abs(y).max())


def test_atoms_that_come_later_join_on_the_way():
    X, y = drawn(1, 80, 120)
    radius = 0.7 * lars_at(X, y, [1.0])[1]
    expected = lars_at(X, y, [radius])[0][0]
    active = known(X[:, 60:], y)  # without those that matter most
    assert minimise_by_homotopy(L1Ball(radius), active, 1e-9)
    active.append([Atom(1000 + j, len(y), X[:, j].copy()) for j in range(60)])
    assert minimise_by_homotopy(L1Ball(radius), active, 1e-9)
    np.testing.assert_allclose(np.roll(active.weights, 60), expected, atol=1e-7)


def test_where_the_ball_does_not_bind_it_ends_at_least_squares():
    X, y = drawn(2, 60, 20)
    active = known(X, y, fit_intercept=True)
    assert minimise_by_homotopy(L1Ball(1e3), active, 1e-9)
    centred = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(active.weights, centred, atol=1e-8)


def test_from_within_the_ball_it_goes_to_the_border():
    X, y = drawn(3, 60, 50)
    radius = 0.8 * lars_at(X, y, [1.0])[1]
    active = known(X[:, 10:], y)  # what is left of the target needs no large weights
    inside = np.linalg.lstsq(X[:, 10:13], y, rcond=None)[0]
    start = np.append(inside, np.zeros(37))
    assert np.abs(inside).sum() < radius
    active.set_weights(start)
    active.append([Atom(1000 + j, len(y), X[:, j].copy()) for j in range(10)])
    assert minimise_by_homotopy(L1Ball(radius), active, 1e-9)
    expected = lars_at(X, y, [radius])[0][0]
    np.testing.assert_allclose(np.roll(active.weights, 10), expected, atol=1e-7)


@pytest.mark.parametrize("share", [0.3, 0.9, 2.0])
def test_columns_that_are_there_twice(share):
    X, y = drawn(4, 30, 25)
    radius = share * lars_at(X, y, [1.0])[1]
    active = known(np.hstack([X, X, -X]), y)
    tolerance = 1e-8 * float(y @ y)
    assert minimise_by_homotopy(L1Ball(radius), active, tolerance)
    gap = active.inner() + radius * np.abs(active.scores()).max()
    assert gap <= 2.0 * tolerance


def test_the_objective_never_rises():
    X, y = drawn(5, 20, 200)
    active = known(X, y)
    rng = np.random.default_rng(5)
    for _ in range(20):  # weights from anywhere, many of them wrong: the way may be lost
        weights = np.where(rng.random(200) < 0.05, rng.standard_normal(200), 0.0)
        domain = L1Ball(float(np.abs(weights).sum()))
        active.set_weights(weights)
        before = active.value()
        minimise_by_homotopy(domain, active, 1e-9)
        assert active.value() <= before
        assert np.abs(active.weights).sum() <= domain.scale * (1.0 + 1e-12)


def test_a_path_to_the_perfect_fit_takes_it(monkeypatch):
    taken = []

    def counted(*arguments):
        taken.append(minimise_by_homotopy(*arguments))
        return taken[-1]

    monkeypatch.setattr(choice, "minimise_by_homotopy", counted)
    X, y = drawn(6, 200, 400)
    betas = lars_at(X - X.mean(axis=0), y - y.mean(), [1.0])[1] * np.array([0.3, 0.6, 0.9, 1.1])
    path = Lasso().path(X, y, betas=betas)
    assert all(result.status == "optimal" for result in path.results)
    assert np.mean(taken) > 0.9
    expected = lars_at(X - X.mean(axis=0), y - y.mean(), betas[:3])[0]
    np.testing.assert_allclose(path.coefs.T[:3] @ X.T, expected @ X.T, atol=0.1)


def test_cross_validation_predicts_as_each_model_does():
    X, y = drawn(7, 60, 80)
    model = LassoCV([1.0, 3.0, 9.0], cv=3).fit(X, y)
    held_out = np.arange(60).reshape(3, 20)
    for k, rows in enumerate(held_out):
        for r in range(3):
            *coef, intercept = model.coefs_paths_[k, r, 0]
            error = np.mean((y[rows] - X[rows] @ coef - intercept) ** 2)
            assert model.mse_path_[r, k] == pytest.approx(error)


@pytest.mark.parametrize("seed", range(5))
def test_many_that_come_in_at_once_lead_to_no_circle(seed):
    """Most rows are explained, so that nearly every column depends on those in use."""
    X, y = drawn(seed, 60, 200)
    end = lars_at(X, y, [1.0])[1]
    domain, tolerance = L1Ball(0.97 * float(end)), 1e-9 * float(y @ y)
    active = known(X[:, :90], y)
    assert minimise_by_homotopy(domain, active, tolerance)
    active.append([Atom(j, len(y), X[:, j].copy()) for j in range(90, 200)])
    assert minimise_by_homotopy(domain, active, tolerance)
