"""What models of many kernels refuse, in words that help, and scikit-learn's own checks of them."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from atomcast import (
    Faults,
    LocalCluster,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    Shards,
    Solver,
)

VIEWS = [[0, 1], [2, 3], [4, 5], [6, 7]]


def data(n=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    return X, X[:, 0] * X[:, 1] + X[:, 4]


def _odd(X, Z):
    return -X @ Z.T


BAD = [
    ({"C": 0.0}, "C must be a finite number > 0"),
    ({"beta": -1.0}, "beta must be a finite number > 0"),
    ({"send": "factors"}, "send must be one of 'directions', 'columns'"),
    ({"kernels": []}, "kernels is empty"),
    ({"kernels": ["cubic"]}, "kernel must be one of"),
    ({"kernels": [{"kernel": "rbf", "width": 1}]}, "kernels has a parameter 'width'"),
    ({"kernels": [3]}, "kernels has 3: accepted are"),
    ({"kernels": {0: "rbf"}, "views": VIEWS}, "says nothing of view 1"),
    ({"kernels": {"x": "rbf"}, "views": VIEWS}, "kernels has the view 'x'"),
    ({"views": [[0, 1]]}, "views do not cover column 2"),
    ({"views": [[0, 1, 2, 3, 4, 5, 6, 7], [0]]}, "views overlap: column 0"),
    ({"kernels": "precomputed"}, "X has 8 columns and 60 rows"),
    ({"kernels": [_odd]}, "is not positive semidefinite: its least eigenvalue"),
    ({"solver": Solver(tol_kind="absolute")}, "is found to a relative gap"),
    ({"solver": "away"}, "needs a domain with finitely many vertices"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_bad_parameters(parameters, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        MultipleKernelRegressor(**parameters).fit(X, y)


def test_bad_precomputed_kernels():
    X, y = data()
    K = X @ X.T
    model = MultipleKernelRegressor(kernels="precomputed", cluster=2)
    crooked, indefinite = K.copy(), K.copy()
    crooked[0, 1] += 1.0
    indefinite[range(60), range(60)] -= 1.0
    with pytest.raises(ValueError, match="view 1: precomputed is not symmetric"):
        model.fit([K, crooked], y)
    with pytest.raises(ValueError, match="view 0: precomputed is not positive semidefinite"):
        model.fit([indefinite, K], y)
    with pytest.raises(ValueError, match="all need the same"):
        model.fit([K, K[:50]], y)
    with pytest.raises(ValueError, match="a whole view must live on one node"):
        MultipleKernelRegressor(views=VIEWS).fit(Shards.split(X, 3), y)


def test_directions_need_gradients_that_all_know():
    X, y = data()
    cluster = LocalCluster(4, faults=Faults(loss=0.2, seed=1), recovery="none")
    model = MultipleKernelRegressor(beta=2.0, views=VIEWS, kernels="rbf", cluster=cluster)
    model.set_params(solver=Solver(step="classic", max_rounds=20, tol=0.5))
    with pytest.raises(ValueError, match='use send="columns"'):
        model.fit(X, y)
    model.set_params(send="columns").fit(X, y)
    assert model.result_.relative_gap < 0.5


@parametrize_with_checks(
    [
        MultipleKernelClassifier(),
        MultipleKernelRegressor(cluster=3, kernels=["rbf", "linear"], tol=1e-8),
    ]
)
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)
