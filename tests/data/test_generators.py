"""Synthetic problems have the properties that the paper asks for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestNeighbors

from atomcast.data import (
    Shards,
    generators,
    make_lower_bound,
    make_sparse_regression,
    make_speech_like,
)


def test_sparse_regression_has_the_densities_asked_for():
    X, y, alpha = make_sparse_regression(2_000, 5_000, 0.01, 0.02)
    assert X.format == "csc"
    assert X.shape == (2_000, 5_000)
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert abs(X.nnz - 100_000) < 5 * np.sqrt(100_000)
    assert np.count_nonzero(alpha) == 100
    assert_allclose([X.data.mean(), X.data.std()], [0, 1], atol=0.02)
    rows = np.bincount(X.indices, minlength=2_000)
    assert_allclose(rows.mean(), rows.var(), rtol=0.1)  # binomial with small p: mean = variance
    residual = y - X @ alpha
    assert_allclose(residual.var(), 1e-3, rtol=0.15)
    assert abs(residual.mean()) < 0.004


def test_noise_is_a_variance():
    X, y, alpha = make_sparse_regression(4_000, 50, 0.1, 0.1, noise=4.0)
    assert_allclose((y - X @ alpha).std(), 2.0, rtol=0.1)
    X, y, alpha = make_sparse_regression(40, 50, 0.1, 0.1, noise=0.0)
    assert_array_equal(y, X @ alpha)


@pytest.mark.parametrize("chunk", [1, 500, 1 << 26])
def test_chunks_cover_all_columns(monkeypatch, chunk):
    monkeypatch.setattr(generators, "_CHUNK_ENTRIES", chunk)
    X = make_sparse_regression(30, 400, 0.5, 0.1).X
    assert X.shape == (30, 400)
    assert np.all(np.diff(X.indptr) > 0)
    assert abs(X.nnz - 6_000) < 5 * np.sqrt(3_000)


def test_dense_and_nearly_empty_problems():
    full = make_sparse_regression(7, 9, 1.0, 1.0)
    assert full.X.nnz == 63
    assert np.count_nonzero(full.alpha) == 9
    empty = make_sparse_regression(7, 9, 1e-12, 1e-12)
    assert empty.X.nnz == 0
    assert np.count_nonzero(empty.alpha) == 1


def test_same_seed_same_problem():
    first, second, third = (
        make_sparse_regression(20, 30, 0.2, 0.2, random_state=seed) for seed in (1, 1, 2)
    )
    assert_array_equal(first.X.toarray(), second.X.toarray())
    assert_array_equal(first.y, second.y)
    assert np.any(first.y != third.y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 5, 0.1, 0.1), "d must be .*got 0"),
        ((5, -1, 0.1, 0.1), "n must be .*got -1"),
        ((5, 5, 0.0, 0.1), "atom_density=0.0"),
        ((5, 5, 0.1, 1.5), "solution_density=1.5"),
        ((5, 5, float("nan"), 0.1), "atom_density=nan"),
    ],
)
def test_sparse_regression_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_sparse_regression(*arguments)


def test_noise_cannot_be_negative():
    with pytest.raises(ValueError, match=r"noise=-1.*variance"):
        make_sparse_regression(5, 5, 0.1, 0.1, noise=-1)


@pytest.mark.parametrize(
    ("eps", "d"), [(1 / 24, 4), (1 / 240, 40), (1 / 2400, 400), (0.003, 52), (0.001, 164)]
)
def test_lower_bound_instance(eps, d):
    A, owner = make_lower_bound(eps)
    assert A.shape == (d, d)
    assert d <= 1 / (6 * eps) + 1e-6
    assert_allclose(A.T @ A, np.eye(d), atol=1e-12)
    assert_array_equal(owner, [0] * (d // 2) + [1] * (d // 2))
    assert np.all(A[: d // 2, owner == 1] == 0)
    assert np.all(A[d // 2 :, owner == 0] == 0)
    assert np.count_nonzero(A) == d * d // 2
    assert_array_equal(Shards.split(A, 2, by="contiguous").assignment(), owner)


def test_rounding_errors_do_not_cost_four_atoms():
    for d in range(4, 300, 4):
        assert len(make_lower_bound(1 / (6 * d)).owner) == d


def test_lower_bound_claim_holds_for_the_rounded_d():
    """3d/4 atoms are not enough: the best value on k atoms is 1/k, and 1/d on all."""
    for eps in np.geomspace(5e-4, 1 / 24, 60):
        d = len(make_lower_bound(eps).owner)
        assert 1 / (3 * d / 4) >= eps + 1 / d


@pytest.mark.parametrize("eps", [0.0, -0.1, 0.05, 1.0, float("nan")])
def test_lower_bound_refuses(eps):
    with pytest.raises(ValueError, match=r"eps=.*\(0, 1/24\]"):
        make_lower_bound(eps)


def test_speech_like_examples():
    X, y = make_speech_like(20_000)
    assert X.shape == (20_000, 120)
    assert X.dtype == np.float32
    assert np.all(np.isfinite(X))
    assert set(np.unique(y)) == {-1, 1}
    assert 0.05 < np.mean(y == 1) < 0.15


def test_speech_like_largest_class_can_be_learned_but_not_by_chance():
    X, y = make_speech_like(6_000)
    train, test = slice(0, 4_000), slice(4_000, None)
    direction = X[train][y[train] == 1].mean(axis=0) - X[train][y[train] == -1].mean(axis=0)
    score = X[test] @ direction
    positive, negative = score[y[test] == 1], score[y[test] == -1]
    auc = np.mean(positive[:, None] > negative[None, :])
    assert 0.8 < auc < 0.9999


def test_speech_like_examples_cluster_at_low_rank_with_little_noise():
    def nearest(**more):
        X = make_speech_like(2000, **more).X
        found = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(X).kneighbors(X)[0][:, 1]
        return np.median(found**2) / (2 * X.var(axis=0).sum())

    assert nearest(rank=4, noise=0.1) < 0.2 < nearest()
    np.testing.assert_array_equal(make_speech_like(500, rank=16).X, make_speech_like(500).X)
    for wrong in (-1.0, np.nan, np.inf, "much"):
        with pytest.raises(ValueError, match="noise="):
            make_speech_like(500, noise=wrong)
    with pytest.raises(ValueError, match="rank"):
        make_speech_like(500, rank=0)


def test_speech_like_labels_of_a_tiny_sample():
    for n in (15, 40):
        assert np.any(make_speech_like(n).y == 1)
        assert np.any(make_speech_like(n).y == -1)


def test_speech_like_into_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(generators, "_CHUNK_ROWS", 64)
    path = tmp_path / "speech.npy"
    X, y = make_speech_like(1_000, d=10, classes=3, random_state=5, out=path)
    assert isinstance(X, np.memmap)
    assert X.mode == "r"
    expected = make_speech_like(1_000, d=10, classes=3, random_state=5)
    assert_array_equal(X, expected.X)
    assert_array_equal(y, expected.y)
    assert_array_equal(np.load(path), X)


def test_speech_like_refuses(tmp_path):
    with pytest.raises(ValueError, match=r"out=.*speech\.dat.*\.npy"):
        make_speech_like(10, out=tmp_path / "speech.dat")
    with pytest.raises(ValueError, match=r"classes must be .*got 1"):
        make_speech_like(10, classes=1)
    with pytest.raises(ValueError, match=r"n must be .*got 0"):
        make_speech_like(0)
