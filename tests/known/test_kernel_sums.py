"""Every way of summing kernel columns gives the sums of the plain formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from atomcast.known.kernels.functions import RBF, Laplacian
from atomcast.known.kernels.kernel_matrix import HEIGHT, AugmentedKernel
from atomcast.known.kernels.labels import LabelCode, Unsigned
from atomcast.known.kernels.point_set import rescaling
from atomcast.known.kernels.sums import (
    BinarySums,
    DenseSums,
    KernelSums,
    SmallSums,
    SparseSums,
    kernel_sums,
    less_usual,
    packed,
)

GAMMA = 0.07


def problem(kind, classes, n=700, m=12, dtype=np.float64):
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((n, 90)).astype(dtype)
    if kind in ("sparse", "binary", "binary-dense"):
        X *= rng.random(X.shape) < 0.2
    if kind.startswith("binary"):
        X = (X != 0).astype(dtype)
    labels = rng.integers(0, classes, n).astype(np.uint8)
    points = sparse.csr_array(X) if kind in ("sparse", "binary") else X
    return X, points, labels, rng.random(m) - 0.3


def reference(X, labels, weights, classes, kernel=rbf_kernel):
    m = len(weights)
    signs = np.where(labels[:, None] == labels[:m], 1.0, -1.0 / (classes - 1))
    return (signs * (kernel(X.astype(float), X[:m].astype(float), GAMMA) + 1)) @ weights


WAYS = [
    ("dense", DenseSums),
    ("dense", KernelSums),
    ("dense", SmallSums),
    ("sparse", SparseSums),
    ("sparse", KernelSums),
    ("binary", BinarySums),
    ("binary-dense", BinarySums),
]


@pytest.mark.parametrize(("kind", "way"), WAYS)
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("m", [1, 3, 40])
def test_sums_equal_the_formula(kind, way, classes, m):
    X, points, labels, weights = problem(kind, classes, m=m)
    sums = way(points, RBF(GAMMA), LabelCode(classes, np.ones(classes)), labels)
    start = np.linspace(-1, 1, len(X))
    total = start.copy()
    sums.add(total, 0.25, points[:m], labels[:m], weights)
    expected = reference(X, labels, weights, classes)
    np.testing.assert_allclose(total, 0.25 * start + expected, rtol=1e-10, atol=1e-11)

    some = np.array([0, 5, 17, 699])
    total = start.copy()
    sums.add_to(some, total, points[:m], labels[:m], weights)
    expected = start + np.where(np.isin(np.arange(len(X)), some), expected, 0.0)
    np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 120])
def test_rows_of_any_length(d, dtype):
    # What lies beside the rows must not count, also before the first and after the last one.
    rng = np.random.default_rng(d)
    around = np.full((303, d), np.nan, dtype=dtype)
    around[1:-1] = rng.standard_normal((301, d))
    X, labels = around[1:-1], rng.integers(0, 2, 301).astype(np.uint8)
    sums = DenseSums(X, RBF(GAMMA), LabelCode(2, np.ones(2)), labels)
    total = np.zeros(len(X))
    sums.add(total, 0.0, X[:2], labels[:2], np.array([0.7, -0.2]))
    expected = reference(X, labels, np.array([0.7, -0.2]), 2)
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-5)

    # A row has the same bits wherever it stands, as nodes with other rows must agree on ties.
    part = slice(5, 42)
    few = DenseSums(X[part], RBF(GAMMA), LabelCode(2, np.ones(2)), labels[part])
    alone = np.zeros(37)
    few.add(alone, 0.0, X[:2], labels[:2], np.array([0.7, -0.2]))
    assert np.array_equal(alone, total[part])


def test_binary_laplacian():
    X, points, labels, weights = problem("binary", 3)
    sums = BinarySums(points, Laplacian(GAMMA), LabelCode(3, np.ones(3)), labels)
    total = np.zeros(len(X))
    sums.add(total, 0.0, points[:12], labels[:12], weights)
    expected = reference(X, labels, weights, 3, laplacian_kernel)
    np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-12)


def test_binary_sums_take_points_that_are_not_binary():
    X, points, labels, weights = problem("binary", 2)
    sums = BinarySums(points, RBF(GAMMA), LabelCode(2, np.ones(2)), labels)
    total = np.zeros(len(X))
    others = sparse.csr_array(2.5 * X[:12])
    sums.add(total, 0.0, others, labels[:12], weights)
    signs = np.where(labels[:, None] == labels[:12], 1.0, -1.0)
    expected = (signs * (rbf_kernel(X, 2.5 * X[:12], GAMMA) + 1)) @ weights
    np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-12)


def test_single_precision_data_is_summed_in_double():
    X, points, labels, weights = problem("dense", 2, dtype=np.float32)
    sums = DenseSums(points, RBF(GAMMA), LabelCode(2, np.ones(2)), labels)
    total = np.zeros(len(X))
    for _ in range(300):  # adding and taking away again leaves what was there
        sums.add(total, 1.0, points[:1], labels[:1], np.array([0.1]))
        sums.add(total, 1.0, points[:1], labels[:1], np.array([-0.1]))
    assert np.abs(total).max() < 1e-13
    sums.add(total, 1.0, points[:12], labels[:12], weights)
    np.testing.assert_allclose(total, reference(X, labels, weights, 2), rtol=1e-4, atol=1e-5)


def test_a_point_is_alike_to_itself_exactly():
    X, points, labels, _ = problem("dense", 2, dtype=np.float32)
    for way, data in [(DenseSums, points), (BinarySums, (points > 0).astype(np.float32))]:
        total = np.zeros(len(X))
        sums = way(data, RBF(GAMMA), LabelCode(2, np.ones(2)), labels)
        sums.add(total, 0.0, data[4:5], labels[4:5], np.ones(1))
        assert total[4] == 2.0


def test_the_way_fits_the_data():
    code, labels = LabelCode(2, np.ones(2)), np.zeros(20_000, dtype=np.uint8)
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((20_000, 60))
    few = sparse.random_array((20_000, 600), density=0.1, rng=rng, format="csr")
    assert type(kernel_sums(dense, RBF(1.0), code, labels)) is DenseSums
    assert type(kernel_sums(few, RBF(1.0), code, labels)) is SparseSums
    assert type(kernel_sums((few != 0).astype(float), RBF(1.0), code, labels)) is BinarySums
    assert type(kernel_sums(dense[:100], RBF(1.0), code, labels[:100])) is SmallSums
    assert type(kernel_sums(few[:100], RBF(1.0), code, labels[:100])) is KernelSums
    assert type(kernel_sums(dense[:100], Laplacian(1.0), code, labels[:100])) is KernelSums


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_points_have_the_sums_that_many_would(dtype):
    X, points, labels, weights = problem("dense", 3, m=1, dtype=dtype)
    kernel, code = RBF(GAMMA, X.mean(axis=0, dtype=np.float64)), LabelCode(3, np.ones(3))
    plain, kept = np.ones(len(X)), np.ones(len(X))
    small, any_size = (way(points, kernel, code, labels) for way in (SmallSums, KernelSums))
    for k in range(20):  # one column after the other, as in rounds of one atom
        for sums, total in ((small, kept), (any_size, plain)):
            sums.add(total, 0.9, points[k : k + 1], labels[k : k + 1], weights)
    np.testing.assert_allclose(kept, plain, rtol=1e-13, atol=1e-14)
    sparse_point = sparse.csr_array(points[:1])
    for sums, total in ((small, kept), (any_size, plain)):
        sums.add(total, 0.5, sparse_point, labels[:1], weights)
    np.testing.assert_allclose(kept, plain, rtol=1e-13, atol=1e-14)


def test_packed_bits_differ_where_points_differ():
    X, points, _, _ = problem("binary", 2)
    bits = packed(points)
    assert bits.shape == (700, 2)
    differing = np.bitwise_count(bits[:1] ^ bits).sum(axis=1)
    np.testing.assert_array_equal(differing, np.abs(X - X[0]).sum(axis=1))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_what_most_points_have_is_left_out_of_scattering(index):
    X, _, labels, weights = problem("sparse", 2, m=5)
    X[:, 3] = 2.5  # all have it
    X[:, 7] = np.where(np.arange(700) % 5, -1.5, 0.0)  # most have it
    X[:, 9] = np.where(np.arange(700) % 5, X[:, 0], 0.0)  # most have something, but not the same
    points = sparse.csr_array(X)
    points.indices, points.indptr = points.indices.astype(index), points.indptr.astype(index)
    columns, usual = less_usual(points.tocsc())
    assert columns.nnz < points.nnz - 1000
    np.testing.assert_array_equal(np.flatnonzero(usual), [3, 7])
    np.testing.assert_array_equal(columns.toarray() + usual, X)

    total = np.zeros(700)
    sums = SparseSums(points, RBF(GAMMA), LabelCode(2, np.ones(2)), labels)
    for _ in range(2):  # the second time shows that nothing was left behind by the first
        sums.add(total, 0.0, points[:5], labels[:5], weights)
    np.testing.assert_allclose(total, reference(X, labels, weights, 2), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("kind", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("classes", [2, 4])
def test_augmented_kernel_of_growing_sets(kind, classes):
    n = 2 * HEIGHT + 100
    X, points, labels, _ = problem(kind, classes, n=n)
    costs = np.linspace(0.5, 2.0, classes)
    signs = np.where(labels[:, None] == labels, 1.0, -1.0 / (classes - 1))
    expected = signs * (rbf_kernel(X, X, GAMMA) + 1) + np.diag(1 / costs[labels])
    vector = np.random.default_rng(0).standard_normal(n)
    few = np.where(np.arange(n) % 400 == 7, vector, 0.0)
    for budget in (2**31, 2**22, 0):
        gram = AugmentedKernel(RBF(GAMMA), LabelCode(classes, costs), budget, np.float64)
        for count in (1, 2, 300, HEIGHT, HEIGHT + 1, n):
            gram.extend(points[:count], labels[:count])
        assert (gram.matrix is None) == (budget < 2**31)
        np.testing.assert_allclose(gram.rows(np.arange(n)), expected, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(gram.times(vector), expected @ vector, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(gram.times(few), expected @ few, rtol=1e-9, atol=1e-10)
        joined = gram.row_products(n - 1, vector)
        np.testing.assert_allclose(joined, expected[-1:] @ vector, rtol=1e-9, atol=1e-10)
        assert np.all(gram.diagonal == 2.0 + 1 / costs[labels])


def test_the_product_of_a_few_points_with_one_entry():
    _, points, labels, _ = problem("dense", 2, n=20)
    gram = AugmentedKernel(RBF(GAMMA), LabelCode(2, np.ones(2)), 2**31, np.float64)
    gram.extend(points, labels)
    for j in (0, 7, 19):
        expected = -0.5 * gram.rows(np.array([j]))[0]
        np.testing.assert_array_equal(gram.times(-0.5 * (np.arange(20) == j)), expected)


@pytest.mark.parametrize("changed", [0, 3, 6])
@pytest.mark.parametrize("scale", [0.75, 1.25, -1.0])
def test_a_step_is_a_multiple_and_one_more_entry(changed, scale):
    old = np.array([0.1, 0.3, 0.0, 0.2, 0.15, 0.25, 0.0])
    new = scale * old
    new[changed] += 0.25
    factor, rest = rescaling(old, new)
    assert factor == pytest.approx(scale)
    np.testing.assert_allclose(rest, 0.25 * (np.arange(7) == changed), atol=1e-15)
    assert np.count_nonzero(rest) == 1


def test_the_exponential_is_exact():
    from atomcast.known.kernels._loops import add_rbf, one_plus_exp

    # Compiled from within a loop that may reorder sums, it must not inherit that freedom.
    one = np.zeros((1, 1))
    add_rbf(one, one, 1.0, np.zeros(1, np.uint8), np.ones((1, 2)), 0.0, np.zeros(1))
    v = np.concatenate([np.zeros(1), np.geomspace(1e-300, 1e308, 5000), np.linspace(0, 800, 5001)])
    got = v.copy()
    one_plus_exp(-1.0, got)
    np.testing.assert_allclose(got, 1.0 + np.exp(-v), rtol=3e-16)
    assert got[0] == 2.0


@pytest.mark.parametrize("features", [1, 3, 8])
@pytest.mark.parametrize("side", ["two classes", "no sides"])
def test_sums_over_narrow_points_are_those_of_the_formula(features, side):
    """Whichever other points are asked for: a node's share must not make a difference."""
    rng = np.random.default_rng(features)
    X, m = rng.standard_normal((1_300, features)), 700
    labels, weights = rng.integers(0, 2, len(X)).astype(np.uint8), rng.random(m)
    code = (LabelCode if side == "two classes" else Unsigned)(2, np.ones(2))
    sums = KernelSums(X, RBF(GAMMA, X.mean(axis=0)), code, labels)
    assert sums._narrow(X, X[:m], np.ones((m, 1))) is not None
    assert sums._narrow(X[:10], X[:m], np.ones((m, 1))) is None  # NumPy is as good
    total, some = np.zeros(len(X)), np.arange(100, 1_000)
    sums.add_to(np.arange(len(X)), total, X[:m], labels[:m], weights)
    signs = code.table[labels][:, labels[:m]]
    expected = (signs * (rbf_kernel(X, X[:m], gamma=GAMMA) + 1.0)) @ weights
    np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-10)
    part = np.zeros(len(X))
    sums.add_to(some, part, X[:m], labels[:m], weights)
    np.testing.assert_array_equal(part[some], total[some])
