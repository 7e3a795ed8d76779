"""ProxCoCoA: the solution of scikit-learn, an objective that never rises, and what is charged."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from atomcast.baselines.cocoa import ProxCocoa
from atomcast.data.shards import Shards
from problems import regression, sparse_regression


@pytest.mark.parametrize("nodes", [1, 3, 40])
@pytest.mark.parametrize("make", [regression, sparse_regression])
def test_it_converges_to_the_lasso(nodes, make):
    X, y = make(seed=4)  # of 40 nodes, some may have no feature
    lam = 0.2 * float(np.abs(X.T @ y).max())
    how = ProxCocoa(lam, max_rounds=20_000, tol=1e-10, local_tol=1e-11)
    result = how.solve(y, Shards.split(X, nodes))
    expected = Lasso(alpha=lam / len(y), fit_intercept=False, tol=1e-12, max_iter=10**6).fit(X, y)
    assert result.status == "optimal"
    np.testing.assert_allclose(result.weights, expected.coef_, atol=1e-5)


def test_the_penalised_objective_never_rises_and_a_bold_sigma_is_faster():
    X, y = regression(seed=5, d=80, n=60)
    lam, ends = 0.1 * float(np.abs(X.T @ y).max()), {}
    for sigma in (None, 2.0):
        values = []
        for rounds in range(1, 12):
            result = ProxCocoa(lam, sigma, max_rounds=rounds, tol=1e-12).solve(
                y, Shards.split(X, 6)
            )
            values.append(0.5 * result.objective + lam * np.abs(result.weights).sum())
        ends[sigma] = values
    assert np.all(np.diff(ends[None]) <= 1e-9 * ends[None][0])
    assert ends[2.0][-1] < ends[None][-1]


def test_changes_go_up_and_the_prediction_comes_down():
    X, y = regression(seed=6, d=20, n=30)
    result = ProxCocoa(0.01, max_rounds=3, tol=1e-12).solve(y, Shards.split(X, 5))
    assert result.ledger.by_kind()["prediction"].values == 3 * 5 * (20 + 20)


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="sigma"):
        ProxCocoa(1.0, sigma=-1.0)
