"""Kernel values against scikit-learn's, and the ways in which they can go wrong."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

from atomcast.known.kernels.functions import RBF, KernelSpec, estimated_gamma

KERNELS = [
    (KernelSpec("rbf", 0.3), lambda X, Z: pairwise.rbf_kernel(X, Z, 0.3)),
    (KernelSpec("linear"), pairwise.linear_kernel),
    (KernelSpec("poly", 0.5, 3, 1.5), lambda X, Z: pairwise.polynomial_kernel(X, Z, 3, 0.5, 1.5)),
    (KernelSpec("laplacian", 0.2), lambda X, Z: pairwise.laplacian_kernel(X, Z, 0.2)),
]


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 7)) * (rng.random((300, 7)) < 0.6)
    return X, X[:40] + 0.1


def test_one_point_among_few_is_as_exact_as_many(points):
    X, Z = points
    kernel = RBF(0.3)
    for x in (X[:1], Z[5:6].astype(np.float32)):
        exact = pairwise.rbf_kernel(x.astype(np.float64), Z, 0.3)
        np.testing.assert_allclose(kernel.block(x, Z), exact, rtol=1e-12)
    assert kernel.block(Z[5:6], Z)[0, 5] == 1.0
    assert kernel.block(X[:1], Z, np.float32).dtype == np.float32


@pytest.mark.parametrize(("spec", "reference"), KERNELS, ids=lambda x: getattr(x, "kernel", ""))
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_block_and_diagonal_equal_scikit_learn(points, spec, reference, kind):
    X, Z = points
    make = sparse.csr_array if kind == "sparse" else np.asarray
    kernel = spec.resolve(make(X))
    np.testing.assert_allclose(kernel.block(make(X), make(Z)), reference(X, Z), rtol=1e-11)
    np.testing.assert_allclose(kernel.diagonal(make(X)), np.diag(reference(X, X)), rtol=1e-11)
    single = kernel.block(make(X), make(Z), np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, reference(X, Z), rtol=2e-5, atol=1e-6)


def test_wide_sparse_points_are_not_made_dense(points):
    X, Z = (
        sparse.hstack([sparse.csr_array(P), sparse.csr_array((len(P), 5000))], format="csr")
        for P in points
    )
    got = RBF(0.3).block(X, Z)
    np.testing.assert_allclose(got, pairwise.rbf_kernel(X, Z, 0.3), rtol=1e-11)


def test_far_from_the_origin_distances_stay_exact():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 5)) + 1e7
    kernel = KernelSpec("rbf", 0.5).resolve(X)
    direct = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    np.testing.assert_allclose(kernel.block(X, X), direct, rtol=1e-7)


def test_a_feature_of_extreme_size_does_not_overflow_single_precision():
    X = np.array([[1e20, 0.0], [1e20, 1.0], [0.0, 0.0]], dtype=np.float32)
    kernel = KernelSpec("rbf", 1.0).resolve(X)
    block = kernel.block(X, X, np.float32)
    assert np.all(np.isfinite(block))
    assert block[0, 2] == 0.0


def test_mean_distance_is_the_mean_over_pairs(points):
    X, _ = points
    squares = pairwise.euclidean_distances(X, squared=True)
    mean = squares.sum() / (len(X) * (len(X) - 1))
    assert estimated_gamma("mean-distance", X) == pytest.approx(1 / mean, rel=1e-10)
    assert estimated_gamma("scale", X) == pytest.approx(1 / (7 * X.var()), rel=1e-12)


def test_gamma_of_equal_points_is_a_number():
    assert estimated_gamma("mean-distance", np.ones((5, 2))) == 1.0
    assert estimated_gamma("scale", np.ones((5, 2))) == 1.0


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": -1}, "gamma"),
        ({"gamma": "automatic"}, "mean-distance"),
        ({"kernel": "cosine"}, "kernel"),
        ({"kernel": "poly", "coef0": -1.0}, "coef0"),
        ({"degree": 0}, "degree"),
    ],
)
def test_bad_parameters_are_named(settings, word):
    with pytest.raises(ValueError, match=word):
        KernelSpec(**settings)


def test_a_function_is_not_called_without_points(points):
    """scikit-learn's refuse empty arrays, but a node may hold no example."""
    X, Z = points
    kernel = KernelSpec(pairwise.rbf_kernel).resolve(X)
    assert kernel.block(X[:0], Z).shape == (0, 40)
    assert kernel.block(X, Z[:0], np.float32).shape == (300, 0)
    np.testing.assert_allclose(kernel.block(X, Z), pairwise.rbf_kernel(X, Z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_points_are_copied_no_more_than_once_in_each_precision(dtype):
    X = np.random.default_rng(0).standard_normal((8_000, 200))
    tracemalloc.start()
    RBF(0.001).block(X[:10], X, dtype)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (1.5 if dtype == np.float32 else 1.0) * X.nbytes + 40 * (1 << 18)
