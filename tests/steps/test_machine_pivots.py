"""Kernel machines and regressions of few points, from guess to guess of the points that matter."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1, make_moons
from sklearn.metrics.pairwise import rbf_kernel

from atomcast import KernelSVC, KernelSVR
from atomcast.steps.inner import machine_pivots, tube_descent
from atomcast.steps.inner.machine_pivots import machine_weights
from atomcast.steps.inner.tube_pivots import Tube, tube_weights


def machine(n: int, C: float, gamma: float = 2.0):
    """K~ of two classes."""
    X, y = make_moons(n, noise=0.3, random_state=0)
    side = np.where(y > 0, 1.0, -1.0)
    return (rbf_kernel(X, gamma=gamma) + 1.0) * np.outer(side, side) + np.eye(n) / C


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e3])
@pytest.mark.parametrize("n", [5, 100, 220, 400])
def test_margins_are_those_of_the_best_weights(n, C):
    matrix, enough = machine(n, C), 1e-7
    weights, margins = machine_weights(matrix, enough)
    np.testing.assert_allclose(margins, matrix @ weights, rtol=1e-9)
    assert weights.min() >= 0.0
    assert margins.min() >= 1.0 - enough
    np.testing.assert_allclose(margins[weights > 0.0], 1.0, atol=enough)


def test_some_points_spare_the_factor_of_all(monkeypatch):
    sizes, part = [], machine_pivots.lower_part

    def counted(matrix, free, precision="d"):
        sizes.append(len(free))
        return part(matrix, free, precision)

    monkeypatch.setattr(machine_pivots, "lower_part", counted)
    assert machine_weights(machine(400, 100.0), 1e-7) is not None
    assert max(sizes) < 300


def test_care_is_left_where_guesses_come_round_again(monkeypatch):
    expected, _ = machine_weights(machine(100, 10.0), 1e-9)
    monkeypatch.setattr(machine_pivots, "_by_some", lambda *_: None)
    weights, _ = machine_weights(machine(100, 10.0), 1e-9)
    np.testing.assert_allclose(weights, expected, atol=1e-9 * expected.max())


@pytest.mark.parametrize(("n", "C"), [(60, 1.0), (250, 0.1), (450, 10.0)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_regressions_are_as_by_newton_with_a_line_search(monkeypatch, n, C, epsilon):
    X, y = make_friedman1(n, noise=1.0, random_state=0)
    found = KernelSVR(C=C, epsilon=epsilon).fit(X, y)
    monkeypatch.setattr(tube_descent, "tube_weights", lambda _: None)
    careful = KernelSVR(C=C, epsilon=epsilon).fit(X, y)
    np.testing.assert_allclose(found.result_.objective, careful.result_.objective, rtol=1e-9)
    np.testing.assert_allclose(found.predict(X), careful.predict(X), rtol=1e-6)
    assert found.result_.relative_gap <= 1e-3


def test_a_tube_that_holds_all_is_left_to_newton():
    matrix = np.eye(3) + 1.0
    assert tube_weights(Tube(matrix, np.ones(3), np.array([0.0, 0.1, 0.2]), 1.0)) is None


def test_the_matrix_of_few_points_is_in_one_piece(monkeypatch):
    seen = []

    def watched(matrix, enough):
        seen.append(matrix.flags.c_contiguous)
        return machine_weights(matrix, enough)

    monkeypatch.setattr("atomcast.steps.inner.choice.machine_weights", watched)
    KernelSVC().fit(*make_moons(130, noise=0.3, random_state=0))
    assert seen == [True]
