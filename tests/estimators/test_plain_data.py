"""Arrays that need none of scikit-learn's conversions are fitted as if it had made them."""

import warnings

import numpy as np
import pytest

from atomcast import KernelSVC, Lasso, Shards, SparseLogisticRegression
from atomcast.domains.balls import L1Ball
from atomcast.network.star import lone_star

X = np.random.default_rng(0).standard_normal((40, 6))
ABOVE = X[:, 0] > 0.0


@pytest.mark.parametrize("make", [lambda: SparseLogisticRegression(2.0), lambda: KernelSVC()])
@pytest.mark.parametrize(
    "y",
    [ABOVE, ABOVE.astype(int), ABOVE.astype(float), np.where(ABOVE, "yes", "no")],
    ids=["bool", "int", "float", "str"],
)
def test_classes_of_any_kind(make, y):
    model, slowly = make().fit(X, y), make().fit(X, y.tolist())
    np.testing.assert_array_equal(model.classes_, slowly.classes_)
    np.testing.assert_array_equal(model.decision_function(X), slowly.decision_function(X))
    assert model.n_features_in_ == 6


def test_as_many_classes_as_examples_are_still_remarked_on():
    with pytest.warns(UserWarning, match="unique classes"):
        KernelSVC().fit(X, np.arange(40))


def test_what_is_wrong_with_a_target_is_still_said():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SparseLogisticRegression(2.0).fit(X, ABOVE[1:])
    with pytest.raises(ValueError, match="continuous"):
        SparseLogisticRegression(2.0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="only one class"):
        SparseLogisticRegression(2.0).fit(X, np.ones(40, dtype=int))
    with pytest.raises(ValueError, match="NaN"):
        Lasso(1.0).fit(X, np.full(40, np.nan))


def test_whole_numbers_are_a_target():
    y = np.arange(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, slowly = Lasso(3.0).fit(X, y), Lasso(3.0).fit(X, y.tolist())
    np.testing.assert_array_equal(model.coef_, slowly.coef_)


def test_only_data_that_was_looked_at_counts_as_finite():
    spoilt = X.copy()
    spoilt[3, 2] = np.inf
    shards = Shards.split(X, 1)
    assert not shards.finite
    shards.finite = True
    assert shards.shard(0).finite
    assert not shards.with_matrix(spoilt).finite
    with pytest.raises(ValueError, match="column 2 contains infinity"):
        Lasso(1.0).fit(Shards.split(spoilt, 2), X[:, 0])


def test_fits_alone_do_not_share_a_clock():
    first, second = lone_star(), lone_star()
    first.links.work(np.array([0]), np.array([3.0]))
    assert first.links.clock.tolist() == [3.0]
    assert second.links.clock.tolist() == lone_star().links.clock.tolist() == [0.0]
    assert not second.links.timed


def test_a_score_of_zero_enters_with_a_positive_sign():
    assert L1Ball(1.0).signs(np.array([0.0, -0.0, 2.0, -2.0])).tolist() == [1.0, 1.0, -1.0, 1.0]
