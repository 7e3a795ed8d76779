"""Arrays that need none of scikit-learn's conversions are fitted as if it had made them."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from atomcast import KernelSVC, Lasso, Shards, SparseLogisticRegression
from atomcast.domains.balls import L1Ball
from atomcast.estimators import inputs
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


@pytest.mark.parametrize(
    "y",
    [
        np.where(ABOVE, 1.0, -1.0),
        np.where(ABOVE, 7, -3).astype(np.int8),
        np.arange(40) % 3.0,
        np.ones(40),
        np.where(ABOVE, 0.5, 1.0),
        np.where(ABOVE, 2.0**60, 1.0),
        np.where(ABOVE, 1e300, 1.0),
        np.where(ABOVE, np.nan, 1.0),
        np.where(ABOVE, np.inf, 1.0),
        np.where(ABOVE, np.inf, -np.inf),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_labels_are_classes_where_scikit_learn_says_so(y):
    def verdict(check):
        try:
            return check(y)
        except ValueError as error:
            return str(error)

    assert verdict(inputs.check_classes) == verdict(check_classification_targets)
    classes, numbers = inputs.classes_of(y)
    expected = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected[0])
    np.testing.assert_array_equal(numbers, expected[1])
    assert (classes.dtype, numbers.dtype) == (y.dtype, np.int64)


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


@pytest.mark.parametrize("form", ["csc_array", "csr_array", "csc_matrix", "csr_matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_matrices_are_fitted_as_if_scikit_learn_had_checked_them(form, dtype, monkeypatch):
    Z = getattr(sparse, form)(np.where(np.abs(X) > 0.5, X, 0.0).astype(dtype))
    quickly = Lasso(2.0).fit(Z, X[:, 0])
    monkeypatch.setattr(inputs, "_is_plain", lambda *_: False)
    slowly = Lasso(2.0).fit(Z, X[:, 0])
    np.testing.assert_array_equal(quickly.coef_, slowly.coef_)
    np.testing.assert_array_equal(quickly.predict(Z), slowly.predict(Z))
    assert quickly.n_features_in_ == slowly.n_features_in_ == 6


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda Z: Z.data.__setitem__(2, np.nan), "NaN"),
        (lambda Z: Z.data.__setitem__(2, np.inf), "infinity"),
        (lambda Z: Z.indices.__setitem__(2, 40), "outside 0 ... 39"),
        (lambda Z: Z.indptr.__setitem__(2, 0), "indptr goes down"),
    ],
)
def test_what_is_wrong_with_a_sparse_matrix_is_still_said(spoil, message):
    Z = sparse.csc_array(X)
    spoil(Z)
    with pytest.raises(ValueError, match=message):
        Lasso(2.0).fit(Z, X[:, 0])
    with pytest.raises(ValueError, match="has 7 features"):
        Lasso(2.0).fit(X, X[:, 0]).predict(sparse.csc_array(np.ones((3, 7))))
