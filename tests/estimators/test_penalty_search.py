"""Penalties in the place of radii: the same solutions as scikit-learn, celer, and our own balls."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as TheirLasso
from sklearn.linear_model import LogisticRegression

from atomcast import (
    Checkpoint,
    GroupLasso,
    GroupLogisticRegression,
    Lasso,
    LassoCV,
    LocalCluster,
    Shards,
    Solver,
    SparseLogisticRegression,
)
from atomcast.estimators.penalty_search import PenaltySearch, Tried
from atomcast.objectives import SquaredError
from atomcast.steps.inner import penalised_newton
from problems import regression

X, Y = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("alpha", [3.0, 2.0, 1.0, 0.1, 0.01])
def test_the_lasso_of_scikit_learn(alpha):
    ours = Lasso(alpha=alpha, tol=1e-9, cluster=3).fit(X, Y)
    theirs = TheirLasso(alpha=alpha, tol=1e-12, max_iter=10**5).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)
    assert ours.alpha_ == alpha
    assert ours.beta_ == pytest.approx(np.abs(theirs.coef_).sum(), rel=1e-7)
    assert ours.result_.status == "optimal"
    if alpha == 3.0:
        assert not ours.coef_.any()
        assert ours.result_.ledger.atoms_sent == 0


@pytest.mark.parametrize("cluster", [None, 2])
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_the_gap_of_the_penalised_form_holds(tol, cluster):
    A, b = regression(seed=3, d=40, n=90)
    value = {}
    for how in (tol, 1e-13):
        model = Lasso(alpha=0.05, fit_intercept=False, tol=how, cluster=cluster).fit(A, b)
        value[how] = model.result_.objective
        penalty = 2 * 0.05 * len(b) * np.abs(model.coef_).sum()
        loss = np.sum((b - A @ model.coef_) ** 2)
        assert model.result_.objective == pytest.approx(loss + penalty, rel=1e-9)
        assert model.result_.relative_gap <= how
        assert model.dual_gap_ == model.result_.gap
    rounding = 1e-14 * value[tol]
    assert -rounding <= value[tol] - value[1e-13] <= tol * value[tol]


@pytest.mark.parametrize("C", [0.02, 1.0, 30.0])
def test_the_logistic_regression_of_scikit_learn(C):
    A, b = regression(seed=1, d=50, n=80)
    ours = SparseLogisticRegression(C=C, fit_intercept=False, tol=1e-9).fit(A, b > 0)
    theirs = LogisticRegression(
        C=C, l1_ratio=1, solver="liblinear", fit_intercept=False, tol=1e-11, max_iter=10**5
    ).fit(A, b > 0)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.C_ == C
    assert ours.beta_ == pytest.approx(np.abs(theirs.coef_).sum(), abs=1e-4)


def test_several_classes_have_one_penalty():
    A, b = regression(seed=2, d=60, n=20)
    y = np.digitize(b, [-1.0, 1.0])
    ours = SparseLogisticRegression(C=0.5, tol=1e-8).fit(A, y)
    theirs = LogisticRegression(C=0.5, l1_ratio=1, solver="saga", tol=1e-9, max_iter=10**5)
    np.testing.assert_allclose(ours.coef_, theirs.fit(A, y).coef_, atol=1e-3)


def test_a_ball_too_small_for_any_weights_is_followed_by_a_larger_one():
    labels = Y > 150
    smallest = 1.0 / np.abs(X.T @ (labels - labels.mean())).max()
    model = SparseLogisticRegression(C=1.5 * smallest, tol=0.1).fit(X, labels)
    assert model.result_.status == "optimal"


def test_slopes_of_losses_go_on_as_logarithms_and_far_balls_are_solved_roughly():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 8))
    y = np.argmax(A @ rng.standard_normal((8, 5)) + rng.gumbel(size=(400, 5)), axis=1)
    exact = SparseLogisticRegression(C=1.0, tol=1e-9).fit(A, y).result_
    result = SparseLogisticRegression(C=1.0).fit(A, y).result_
    assert result.rounds <= 14  # 20 and more along lines, each ball solved to the end
    assert 0.0 <= result.objective - exact.objective <= result.gap <= 1e-4 * result.objective


def test_groups():
    from celer import GroupLasso as Theirs

    A, b = regression(seed=5, d=60, n=40)
    groups = [list(range(start, start + 5)) for start in range(0, 40, 5)]
    ours = GroupLasso(alpha=0.1, groups=groups, tol=1e-9, cluster=2).fit(A, b)
    theirs = Theirs(groups=5, alpha=0.1, weights=np.full(8, np.sqrt(5)), tol=1e-12).fit(A, b)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    again = GroupLasso(beta=ours.beta_, groups=groups, tol=1e-9).fit(A, b)
    assert again.alpha_ == pytest.approx(0.1, rel=1e-4)
    classes = GroupLogisticRegression(C=1.0, groups=groups, tol=1e-8).fit(A, b > 0)
    again = GroupLogisticRegression(beta=classes.beta_, groups=groups, tol=1e-8).fit(A, b > 0)
    assert pytest.approx(1.0, rel=1e-3) == again.C_


def test_radii_and_penalties_are_exchanged():
    ball = Lasso(beta=900.0, tol=1e-10).fit(X, Y)
    assert ball.beta_ == 900.0
    again = Lasso(alpha=ball.alpha_, tol=1e-10).fit(X, Y)
    assert again.beta_ == pytest.approx(900.0, rel=1e-6)
    assert Lasso(beta=1e6).fit(X, Y).alpha_ == pytest.approx(0.0, abs=1e-3)  # it does not bind
    chosen = LassoCV(betas=[100.0, 900.0, 1000.0], cv=3, tol=1e-10).fit(X, Y)
    assert Lasso(alpha=chosen.alpha_).fit(X, Y).beta_ == pytest.approx(chosen.beta_, rel=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_without_either_a_tenth_of_the_largest_penalty_is_taken_and_said(scale):
    with pytest.warns(UserWarning, match="neither beta nor alpha is given: took alpha="):
        model = Lasso().fit(X, scale * Y)
    largest = np.abs((X - X.mean(0)).T @ (Y - Y.mean())).max() / len(Y)
    assert model.alpha_ == pytest.approx(0.1 * scale * largest)
    np.testing.assert_allclose(model.coef_, Lasso(alpha=model.alpha_).fit(X, scale * Y).coef_)
    with pytest.warns(UserWarning, match="neither beta nor C is given"):
        SparseLogisticRegression().fit(X, Y > 150)


def test_a_constant_target_has_an_empty_model():
    with pytest.warns(UserWarning, match="neither"):
        model = Lasso().fit(X, np.ones(len(Y)))
    assert (model.beta_, model.alpha_, model.intercept_) == (0.0, 0.0, 1.0)
    assert not model.coef_.any()


def test_the_path_of_a_model_tells_its_penalties():
    model = Lasso(tol=1e-10)
    path = model.path(X, Y, betas=[100.0, 1000.0])
    for k, alpha in enumerate(path.strengths.tolist()):
        alone = Lasso(alpha=alpha, tol=1e-10).fit(X, Y)
        np.testing.assert_allclose(path.coefs[:, k], alone.coef_, atol=1e-3)
    labels = np.digitize(Y, [100, 200])
    several = SparseLogisticRegression(cluster=2, tol=1e-9).path(X, labels, betas=[1.0, 5.0])
    assert several.coefs.shape == (3, 10, 2)
    assert several.intercepts.shape == (3, 2)
    alone = SparseLogisticRegression(beta=5.0, tol=1e-9).fit(X, labels)
    np.testing.assert_allclose(several.coefs[..., 1], alone.coef_, atol=1e-2)
    groups = GroupLasso(groups=[[0, 1], list(range(2, 10))]).path(X, Y, betas=[50.0, 500.0])
    assert groups.coefs.shape == (10, 2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Lasso(beta=1.0, alpha=1.0), "beta=1.0 and alpha=1.0 exclude each other"),
        (Lasso(alpha=0.0), "alpha must be a finite number > 0"),
        (SparseLogisticRegression(C=-1.0), "C must be a finite number > 0"),
        (GroupLasso(beta=0.0), "beta must be a finite number > 0"),
        (Lasso(alpha=1.0, solver=Solver(callbacks=[Checkpoint("c")])), "checkpoints are neither"),
    ],
)
def test_mistakes(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y > 150)


def test_a_step_that_ends_early_says_how_good_it_is():
    with pytest.warns(ConvergenceWarning, match="above tol"):
        model = Lasso(alpha=0.5, solver="classic", max_rounds=5).fit(X, Y)
    best = Lasso(alpha=0.5, tol=1e-10).fit(X, Y).result_.objective
    assert 0 < model.result_.objective - best <= model.result_.gap


def test_on_every_kind_of_nodes_and_data():
    A, b = regression(seed=7, d=30, n=50)
    alone = Lasso(alpha=0.1, tol=1e-9).fit(A, b)
    for cluster in (LocalCluster(4, isolated=True), LocalCluster(4, topology="tree")):
        model = Lasso(alpha=0.1, tol=1e-9, cluster=cluster).fit(Shards.split(A, 4), b)
        np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-7)
        ledger = model.result_.ledger
        assert ledger.atoms_sent >= np.count_nonzero(alone.coef_)
        assert len({one.atom for one in ledger.disclosures}) == ledger.atoms_sent


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_known_atoms_say_what_the_radius_is(share):
    A, b = regression(seed=5, d=80, n=60)
    alpha = share * np.abs(A.T @ b).max() / len(b)
    model = Lasso(alpha=alpha, fit_intercept=False).fit(A, b)
    theirs = TheirLasso(alpha=alpha, fit_intercept=False, tol=1e-12).fit(A, b)
    assert model.beta_ == pytest.approx(np.abs(theirs.coef_).sum(), rel=1e-6)
    assert model.n_iter_ <= 4  # secants alone take seven and more


@pytest.mark.parametrize("C", [0.06, 0.3, 10.0, 1e4])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_small_table_says_what_the_radius_of_a_loss_is(C, fit_intercept):
    A, b = regression(seed=3, d=150, n=12)
    noise = np.random.default_rng(0).standard_normal(150)
    labels = b + b.std() * noise > 0.0
    own = {"fit_intercept": fit_intercept}
    model = SparseLogisticRegression(C=C, tol=1e-8, **own).fit(A, labels)
    scale = 1e6 if fit_intercept else 1.0  # theirs is penalised, unless it is in small units
    theirs = LogisticRegression(
        C=C, l1_ratio=1.0, solver="liblinear", tol=1e-12, max_iter=100_000, intercept_scaling=scale,
        random_state=0, **own,
    ).fit(A, labels)  # fmt: skip
    assert model.result_.status == "optimal"
    assert model.beta_ == pytest.approx(np.abs(theirs.coef_).sum(), rel=1e-3)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-3 * np.abs(theirs.coef_).max())
    assert model.n_iter_ == 1  # one ball is solved, the right one; secants alone take seven or more


def test_models_that_are_not_easy_leave_what_they_have_found(monkeypatch):
    """The search goes on from there, to the same model."""
    A, b = regression(seed=3, d=150, n=12)
    labels, asked = b > 0.5 * b.std(), []
    whole = SparseLogisticRegression(C=2.0, tol=1e-8).fit(A, labels)
    easy = penalised_newton.penalised_solution

    def twice(*model):
        asked.append(model)
        return easy(*model) if len(asked) <= 2 else None

    monkeypatch.setattr(penalised_newton, "penalised_solution", twice)
    monkeypatch.setattr(penalised_newton, "one_by_one", lambda *model: None)
    found = SparseLogisticRegression(C=2.0, tol=1e-8).fit(A, labels)
    assert len(asked) == 3
    assert found.result_.status == "optimal"
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-3 * np.abs(whole.coef_).max())


def test_balls_that_are_alike_lead_on_by_a_small_step():
    objective = SquaredError(np.arange(9.0))
    search = PenaltySearch(lambda beta: None, lambda result: 0.0, objective, lambda most: 1.0)
    search.penalty = 1.0
    search._tried = [Tried(0.0, 9.0, 50.0), Tried(2.0, 1.1, 40.0), Tried(2.0, 1.1, 40.0)]
    search._beta = 2.0
    assert 2.0 < search._next() < 2.01
    search._beta = 2.1  # so large a ball left the weights as they were: a larger one may not
    assert search._next() > 2.1


@pytest.mark.parametrize("seed", range(20))
def test_lines_leave_no_less_than_a_linear_program_says(seed):
    rng = np.random.default_rng(seed)
    objective = SquaredError(np.arange(9.0))
    objective.lower_bound = [0.0, -np.inf][seed % 2]
    search = PenaltySearch(lambda beta: None, lambda result: 0.0, objective, lambda most: 1.0)
    search.penalty = 1.0
    slopes, levels = rng.uniform(0.0, 5.0, 1 + seed // 2), rng.uniform(0.0, 50.0, 1 + seed // 2)
    search._tried = [Tried(0.0, *line) for line in zip(slopes, levels, strict=True)]
    search._tried.append(Tried(1.0, 0.3, -np.inf))  # which says nothing
    levels, slopes = np.append(levels, objective.lower_bound), np.append(slopes, 0.0)
    told = np.isfinite(levels)
    lines = np.stack([search.penalty - slopes, -np.ones(len(slopes))], axis=1)
    found = linprog([0.0, 1.0], lines[told], -levels[told], bounds=[(0, None), (None, None)])
    assert search._least() == pytest.approx(found.fun if found.status == 0 else -np.inf)
