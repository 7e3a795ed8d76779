"""The inner solver for many known points finds what the optimality conditions say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.metrics.pairwise import rbf_kernel

from atomcast import Solver
from atomcast.atoms.kernel import LocalLabels
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode
from atomcast.messages.atom import Atom
from atomcast.problems.examples import kernel_problem
from atomcast.steps.inner import projected_newton
from atomcast.steps.inner.projected_newton import ProjectedNewton

GAMMA = 0.1


def known_points(n, C, duplicates=0, seed=0):
    """An active set of so many points, and its matrix by the formula."""
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((n, 6)), rng.integers(0, 2, n)
    X[:duplicates] = X[duplicates : 2 * duplicates]  # with equal and with contrary labels
    spec, code = KernelSpec(gamma=GAMMA), LabelCode(2, np.full(2, C))
    problem = kernel_problem(spec, code, LocalLabels(labels), Solver(tol=1e-9), 2**28)
    active = problem.make_active()
    atoms = [Atom(i, 6, X[i], extras=np.array([float(labels[i])])) for i in range(n)]
    active.append(atoms)
    signs = np.where(labels[:, None] == labels, 1.0, -1.0)
    return active, signs * (rbf_kernel(X, X, GAMMA) + 1) + np.eye(n) / C


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("duplicates", [0, 100])
def test_equals_nnls(C, duplicates, monkeypatch):
    monkeypatch.setattr(projected_newton, "RANK", 40)  # a rough preconditioner must do, too
    active, K = known_points(500, C, duplicates)
    ProjectedNewton().minimise(active, 1e-9)
    L = np.linalg.cholesky(K)
    b, _ = nnls(L.T, np.linalg.solve(L, np.ones(len(K))), maxiter=100 * len(K))
    np.testing.assert_allclose(active.weights, b / b.sum(), atol=1e-6)
    assert active.value() == pytest.approx(1 / b.sum(), rel=1e-7)
    # Points that carry no weight carry none at all, and products are those of the weights.
    np.testing.assert_array_equal(active.weights > 0, b > 1e-9 * b.max())
    np.testing.assert_allclose(active.image_products, K @ active.weights, rtol=1e-9)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
def test_the_gap_is_within_the_tolerance(tolerance):
    active, K = known_points(900, 10.0, seed=3)
    value = K[0, 0]
    for share in (1.0, 0.1):  # cold, and warm from a less exact solution
        ProjectedNewton().minimise(active, share * tolerance * value)
        alpha = active.weights
        assert alpha.min() >= 0
        assert alpha.sum() == pytest.approx(1.0)
        gap = 2 * (alpha @ K @ alpha - (K @ alpha).min())
        assert gap <= 1.001 * share * tolerance * value + 1e-13


def test_steps_are_few():
    """Products with the matrix are what costs: pivots must not each take one of their own."""
    active, _ = known_points(1500, 1.0, seed=5)
    solver = ProjectedNewton()
    solver.minimise(active, 1e-6 * active.gram.diagonal[0])
    assert 0 < solver.products <= 60
