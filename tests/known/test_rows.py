"""Rows of the kernel matrix that are computed as they are read."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from atomcast import KernelSVC, Solver
from atomcast.known.kernels.functions import RBF
from atomcast.known.kernels.kernel_matrix import AugmentedKernel
from atomcast.known.kernels.labels import LabelCode

GAMMA, COSTS = 2.0, np.array([0.5, 4.0])


def example(n: int, d: int = 3, spread: float = 1.0):
    rng = np.random.default_rng(n + d)
    X, codes = spread * rng.random((n, d)), rng.integers(0, 2, n).astype(np.uint8)
    signs = np.where(codes[:, None] == codes, 1.0, -1.0)
    return X, codes, signs * (rbf_kernel(X, gamma=GAMMA) + 1.0) + np.diag(1.0 / COSTS[codes])


def known(X, codes, shared: bool = False) -> AugmentedKernel:
    gram = AugmentedKernel(RBF(GAMMA), LabelCode(2, COSTS), 2**31, np.float32, shared)
    gram.extend(X, codes)
    return gram


@pytest.mark.parametrize(("d", "spread"), [(1, 1.0), (3, 1.0), (32, 0.5), (3, 20.0)])
def test_rows_are_those_of_the_kernel_and_only_those_that_are_read(d, spread):
    X, codes, exact = example(1100, d, spread)
    rows = known(X, codes).rows_at(np.arange(1100))
    used = np.array([3, 700, 1099])
    values = rows.values[rows.places(used)]
    assert np.flatnonzero(rows.recipe.done).tolist() == used.tolist()
    np.testing.assert_allclose(values[:, :1100], exact[used], atol=1e-5)
    weights = np.zeros(1100)
    weights[[3, 5]] = 0.5, -2.0
    np.testing.assert_allclose(rows.combined(weights), weights @ exact, atol=3e-5)


@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("d", [1, 2, 8, 32])
def test_sums_of_rows_are_off_by_no_more_than_is_said_and_by_less_than_sums_of_products(d, spread):
    X, codes, exact = example(1100, d, spread / np.sqrt(d))
    gram, rng = known(X, codes), np.random.default_rng(0)
    rows, apart = gram.rows_at(np.arange(1100)), known(X[:200], codes[:200])
    apart.extend(X, codes)
    for share in (0.01, 0.3, 1.0):
        weights = rng.random(1100) * (rng.random(1100) < share)
        off = np.abs(rows.combined(weights) - weights @ exact).max()
        assert off <= gram.rounding_of(weights) <= apart.rounding_of(weights)


@pytest.mark.parametrize("shared", [False, True])
def test_some_rows_at_some_columns(shared):
    X, codes, exact = example(1100)
    some = np.arange(1, 1100, 7)
    rows = known(X, codes, shared).rows_at(some)
    own, ridge = exact[np.ix_(some, some)], 1.0 / COSTS[codes[some]]
    few = np.array([0, 50, 100])
    np.testing.assert_allclose(rows.values[rows.places(few)], own[few], atol=1e-5)
    np.testing.assert_allclose(
        rows.between(few), (own - np.diag(ridge))[np.ix_(few, few)], atol=1e-5
    )
    np.testing.assert_allclose(rows.without_ridge(few), (own - np.diag(ridge))[few], atol=1e-5)


def test_the_matrix_is_whole_for_whoever_asks_for_it_and_when_points_join():
    X, codes, exact = example(1300)
    gram = known(X[:1100], codes[:1100])
    gram.rows_at(np.arange(1100)).places(np.array([1000, 2]))
    vector = np.random.default_rng(0).random(1100)
    np.testing.assert_allclose(gram.times(vector), exact[:1100, :1100] @ vector, rtol=1e-5)
    gram.extend(X, codes)
    np.testing.assert_allclose(gram.matrix[:1300, :1300], exact, atol=1e-5)


@pytest.mark.parametrize("count", [1, 200])
def test_points_that_join_later_find_all_rows(count):
    X, codes, exact = example(1300)
    first = 1300 - count
    gram = known(X[:first], codes[:first])
    gram.rows_at(np.arange(first)).places(np.array([1000, 2]))
    gram.forget_points()
    gram.extend(X, codes)
    np.testing.assert_allclose(gram.row(1299), exact[1299], atol=1e-5)
    np.testing.assert_allclose(gram.matrix[:1300, :1300], exact, atol=1e-5)


def test_few_points_that_were_known_before_many_are_among_them():
    X, codes, exact = example(1300)
    gram = known(X[:100], codes[:100])
    gram.extend(X, codes)
    assert not gram.rows_at(np.arange(1300)).recipe.done.any()
    weights = np.random.default_rng(0).random(100)
    expected = exact[100:, :100] @ weights
    np.testing.assert_allclose(gram.row_products(100, weights), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gram.row(1299), exact[1299], atol=1e-5)


@pytest.mark.parametrize("how", ["one-vs-one", "one-vs-rest"])
def test_machines_that_share_rows_find_what_machines_of_their_own_find(how):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1200, 2))
    y = (np.hypot(*X.T) * 1.5).astype(int).clip(0, 2)
    both = [
        KernelSVC(C=10.0, gamma=1.0, multi_class=how, solver=Solver(tol=tol)).fit(X, y)
        for tol in (1e-3, 1e-6)  # the second keeps its matrix in double precision, whole
    ]
    rough, fine = (model.result_.objective for model in both)
    assert fine * (1 - 1e-6) <= rough <= fine * (1 + 1e-3)
    assert (both[0].predict(X) != both[1].predict(X)).mean() <= 0.01


def test_rows_pass_where_there_is_room_for_few():
    X, codes, exact = example(1100)
    gram = AugmentedKernel(RBF(GAMMA), LabelCode(2, COSTS), 30 * 4 * 1100, np.float32)
    gram.extend(X, codes)
    rows = gram.all_rows
    assert not gram.kept
    assert rows.room == 30
    assert rows.matrix.nbytes <= gram.cache_bytes
    weights = np.random.default_rng(0).standard_normal(1100)
    np.testing.assert_allclose(rows.combined(weights), weights @ exact, atol=1e-3)
    for first in (0, 500, 0, 1070):
        used = np.arange(first, first + 30)
        np.testing.assert_allclose(rows.values[rows.places(used)], exact[used], atol=1e-5)
    many, ridge = np.arange(0, 1100, 10), np.diag(1.0 / COSTS[codes])
    np.testing.assert_allclose(rows.without_ridge(many), (exact - ridge)[many], atol=1e-5)
    # Fewer points have more rows in the same memory, and all of few have.
    for some, room in ((np.arange(0, 1100, 2), 60), (np.arange(100), 100)):
        part, own = rows.at(some), exact[np.ix_(some, some)]
        assert part.room == room
        assert np.shares_memory(part.matrix, rows.matrix)
        np.testing.assert_allclose(part.combined(weights[some]), weights[some] @ own, atol=1e-3)
        np.testing.assert_allclose(rows.combined(weights), weights @ exact, atol=1e-3)
