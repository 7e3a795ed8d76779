"""Sums of stumps by least squares: the lasso over all stumps, written out."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso as TheirLasso

from atomcast import L1BoostRegressor, Shards
from problems import regression

X, Y = regression(seed=3, d=30, n=4)


def all_stumps(data):
    """What each stump that the training rows tell from others says of some rows."""
    parts = []
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        above = data[:, [feature]] > (values[1:] + values[:-1]) / 2
        parts.append(np.where(above, 1.0, -1.0))
    return np.hstack(parts)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_lasso_over_all_stumps(weighted):
    weights = np.random.default_rng(0).uniform(0.1, 2, len(Y)) if weighted else None
    ours = L1BoostRegressor(alpha=0.05, tol=1e-10, cluster=2).fit(X, Y, weights)
    theirs = TheirLasso(0.05, tol=1e-12, max_iter=10**6).fit(all_stumps(X), Y, weights)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(all_stumps(X)), atol=1e-5)
    assert ours.beta_ == pytest.approx(np.abs(theirs.coef_).sum(), rel=1e-4)
    again = L1BoostRegressor(beta=ours.beta_, tol=1e-10).fit(Shards.split(X, 3), Y, weights)
    assert again.alpha_ == pytest.approx(0.05, rel=1e-4)
    new = np.random.default_rng(1).standard_normal((9, 4))
    np.testing.assert_allclose(again.predict(X), ours.predict(X), atol=1e-4)
    np.testing.assert_allclose(again.predict(Shards.split(new, 2)), again.predict(new))
    assert ours.feature_importances_.sum() == pytest.approx(1.0)


def test_values_may_be_missing():
    gaps = X.copy()
    gaps[::5, 1] = np.nan
    model = L1BoostRegressor(beta=3.0).fit(gaps, Y)
    assert model.result_.status == "optimal"
    assert model.score(gaps, Y) > 0.3


def test_stumps_one_after_the_other():
    model = L1BoostRegressor(beta=2.0).fit(X, Y)
    stages = list(model.staged_predict(X))
    assert len(stages) == len(model.estimators_) == model.n_estimators_ > 1
    np.testing.assert_allclose(stages[-1], model.predict(X))
    votes = np.array([stump.predict(X) for stump in model.estimators_])
    first = model.intercept_ + model.estimator_weights_[0] * votes[0]
    np.testing.assert_allclose(stages[0], first)
    np.testing.assert_allclose(model.estimator_weights_ @ votes + model.intercept_, stages[-1])


def test_a_number_of_stumps(recwarn):
    model = L1BoostRegressor(beta=3.0, n_estimators=4, cluster=2).fit(X, Y)
    assert (model.result_.status, model.result_.ledger.atoms_sent) == ("reached", 4)
    assert 1 < model.n_estimators_ <= 4
    many = L1BoostRegressor(beta=3.0, n_estimators=10**4).fit(X, Y)
    assert many.result_.status == "optimal"
    assert not recwarn.list


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"beta": 3.0, "n_estimators": 0}, "n_estimators must be a whole number >= 1"),
        ({"alpha": 0.1, "n_estimators": 4}, "n_estimators=4 is for one ball.*: give beta"),
        ({"n_estimators": 4}, "n_estimators=4 is for one ball.*: give beta"),
    ],
)
def test_numbers_of_stumps_that_are_refused(how, words):
    with pytest.raises(ValueError, match=words):
        L1BoostRegressor(**how).fit(X, Y)
