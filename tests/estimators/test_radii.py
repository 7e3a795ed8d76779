"""Radii that nobody gives come from the penalised path: the models are those of scikit-learn."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV as PenalisedCV
from sklearn.linear_model import LogisticRegressionCV, lars_path
from sklearn.linear_model import lasso_path as penalised_path
from sklearn.metrics import log_loss

from atomcast import LassoCV, Shards, Solver, SparseLogisticRegressionCV, lasso_path

SHAPES = {"tall": (60, 8), "wide": (30, 60), "tiny": (10, 5), "correlated": (40, 15)}
KINDS = [*SHAPES, "scaled y", "scaled columns", "exact", "far from zero", "weak", "two"]


def drawn(kind, seed):
    """A problem of some kind: rows to fit, and as many more to judge the fit by."""
    rng = np.random.default_rng(seed)
    rows, n = SHAPES.get(kind, (40, 2 if kind == "two" else 12))
    X = rng.standard_normal((rows + 300, n))
    if kind == "correlated":
        X += 2.0 * rng.standard_normal((len(X), 3)) @ rng.standard_normal((3, n))
    if kind == "two":  # they hide each other's worth
        X[:, 1] -= 0.6 / 0.8 * X[:, 0]
    if kind == "scaled columns":
        X *= 10.0 ** rng.uniform(-1, 1, n)
    w = np.where(rng.random(n) < 0.4, 1.0 + rng.standard_normal(n), 0.0) / X.std(axis=0)
    w[0] = 2.0 / X[:, 0].std()
    noise = {"exact": 0.0, "weak": 2.0, "two": 0.01}.get(kind, rng.choice([0.1, 0.3, 1.0]))
    z = X @ w
    y = z + noise * z.std() * rng.standard_normal(len(X))
    y = {"scaled y": 10.0 ** rng.uniform(-8, 8) * y, "far from zero": y + 1e3}.get(kind, y)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def within_noise(theirs, norm, X, y):
    """Whether their own validation cannot tell their best model from their one of this norm."""
    _, coefs, _ = penalised_path(X - X.mean(axis=0), y - y.mean(), alphas=theirs.alphas_)
    near = np.argmin(np.abs(np.abs(coefs).sum(axis=0) - norm))
    best = np.argmin(theirs.mse_path_.mean(axis=1))
    worse = theirs.mse_path_[near] - theirs.mse_path_[best]
    return worse.mean() <= 2.0 * worse.std(ddof=1) / np.sqrt(len(worse))


@pytest.mark.parametrize("kind", KINDS)
def test_never_worse_than_with_penalties_but_by_noise(kind):
    gains = []
    for seed in range(10):
        X, y, new_X, new_y = drawn(kind, seed)
        ours = quietly(LassoCV(n_betas=12, cv=4), X, y)
        theirs = quietly(PenalisedCV(alphas=50, cv=4), X, y)
        gains.append(ours.score(new_X, new_y) - theirs.score(new_X, new_y))
        assert gains[-1] > -0.02 or within_noise(theirs, ours.beta_, X, y), (seed, gains[-1])
    assert np.median(gains) > -0.005


def test_logistic_models_are_as_good_too():
    gains = []
    for seed in range(8):
        kind = ["tall", "wide", "correlated", "scaled columns"][seed % 4]
        X, y, new_X, new_y = drawn(kind, seed)
        rng = np.random.default_rng(seed)
        labels, new = (rng.random(len(t)) < expit(3 * (t - y.mean()) / y.std()) for t in (y, new_y))
        ours = quietly(SparseLogisticRegressionCV(n_betas=10, cv=3), X, labels)
        how = {"l1_ratios": (1.0,), "solver": "liblinear", "scoring": "neg_log_loss"}
        theirs = LogisticRegressionCV(Cs=np.geomspace(1e-2, 1e3, 12), cv=3, **how)
        theirs = quietly(theirs.set_params(use_legacy_attributes=False), X, labels)
        gains.append(log_loss(new, theirs.predict_proba(new_X)))
        gains[-1] -= log_loss(new, ours.predict_proba(new_X))
    assert min(gains) > -0.1
    assert np.mean(gains) > -0.01


def test_two_features_that_hide_each_other():
    """One step in a huge ball says nothing of the scale: radii once ended at 1, at R2 0.01."""
    X, _, _, _ = drawn("two", 0)
    y = 100.0 * (X[:, 0] + X[:, 1])
    assert LassoCV().fit(X, y).score(X, y) > 0.9999


def test_radii_follow_the_scale_of_the_target_and_of_the_features():
    X, y, _, _ = drawn("correlated", 1)
    plain = LassoCV(n_betas=6, cv=3).fit(X, y)
    for scale in (1e-9, 1e9):
        np.testing.assert_allclose(
            LassoCV(n_betas=6, cv=3).fit(X, scale * y).betas_, scale * plain.betas_, rtol=1e-6
        )
        np.testing.assert_allclose(
            LassoCV(n_betas=6, cv=3).fit(scale * X, y).betas_, plain.betas_ / scale, rtol=1e-6
        )


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_path_ends_at_a_thousandth_of_the_largest_penalty(nodes):
    """The reference is exact: least angle regression."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X - X.mean(axis=0), y - y.mean()
    alphas, _, coefs = lars_path(X, y, method="lasso")
    norms = np.abs(coefs).sum(axis=0)
    wanted = np.interp(-alphas[0] * 1e-3 ** (np.arange(20) / 19), -alphas, norms)
    shards = Shards.split(X, nodes)
    path = lasso_path(shards, y, n_betas=20, fit_intercept=False, solver=Solver(tol=1e-8))
    np.testing.assert_allclose(path.betas[-1], wanted[-1], rtol=1e-3)
    # In between, the path is followed in steps of a half: radii are right to a few per cent.
    np.testing.assert_allclose(path.betas[1:], wanted[1:], rtol=0.1)
    assert path.betas[0] < 0.01 * wanted[1]


def test_a_walk_goes_back_where_the_penalty_leaps():
    """Of badly scaled columns, the penalty falls by orders of magnitude within a step."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 4)) * 10.0 ** rng.uniform(-4.0, 4.0, 4)
    y = X @ (rng.standard_normal(4) / np.abs(X).max(axis=0)) + 0.3 * rng.standard_normal(60)
    X, y = X - X.mean(axis=0), y - y.mean()
    alphas, _, coefs = lars_path(X, y, method="lasso")
    end = np.interp(-1e-3 * alphas[0], -alphas, np.abs(coefs).sum(axis=0))
    path = lasso_path(Shards.split(X, 2), y, n_betas=20, fit_intercept=False)
    np.testing.assert_allclose(path.betas[-1], end, rtol=2e-3)


def test_the_walk_sends_hardly_more_than_its_end_needs():
    X, y, _, _ = drawn("wide", 3)
    model = quietly(LassoCV(n_betas=8, cv=2, cluster=4), X, y)
    first, walk = model.ledgers_[:2]
    assert first.atoms_sent == 0  # scores alone tell the largest penalty
    path = lasso_path(X, y, betas=[model.betas_[7]], cluster=4)
    assert walk.atoms_sent <= 1.3 * path.results[0].ledger.atoms_sent


def late(rows=60):
    """Two features, of which one is so small that its turn comes late."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 2))
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(rows)
    return X * [1.0, 3e-3], y


def test_the_path_goes_on_until_the_error_turns():
    X, y = late()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LassoCV(n_betas=20).fit(X, y)
    assert model.mse_path_.shape == (len(model.betas_), 5)
    assert model.beta_ > model.betas_[19]
    assert np.all(np.diff(model.betas_) > 0)
    assert model.score(X, y) > 0.98


def test_the_end_of_radii_that_are_given_is_warned_about():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(UserWarning, match=r"largest radius tried, 300, is the best.*larger betas"):
        LassoCV(betas=[10.0, 100.0, 300.0], cv=3).fit(X, y)
    noise = np.random.default_rng(0).standard_normal(len(y))
    with pytest.warns(UserWarning, match=r"smallest radius tried, 10, is the best.*smaller betas"):
        LassoCV(betas=[10.0, 100.0, 300.0], cv=3).fit(X, noise)
    with pytest.warns(UserWarning, match="no feature helps"):
        SparseLogisticRegressionCV(n_betas=6, cv=3).fit(X, noise > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LassoCV(betas=[10.0, 1000.0, 1e5, 1e6], cv=3).fit(X, y)


@pytest.mark.parametrize("n_betas", [0, -3, 2.5, True, "many"])
def test_bad_numbers_of_radii(n_betas):
    X, y, _, _ = drawn("tiny", 0)
    for fit in (LassoCV(n_betas=n_betas).fit, lambda X, y: lasso_path(X, y, n_betas=n_betas)):
        with pytest.raises(ValueError, match="n_betas must be a whole number >= 1"):
            fit(X, y)
