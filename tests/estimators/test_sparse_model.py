"""A model from parts is what our own estimators are, and takes parts of a user's own."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from atomcast import Lasso, Shards, Solver, SparseLogisticRegression, SparseModel
from atomcast.domains import GroupBall, L1Ball, Simplex
from atomcast.domains.group_ball import Groups
from atomcast.objectives import LogisticLoss, PointwiseLoss, SquaredError, SquaredLoss


@dataclass(frozen=True)
class Huber(PointwiseLoss):
    """Squares of small residuals, absolute values of large ones."""

    delta: float = 1.0
    fit_intercept: bool = True

    def losses(self, y, z):
        r = np.abs(y - z)
        return np.where(r <= self.delta, 0.5 * r * r, self.delta * (r - 0.5 * self.delta))

    def slopes(self, y, z):
        return np.clip(z - y, -self.delta, self.delta)

    def bends(self, y, z):
        return (np.abs(y - z) <= self.delta).astype(float)


@parametrize_with_checks(
    [
        SparseModel(LogisticLoss(), L1Ball(1.0), cluster=2, solver=Solver(max_rounds=50)),
        SparseModel(Huber(), L1Ball(3.0), cluster=2, solver=Solver(max_rounds=50)),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


@pytest.fixture
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.mark.parametrize(
    "objective", [SquaredLoss(), partial(SquaredError, fit_intercept=True)], ids=["loss", "made"]
)
def test_least_squares_in_a_ball_is_the_lasso(diabetes, objective):
    model = SparseModel(objective, L1Ball(900.0), cluster=4, solver="pairwise").fit(*diabetes)
    lasso = Lasso(900.0, cluster=4, solver="pairwise").fit(*diabetes)
    np.testing.assert_array_equal(model.coef_, lasso.coef_)
    assert model.intercept_ == lasso.intercept_
    assert model.score(*diabetes) == lasso.score(*diabetes)
    assert model.result_.ledger.disclosures == lasso.result_.ledger.disclosures
    assert is_regressor(model)
    assert not hasattr(model, "decision_function")


def test_logistic_loss_in_a_ball_is_sparse_logistic_regression():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X), np.array(["sick", "well"])[y]
    model = SparseModel(LogisticLoss(), L1Ball(3.0), cluster=3).fit(X, y)
    ours = SparseLogisticRegression(3.0, cluster=3).fit(X, y)
    np.testing.assert_array_equal(model.coef_, ours.coef_[0])
    np.testing.assert_array_equal(model.decision_function(X), ours.decision_function(X))
    assert model.predict(X).tolist() == ours.predict(X).tolist()
    assert model.score(X, y) == ours.score(X, y) > 0.9
    assert is_classifier(model)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("step", ["corrective", "pairwise"])
def test_a_loss_of_a_user_s_own(fit_intercept, step):
    """Huber's loss over the simplex, against scipy on the same problem."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    y = X @ [0.7, 0.3, 0, 0, 0, 0] + 5.0 * fit_intercept + 0.1 * rng.standard_normal(40)
    y[:4] += 30.0  # outliers, which least squares would follow
    loss = Huber(delta=0.5, fit_intercept=fit_intercept)
    model = SparseModel(loss, Simplex(), cluster=3, solver=Solver(step, tol=1e-6)).fit(X, y)
    assert model.result_.status == "optimal"

    def value(point):
        return loss.losses(y, X @ point[:6] + fit_intercept * point[6]).sum()

    best = minimize(
        value,
        np.append(np.full(6, 1 / 6), 1.0),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 6 + [(None, None)],
        constraints={"type": "eq", "fun": lambda point: point[:6].sum() - 1.0},
        options={"ftol": 1e-14, "maxiter": 1_000},
    ).fun
    assert model.result_.objective == pytest.approx(best, rel=1e-5)
    assert model.result_.objective - model.dual_gap_ <= best * (1 + 1e-9)
    assert value(np.append(model.coef_, model.intercept_)) == pytest.approx(model.result_.objective)


def test_shards_clones_and_a_grid_search(diabetes):
    X, y = diabetes
    model = SparseModel(SquaredLoss(), L1Ball(700.0)).fit(Shards.split(X, 3), y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert copy.get_params() == model.get_params() | {"cluster": None}
    np.testing.assert_array_equal(copy.fit(Shards.split(X, 3), y).coef_, model.coef_)
    grid = {"domain": [L1Ball(1.0), L1Ball(1000.0)], "solver__tol": [1e-3]}
    search = GridSearchCV(copy, grid, cv=2).fit(X, y)
    assert search.best_params_["domain"] == L1Ball(1000.0)
    assert "SquaredLoss" in repr(copy)


def test_a_run_that_is_cut_short_warns_where_fit_was_called(diabetes):
    model = SparseModel(SquaredLoss(), L1Ball(900.0), solver=Solver("classic", max_rounds=3))
    with pytest.warns(ConvergenceWarning, match="after 3 rounds") as seen:
        model.fit(*diabetes)
    assert seen[0].filename == __file__


@pytest.mark.parametrize(
    ("objective", "domain", "message"),
    [
        ("squared", L1Ball(1.0), "objective must be a loss .* got 'squared'"),
        (SquaredError([1.0, 2.0, 4.0]), L1Ball(1.0), "has its target already"),
        (lambda y: None, L1Ball(1.0), "makes None of the target"),
        (SquaredLoss(), 1.0, "domain must be an atomcast.domains.Domain .* got 1.0"),
        (
            SquaredLoss(),
            GroupBall(1.0, Groups(np.zeros(2, dtype=int), np.ones(1), np.zeros(1, dtype=int))),
            "which GroupBall is not: use GroupLasso",
        ),
        (LogisticLoss(), L1Ball(1.0), "Only binary classification"),
    ],
)
def test_parts_that_do_not_fit(objective, domain, message):
    with pytest.raises(ValueError, match=message):
        SparseModel(objective, domain).fit([[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]], [0.0, 1.0, 2.0])


def test_a_loss_without_a_best_intercept():
    class Falling(Huber):
        def losses(self, y, z):
            return np.logaddexp(0.0, -z)

        def slopes(self, y, z):
            return -1.0 / (1.0 + np.exp(np.minimum(z, 700.0)))

        def bends(self, y, z):
            return np.exp(-np.abs(z))

    with pytest.raises(ValueError, match="Falling has no best intercept"):
        SparseModel(Falling(), L1Ball(1.0)).fit([[0.0], [1.0]], [0.0, 1.0])
