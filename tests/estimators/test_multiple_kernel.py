"""Many kernels on views: the optimum of CVXPY, the views that matter, every way to give them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from atomcast import (
    Checkpoint,
    Faults,
    LocalCluster,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    Shards,
    Solver,
)

EXACT = Solver(tol=1e-8)
VIEWS = [[0, 1], [2, 3], [4, 5], [6, 7]]
KERNELS = [{"kernel": "rbf", "gamma": 0.7}, {"kernel": "rbf", "gamma": 0.1}, "linear"]


def data(n=60, columns=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns))
    target = np.sin(2.0 * X[:, 0] * X[:, 1]) + X[:, 4]
    return X, target + 0.2 * rng.standard_normal(n), target > 0.0


def matrices(X):
    """The kernels that the models take, 1 on average on the diagonal, view by view."""
    all_values = []
    for view in VIEWS:
        points = X[:, view]
        all_values += [rbf_kernel(points, gamma=0.7), rbf_kernel(points, gamma=0.1)]
        all_values.append(points @ points.T)
    return [values * len(values) / np.trace(values) for values in all_values]


def optimum(Ks, loss, C=None, beta=None):
    """The optimum over functions f_k, by their coordinates in a factor of each kernel."""
    import cvxpy as cp

    pairs = [np.linalg.eigh(K) for K in Ks]
    kept = [values > 1e-10 * values[-1] for values, _ in pairs]
    factors = [U[:, k] * np.sqrt(s[k]) for (s, U), k in zip(pairs, kept, strict=True)]
    w = [cp.Variable(L.shape[1]) for L in factors]
    size = sum(cp.norm(each) for each in w)
    total = loss(cp, sum(L @ each for L, each in zip(factors, w, strict=True)))
    goal, bound = (0.5 * size**2 + C * total, []) if beta is None else (total, [size <= beta])
    solved = cp.Problem(cp.Minimize(goal), bound)
    solved.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return solved.value, size.value


@pytest.mark.parametrize("send", ["directions", "columns"])
@pytest.mark.parametrize("size", [{"C": 0.5}, {"C": 30.0}, {"beta": 3.0}])
def test_regression_equals_cvxpy(size, send):
    X, y, _ = data()

    def loss(cp, f):
        return cp.sum_squares(y - f - cp.Variable())

    model = MultipleKernelRegressor(
        **size, kernels=KERNELS, views=VIEWS, send=send, cluster=3, solver=EXACT
    ).fit(X, y)
    value, norm = optimum(matrices(X), loss, **size)
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    assert model.beta_ == pytest.approx(norm, rel=1e-3)
    residual = float(np.sum((y - model.predict(X)) ** 2))
    penalised = 0.5 * model.beta_**2 + model.C_ * residual
    assert model.result_.objective == pytest.approx(
        residual if "beta" in size else penalised, rel=1e-6
    )


@pytest.mark.parametrize("send", ["directions", "columns"])
@pytest.mark.parametrize("size", [{"C": 0.5}, {"C": 30.0}, {"beta": 3.0}])
def test_classification_equals_cvxpy(size, send):
    X, _, y = data(seed=1)
    signs = np.where(y, 1.0, -1.0)

    def loss(cp, f):
        return cp.sum_squares(cp.pos(1 - cp.multiply(signs, f)))

    model = MultipleKernelClassifier(
        **size, kernels=KERNELS, views=VIEWS, send=send, cluster=3, solver=EXACT
    ).fit(X, y)
    value, norm = optimum([K + 1.0 for K in matrices(X)], loss, **size)
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    assert model.beta_ == pytest.approx(norm, rel=1e-3)
    missing = np.maximum(1.0 - signs * model.decision_function(X), 0.0)
    residual = float(missing @ missing)
    penalised = 0.5 * model.beta_**2 + model.C_ * residual
    assert model.result_.objective == pytest.approx(
        residual if "beta" in size else penalised, rel=1e-6
    )


def test_several_classes_equal_cvxpy():
    X, _, _ = data(n=45, seed=2)
    y = np.digitize(X[:, 4] + X[:, 0] ** 2, [0.3, 1.2])
    label = np.where(y[:, None] == y, 1.0, -0.5)

    def loss(cp, f):
        return cp.sum_squares(cp.pos(1 - f))

    model = MultipleKernelClassifier(C=2.0, kernels=KERNELS, views=VIEWS, solver=EXACT).fit(X, y)
    value, _ = optimum([(K + 1.0) * label for K in matrices(X)], loss, C=2.0)
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    decisions = model.decision_function(X)
    assert decisions.shape == (45, 3)
    np.testing.assert_allclose(decisions.sum(axis=1), 0.0, atol=1e-9)
    missing = np.maximum(1.0 - decisions[np.arange(45), y], 0.0)
    penalised = 0.5 * model.beta_**2 + 2.0 * float(missing @ missing)
    assert penalised == pytest.approx(model.result_.objective, rel=1e-6)
