"""Dictionaries that are learned: the error falls, and what made the signals is found."""

import numpy as np
import pytest
from scipy import sparse

from atomcast import DictionaryLearning, SparseCoder
from atomcast.estimators.dictionary_learning import distinct_rows


def signals(count=400, atoms=12, d=10, seed=0):
    """Combinations of two atoms each, and the atoms."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((atoms, d))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    W = np.zeros((count, atoms))
    for row in W:
        row[rng.choice(atoms, 2, replace=False)] = rng.choice([-1, 1], 2) * rng.uniform(1, 2, 2)
    return W @ D, D


def test_the_error_never_rises_within_balls():
    X, _ = signals()
    model = DictionaryLearning(12, beta=2.5, max_iter=12, cluster=3).fit(X)
    assert np.all(np.diff(model.error_) <= 1e-9 * model.error_[0])
    assert model.error_[-1] < 0.5 * model.error_[0]
    assert np.all(np.linalg.norm(model.components_, axis=1) <= 1 + 1e-12)
    assert model.result_.objective == pytest.approx(model.error_[-1])


def test_the_atoms_that_made_the_signals_are_found():
    X, D = signals()
    model = DictionaryLearning(12, beta=3.0, max_iter=60, tol=1e-9).fit(X)
    assert np.abs(D @ model.components_.T).max(axis=1).min() > 0.99
    assert model.error_[-1] < 0.01 * np.sum(X**2)


def test_nodes_make_no_difference_but_on_the_ledger():
    X, _ = signals(100)
    one = DictionaryLearning(8, beta=2.0, max_iter=4).fit(X)
    many = DictionaryLearning(8, beta=2.0, max_iter=4, cluster=4).fit(X)
    np.testing.assert_allclose(many.components_, one.components_, atol=1e-7)
    assert one.result_.ledger.values == 0
    phases = {one.phase for one in many.result_.ledger.disclosures}
    assert phases == {f"coding {k}" for k in range(1, many.n_iter_ + 1)}
    assert many.result_.ledger.by_kind()["target"].values == 4 * X.size


@pytest.mark.parametrize("how", [{"beta": 2.0}, {"n_nonzero": 2}])
def test_a_signal_with_a_weight_is_as_good_as_so_many_in_any_order(how):
    X, _ = signals(60)
    weights = np.arange(60) % 4
    many = np.random.default_rng(0).permutation(np.repeat(np.arange(60), weights))
    model = DictionaryLearning(14, **how, max_iter=6, cluster=2)
    weighted, error = model.fit(X, sample_weight=weights).components_, model.error_
    repeated = model.fit(X[many])
    np.testing.assert_allclose(weighted, repeated.components_, atol=1e-6)
    np.testing.assert_allclose(error, repeated.error_)
    assert np.abs(weighted - model.fit(X).components_).max() > 0.1
    with pytest.raises(ValueError, match="sample_weight must be 60 finite numbers"):
        model.fit(X, sample_weight=-weights)


def test_of_a_coder_nothing_is_fitted_that_weights_could_change():
    with pytest.raises(TypeError, match="sample_weight"):
        SparseCoder().fit(np.eye(3), sample_weight=np.ones(3))


def test_new_signals_are_coded_over_the_learned_dictionary():
    X, _ = signals(120)
    model = DictionaryLearning(8, n_nonzero=2, max_iter=3).fit(X[:100])
    expected = SparseCoder(model.components_, n_nonzero=2).transform(X[100:])
    np.testing.assert_array_equal(model.transform(X[100:]).toarray(), expected.toarray())


def test_a_signal_of_rounding_errors_is_no_element():
    X = np.random.default_rng(0).standard_normal((5, 8))
    X[3] = 1e-16  # what is left of a blank patch less its mean
    model = DictionaryLearning(5, n_nonzero=1, max_iter=1).fit(X)
    assert np.ptp(model.components_, axis=1).min() > 0.1


def test_elements_that_nobody_uses_start_again():
    X, _ = signals(60, atoms=5)
    start = DictionaryLearning(30, n_nonzero=1, max_iter=1).fit(X)
    model = DictionaryLearning(30, n_nonzero=1, max_iter=15).fit(X)
    used = np.unique(model.transform(X).indices)
    assert len(used) > len(np.unique(start.transform(X).indices)) or len(used) == 30


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_components": 0}, "n_components must be a whole number >= 1"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
        ({"tol": 0.0}, "tol must be a finite number > 0"),
        ({"n_components": 3, "n_nonzero": 4}, "n_nonzero=4 is more than the 3 atoms"),
    ],
)
def test_bad_parameters(wrong, says):
    with pytest.raises(ValueError, match=says):
        DictionaryLearning(**wrong).fit(signals(20)[0])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_distinct_rows_are_those_of_numpy(form):
    rng = np.random.default_rng(0)
    for _ in range(100):
        shape = tuple(rng.integers(1, 40, 2))
        X = rng.integers(-1, rng.integers(1, 4), shape) * (rng.random(shape) < rng.random())
        rows = np.flatnonzero(rng.random(len(X)) < 0.8)
        _, first = np.unique(X[rows], axis=0, return_index=True)
        np.testing.assert_array_equal(distinct_rows(form(X + 0.0), rows), rows[first])


@pytest.mark.parametrize("how", [{"beta": 2.0}, {"n_nonzero": 2}])
def test_sparse_signals_are_as_good_as_dense_ones(how):
    X, _ = signals(80)
    X[np.abs(X) < 0.5] = 0.0
    model = DictionaryLearning(14, **how, max_iter=4, cluster=2)
    dense = model.fit(X).components_
    np.testing.assert_allclose(model.fit(sparse.csc_array(X)).components_, dense, atol=1e-7)
