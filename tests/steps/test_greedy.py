"""Descent of kernel machines by pairs of weights, beside SciPy's non-negative least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, optimize
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import rbf_kernel

from atomcast import KernelSVC
from atomcast.known.kernels.rows import Rows
from atomcast.steps.inner import _greedy
from atomcast.steps.inner._greedy import best_pair, greedy_steps
from atomcast.steps.inner.machine_pivots import machine_weights


def machine(C, gamma, n=300, copies=0):
    """A kernel matrix without signs, the sides of its points, and the best weights."""
    X, y = make_moons(n, noise=0.25, random_state=0)
    X, side = np.vstack([X, X[:copies]]), 2.0 * np.append(y, y[:copies]) - 1.0
    matrix = rbf_kernel(X, gamma=gamma) + 1.0 + np.eye(len(X)) / C
    lower = linalg.cholesky(matrix * np.outer(side, side), lower=True)
    best, _ = optimize.nnls(lower.T, linalg.solve_triangular(lower, np.ones(len(X)), lower=True))
    return matrix, side, best


def descended(matrix, side, tolerance):
    """The weights that steps lead to, Newton steps being left out, and how many there were."""
    beta, margins, taken, enough = np.zeros(len(side)), np.zeros(len(side)), 0, False
    rows = Rows(matrix, np.arange(len(side)))
    while not enough and taken < 100_000:
        steps, enough = greedy_steps(*rows.parts, side, beta, margins, tolerance, 100_000)
        taken += steps
    assert enough
    signed = matrix.astype(float) * np.outer(side, side)
    np.testing.assert_allclose(margins, signed @ beta, atol=1e-9 * max(beta.sum(), 1.0))
    return beta, taken


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("C", "gamma"), [(0.1, 50.0), (1.0, 1.0), (100.0, 1.0), (100.0, 10.0)])
def test_pairs_lead_to_the_best_weights(C, gamma, dtype):
    matrix, side, best = machine(C, gamma)
    beta, _ = descended(matrix.astype(dtype), side, 1e-6)
    signed = matrix * np.outer(side, side)

    def objective(beta):
        return 0.5 * beta @ signed @ beta - beta.sum()

    assert beta.min() >= 0.0
    assert objective(beta) <= objective(best) * (1.0 - 1e-5)


def test_points_that_are_there_twice_share_their_weight():
    """Their part of the matrix has next to no determinant if errors are dear."""
    matrix, side, best = machine(1e5, 1.0, n=100, copies=40)
    signed = matrix * np.outer(side, side)
    beta, _ = descended(matrix, side, 1e-5)
    np.testing.assert_allclose(beta.sum(), best.sum(), rtol=1e-4)
    np.testing.assert_array_less(1.0 - 1e-4, signed @ beta)


def test_pairs_need_few_steps_where_points_resemble_each_other():
    """The two worst weights, changed one after the other, need several times as many."""
    matrix, side, _ = machine(100.0, 2.0)
    _, taken = descended(matrix, side, 1e-3)
    assert taken <= 12 * len(side)


def test_best_pair_is_that_of_a_small_problem_in_two_unknowns():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lower = np.tril(rng.standard_normal((2, 2)), -1) + np.diag(0.3 + rng.random(2))
        matrix, short, beta = lower @ lower.T, rng.standard_normal(2), rng.random(2)
        right = linalg.solve_triangular(lower, short + matrix @ beta, lower=True)
        best, _ = optimize.nnls(lower.T, right)
        *found, fall = best_pair(*short, matrix[0, 0], matrix[1, 1], matrix[0, 1], *beta, False)
        change = np.array(found)
        assert (beta + change).min() >= -1e-12
        gain = short @ change - 0.5 * change @ matrix @ change
        best_gain = short @ (best - beta) - 0.5 * (best - beta) @ matrix @ (best - beta)
        np.testing.assert_allclose([gain, fall], best_gain, rtol=1e-6, atol=1e-9)


def test_one_weight_alone_changes_once():
    change, other, fall = best_pair(1.0, 1.0, 2.0, 2.0, 2.0, 0.0, 0.0, True)
    assert (change, other, fall) == (0.5, 0.0, 0.25)


def test_lanes_are_more_than_the_points_of_a_tiny_machine():
    matrix, side, best = machine(1.0, 1.0, n=5)
    assert len(side) < _greedy.LANES
    beta, _ = descended(matrix, side, 1e-8)
    np.testing.assert_allclose(beta, best, atol=1e-4)


@pytest.mark.parametrize(("C", "gamma"), [(0.1, 50.0), (1.0, 1.0), (100.0, 1.0)])
def test_few_points_are_solved_face_by_face(C, gamma):
    matrix, side, best = machine(C, gamma, n=120)
    found = machine_weights(matrix * np.outer(side, side), 1e-9)
    assert found is not None
    np.testing.assert_allclose(found[0], best, rtol=1e-6, atol=1e-8 * best.max())


@pytest.mark.parametrize("multi_class", ["one-vs-one", "one-vs-rest"])
@pytest.mark.parametrize("C", [0.1, 10.0, 1e5])
def test_few_points_of_several_classes_are_solved_face_by_face(C, multi_class):
    """Each machine is a problem of nonnegative least squares, which SciPy solves."""
    X, y = load_iris(return_X_y=True)
    model = KernelSVC(C=C, gamma=0.5, multi_class=multi_class, tol=1e-9).fit(X, y)
    pairs = [(0, 1), (0, 2), (1, 2)] if multi_class == "one-vs-one" else [(0,), (1,), (2,)]
    values = model.set_params(decision_function_shape="ovo") if len(pairs[0]) > 1 else model
    for m, sides in enumerate(pairs):
        some = np.isin(y, sides) if len(sides) > 1 else np.ones(len(y), dtype=bool)
        side = np.where(y[some] == sides[0], 1.0, -1.0)
        kernel = (rbf_kernel(X[some], gamma=0.5) + 1.0) * np.outer(side, side)
        factor = np.linalg.cholesky(kernel + np.eye(len(side)) / C)
        weights = optimize.nnls(factor.T, np.linalg.solve(factor, np.ones(len(side))))[0]
        expected = side * (kernel @ weights)
        found = values.decision_function(X[some])[:, m]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_points_that_are_there_twice_leave_a_model_face_by_face_or_not():
    X, y = make_moons(100, noise=0.25, random_state=0)
    X, y = np.vstack([X, X]), np.append(y, y)
    twice = KernelSVC(C=1e6, gamma=1.0, tol=1e-6).fit(X, y)
    once = KernelSVC(C=2e6, gamma=1.0, tol=1e-6).fit(X[:100], y[:100])
    assert twice.result_.status == once.result_.status == "optimal"
    np.testing.assert_allclose(
        twice.decision_function(X[:100]), once.decision_function(X[:100]), rtol=1e-3, atol=1e-3
    )
