"""Machines whose kernel matrix is nearly of low rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

from atomcast import KernelSVC
from atomcast.known.kernels.rows import RowRecipe, Rows
from atomcast.steps.inner.low_rank import (
    LowRankMachine,
    PivotedFactor,
    descend_by_rank,
    relative_gap,
)
from atomcast.steps.inner.machine_solver import descend


def machine(X, side, gamma: float, C: float):
    """The rows of a machine, and the best weights by a solver of least squares."""
    matrix, ridge = rbf_kernel(X, gamma=gamma) + 1.0, np.full(len(X), 1.0 / C)
    matrix[np.diag_indices_from(matrix)] += ridge
    rows = Rows(matrix, np.arange(len(X)), RowRecipe.whole(np.diag(matrix).copy()), ridge)
    own = side[:, None] * matrix * side
    lower = np.linalg.cholesky(own)
    best, _ = nnls(lower.T, np.linalg.solve(lower, np.ones(len(X))), maxiter=20 * len(X))
    return rows, own, best


def moons(n: int, noise: float):
    X, y = make_moons(n, noise=noise, random_state=3)
    return X, np.where(y == 1, 1.0, -1.0)


@pytest.mark.parametrize(("C", "gamma"), [(1.0, 0.5), (100.0, 0.5), (10.0, 2.0)])
def test_the_best_weights_are_found_from_any_others(C, gamma):
    X, side = moons(600, 0.3)
    rows, own, best = machine(X, side, gamma, C)
    factor = PivotedFactor(rows)
    assert factor.reaches(128)
    assert factor.rank < 128
    beta = np.where(np.arange(600) % 3 == 0, 0.1 * C, 0.0)
    margins = own @ beta
    assert descend_by_rank(factor, side, beta, margins, 1e-4)
    assert relative_gap(beta, own @ beta) <= 1.001e-4
    np.testing.assert_allclose(margins, own @ beta, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(beta.sum(), best.sum(), rtol=1e-4)


def test_the_factor_leaves_what_it_says():
    X, side = moons(500, 0.2)
    rows, _, _ = machine(X, side, 1.0, 10.0)
    factor = PivotedFactor(rows)
    assert factor.reaches(128)
    kernel, G = rbf_kernel(X, gamma=1.0) + 1.0, factor.factor[: factor.rank]
    np.testing.assert_allclose(np.diag(kernel - G.T @ G), factor.rest, atol=1e-10)
    assert np.abs(kernel - G.T @ G).max() <= factor.rest.max() * (1 + 1e-6) <= 0.03 * 0.1
    low, beta = LowRankMachine.of(factor, side), np.random.default_rng(0).random(500)
    own = side[:, None] * (G.T @ G) * side + np.diag(0.1 + np.maximum(factor.rest, 0.0))
    np.testing.assert_allclose(low.margins(beta), own @ beta, rtol=1e-10)


def test_a_rank_that_is_not_low_is_not_looked_for_long():
    rng = np.random.default_rng(0)
    X, side = rng.standard_normal((600, 20)), rng.choice([-1.0, 1.0], 600)
    factor = PivotedFactor(machine(X, side, 0.05, 1.0)[0])
    assert not factor.reaches(64)
    assert factor.rank == 0


def test_more_rank_is_added_where_little_was_too_little():
    X, side = moons(600, 0.3)
    factor = PivotedFactor(machine(X, side, 4.0, 100.0)[0])
    assert not factor.reaches(96)
    assert factor.reaches(300)
    assert 96 < factor.rank <= 300


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_descent_ends_at_the_best_weights_with_and_without_low_rank(C):
    X, side = moons(800, 0.3)
    for gamma in (0.5, 20.0):
        rows, own, best = machine(X, side, gamma, C)
        beta, margins = np.zeros(800), np.zeros(800)
        descend(rows, side, beta, margins, 1e-3)
        assert relative_gap(beta, own @ beta) <= 1.01e-3
        np.testing.assert_allclose(beta.sum(), best.sum(), rtol=1e-3)


@pytest.mark.parametrize(
    ("noise", "C", "gamma"), [(0.1, 100.0, 2.0), (0.3, 100.0, 2.0), (0.3, 10.0, 10.0)]
)
def test_the_certificate_of_a_fit_holds_in_double_precision(noise, C, gamma):
    X, y = make_moons(1500, noise=noise, random_state=1)
    model = KernelSVC(C=C, gamma=gamma).fit(X, y)
    side, alpha = np.where(y == 1, 1.0, -1.0), np.zeros(1500)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    products = side * ((rbf_kernel(X, gamma=gamma) + 1.0) @ (side * alpha)) + alpha / C
    assert relative_gap(alpha, products) <= 1.05e-3
    np.testing.assert_allclose(model.result_.relative_gap, relative_gap(alpha, products), atol=5e-5)
