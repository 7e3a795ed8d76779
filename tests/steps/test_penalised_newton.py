"""The best weights of known atoms where their norm costs something."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import Lasso as TheirLasso
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from atomcast import SparseLogisticRegression
from atomcast.atoms import multiclass
from atomcast.domains.balls import L1Ball, SolidSimplex
from atomcast.messages.atom import Atom
from atomcast.objectives import Multinomial
from atomcast.steps.inner.penalised_newton import one_by_one


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.1, 1e-3])
@pytest.mark.parametrize("seed", range(4))
def test_weights_that_come_and_go_one_by_one_are_those_of_scikit_learn(seed, share, positive):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 12))
    X += 0.1 * rng.standard_normal(X.shape)  # much alike: many come that will leave
    y = X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(40)
    penalty = share * np.abs(X.T @ y).max()
    start = np.where(rng.random(12) < 0.3, rng.random(12), 0.0)
    domain = SolidSimplex(1.0) if positive else L1Ball(1.0)
    found = one_by_one(domain, X.T @ X, start, X.T @ (X @ start - y), penalty)
    theirs = TheirLasso(
        alpha=penalty / 40, fit_intercept=False, tol=1e-14, max_iter=10**6, positive=positive
    ).fit(X, y)
    np.testing.assert_allclose(found, theirs.coef_, atol=1e-6 * np.abs(theirs.coef_).max() + 1e-12)


def test_nothing_joins_where_nothing_pays():
    found = one_by_one(L1Ball(1.0), np.eye(3), np.zeros(3), np.array([1.0, -2.0, 0.5]), 2.0)
    np.testing.assert_array_equal(found, np.zeros(3))


def test_copies_are_not_easy():
    X = np.ones((5, 2))
    assert one_by_one(L1Ball(1.0), X.T @ X, np.ones(2), X.T @ np.ones(5), 0.1) is None


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_classes_of_a_small_table_are_those_of_saga(load, C):
    """Weights of all classes of a feature may grow together: no direction is flatter."""
    X, y = load(return_X_y=True)
    X = scale(X)
    model = SparseLogisticRegression(C=C, tol=1e-9).fit(X, y)
    theirs = LogisticRegression(
        C=C, l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=10**6, random_state=0
    ).fit(X, y)
    assert model.result_.status == "optimal"
    assert model.n_iter_ == 1
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("few", [0, multiclass.FEW])
def test_the_bends_of_weights_of_several_classes(few, intercept, monkeypatch):
    monkeypatch.setattr(multiclass, "FEW", few)
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((30, 4)), np.arange(30) % 3
    active = multiclass.MulticlassActiveSet(Multinomial(y, intercept, rng.uniform(0.5, 2.0, 30)))
    active.append([Atom(j, 30, A[:, j].copy()) for j in range(4)])
    start, step = 0.3 * rng.standard_normal(12), 1e-5
    active.set_weights(start)
    some = np.array([0, 1, 4, 5, 9, 11])
    found, numerical = active.hessian(some), []
    for j in some:
        slopes = []
        for way in (step, -step):
            active.set_weights(start + way * np.eye(12)[j])
            slopes.append(active.scores()[some])
        numerical.append((slopes[0] - slopes[1]) / (2 * step))
    np.testing.assert_allclose(found, numerical, rtol=1e-6, atol=1e-7)
