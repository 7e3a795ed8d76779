"""Newton steps of kernel machines, beside SciPy's non-negative least squares."""

import numpy as np
import pytest
from scipy import linalg, optimize
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel

from atomcast import KernelSVC
from atomcast.known.kernels.rows import Rows
from atomcast.steps.inner import machine_solver
from atomcast.steps.inner.machine_face import go_to_face


def machine(C, n=300):
    """A kernel matrix without signs, the sides of its points, and the best weights."""
    X, y = make_classification(n, 20, n_informative=10, random_state=0)
    side = 2.0 * y - 1.0
    matrix = rbf_kernel(X, gamma=0.002) + 1.0 + np.eye(n) / C
    lower = linalg.cholesky(matrix * np.outer(side, side), lower=True)
    best, _ = optimize.nnls(lower.T, linalg.solve_triangular(lower, np.ones(n), lower=True))
    return matrix, side, best


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_on_the_right_face_leads_to_the_best_weights(dtype):
    """Also where a factor in single precision alone would leave much of the way."""
    matrix, side, best = machine(C=1e4)
    matrix = matrix.astype(dtype)
    beta = np.where(best > 0, best.mean(), 0.0)
    signed = matrix * np.outer(side, side)
    margins = signed @ beta
    go_to_face(Rows(matrix, np.arange(len(side))), side, beta, margins, 1e-6)
    if dtype == np.float64:
        np.testing.assert_allclose(beta, best, rtol=1e-4, atol=1e-6 * best.max())
    assert (beta[best == 0] == 0).all()
    np.testing.assert_allclose(margins, signed.astype(float) @ beta, atol=1e-9 * beta.sum())
    np.testing.assert_allclose(margins[beta > 0], 1.0, atol=1e-4)


def test_weights_that_would_fall_below_zero_are_zero():
    matrix, side, best = machine(C=100.0)
    beta = np.full(len(side), best.mean())
    signed = matrix * np.outer(side, side)
    margins = signed @ beta

    def objective(beta):
        return 0.5 * beta @ signed @ beta - beta.sum()

    before = objective(beta)
    go_to_face(Rows(matrix, np.arange(len(side))), side, beta, margins, 1e-6)
    assert beta.min() == 0.0 < beta.max()
    assert objective(best) <= objective(beta) < before


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_dear_errors_take_few_steps_on_faces(C, monkeypatch):
    matrix, side, best = machine(C)
    steps = []
    monkeypatch.setattr(
        machine_solver, "go_to_face", lambda *what: (steps.append(1), go_to_face(*what))
    )
    beta, margins = np.zeros(len(side)), np.zeros(len(side))
    rows = Rows(matrix.astype(np.float32), np.arange(len(side)))
    machine_solver.descend(rows, side, beta, margins, 1e-4)
    assert len(steps) <= 8
    assert beta.sum() == pytest.approx(best.sum(), rel=1e-4)


def test_alone_all_points_join_at_once_and_gamma_is_that_of_any_cluster():
    X, y = make_classification(700, 20, n_informative=10, random_state=3)
    alone, spread = KernelSVC().fit(X, y), KernelSVC(cluster=3).fit(X, y)
    assert alone.gamma_ == spread.gamma_
    assert alone.result_.trace.atoms.tolist()[:2] == [0, len(X)]
    assert alone.result_.rounds <= 3 < spread.result_.rounds
    gap = alone.result_.gap + spread.result_.gap
    assert abs(alone.result_.objective - spread.result_.objective) <= gap
    np.testing.assert_allclose(alone.decision_function(X), spread.decision_function(X), atol=0.02)
