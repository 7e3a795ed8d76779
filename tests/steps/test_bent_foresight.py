"""Who is alone fits a loss whose curvature changes before the first question, as well as others."""

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.special import expit, xlogy
from sklearn.linear_model import LogisticRegression

from atomcast import Solver, SparseLogisticRegression, SparseModel
from atomcast.domains import L1Ball
from atomcast.known.active_set import FEW, ExplicitActiveSet
from atomcast.messages.atom import Atom
from atomcast.objectives import Logistic, SquaredHingeLoss
from atomcast.steps import bent_foresight
from atomcast.steps.bent_foresight import MANY, likely, room


def data(kind, seed=0):
    """Features and labels of a kind."""
    rng = np.random.default_rng(seed)
    d, n = (60, 300) if kind == "wide" else (400, 90)
    X = rng.standard_normal((d, n))
    y = np.where(X[:, :8] @ rng.standard_normal(8) + rng.standard_normal(d) > 0.0, 1.0, -1.0)
    if kind == "sparse":
        X = sparse.csc_matrix(np.where(rng.random((d, n)) < 0.05, X, 0.0))
    elif kind == "scaled":
        X = sparse.csc_matrix(np.where(rng.random((d, n)) < 0.1, X, 0.0) * rng.lognormal(0, 3, n))
    elif kind == "copies":
        X = X[:, rng.integers(0, 30, n)]
    elif kind == "redundant":
        X = X[:, :12] @ rng.standard_normal((12, n)) + 0.01 * X
    elif kind == "many":  # so many in use that their columns are swept
        X = sparse.random(400, 700, 0.02, random_state=seed, format="csc")
    elif kind == "separable":
        y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    return X, y


KINDS = ["dense", "wide", "sparse", "scaled", "copies", "redundant", "separable"]


def gap_of(X, y, beta, weights):
    """The objective and the duality gap, found anew."""
    margin = y * (X @ weights)
    gradient = -(X.T @ (y * expit(-margin)))
    value = np.logaddexp(0.0, -margin).sum()
    return value, weights @ gradient + beta * np.abs(gradient).max()


@pytest.mark.parametrize("share", [0.3, 0.03])
@pytest.mark.parametrize("kind", KINDS)
def test_it_finds_what_others_find_and_says_how_good_it_is(kind, share):
    X, y = data(kind)
    penalty = share * np.abs(X.T @ (0.5 * y)).max()
    theirs = LogisticRegression(
        C=1.0 / penalty, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-8,
        max_iter=100_000, random_state=0,
    ).fit(X, y)  # fmt: skip
    beta = float(np.abs(theirs.coef_).sum())
    model = SparseLogisticRegression(beta, fit_intercept=False, tol=1e-7).fit(X, y)
    value, gap = gap_of(X, y, beta, model.coef_.ravel())
    result = model.result_
    assert result.status == "optimal"
    assert result.rounds == 1  # all else was foreseen
    assert result.ledger.values == 0
    assert np.abs(model.coef_).sum() <= beta * (1.0 + 1e-12)
    assert result.objective == pytest.approx(value, rel=1e-12)
    assert result.gap == pytest.approx(gap, rel=1e-6, abs=1e-12 * value)
    assert gap <= 1e-7 * value
    assert value == pytest.approx(gap_of(X, y, beta, theirs.coef_.ravel())[0], rel=1e-6)


def penalised_bounds(X, y, penalty, weights):
    """The penalised objective, and what its Fenchel dual says that it cannot be below."""
    missed = expit(-y * (X @ weights))
    missed *= min(1.0, penalty / np.abs(X.T @ (y * missed)).max())
    entropy = -(xlogy(missed, missed) + xlogy(1.0 - missed, 1.0 - missed))
    loss = np.logaddexp(0.0, -y * (X @ weights)).sum()
    return loss + penalty * np.abs(weights).sum(), entropy.sum()


@pytest.mark.parametrize("share", [0.3, 0.03])
@pytest.mark.parametrize("kind", [*KINDS, "many"])
def test_beside_a_penalty_it_finds_the_radius_at_once(kind, share):
    X, y = data(kind)
    penalty = share * np.abs(X.T @ (0.5 * y)).max()
    model = SparseLogisticRegression(C=1.0 / penalty, fit_intercept=False, tol=1e-6).fit(X, y)
    value, bound = penalised_bounds(X, y, penalty, model.coef_.ravel())
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(value, rel=1e-12)
    assert value - bound <= 1e-4 * value
    assert model.n_iter_ <= 2  # or one more, where the target has fallen
    theirs = LogisticRegression(
        C=1.0 / penalty, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-8,
        max_iter=100_000, random_state=0,
    ).fit(X, y)  # fmt: skip
    best = penalised_bounds(X, y, penalty, theirs.coef_.ravel())[0]
    assert value == pytest.approx(best, rel=2e-6)
    assert value - model.result_.gap <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("looks", [0, 1, 2, 4])
def test_secants_find_the_radius_where_looks_do_not(monkeypatch, looks):
    X, y = data("dense")
    foreseen = SparseLogisticRegression(C=0.2, tol=1e-6).fit(X, y)
    monkeypatch.setattr(bent_foresight, "LOOKS", looks)
    model = SparseLogisticRegression(C=0.2, tol=1e-6).fit(X, y)
    assert model.result_.status == "optimal"
    assert model.n_iter_ > foreseen.n_iter_
    assert model.result_.objective == pytest.approx(foreseen.result_.objective, rel=2e-6)
    assert model.beta_ == pytest.approx(foreseen.beta_, rel=1e-2)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_where_rounds_of_questions_lead_to(kind, fit_intercept):
    X, y = data(kind, seed=1)
    weight = np.random.default_rng(0).random(len(y))
    made = {"beta": 1.5, "fit_intercept": fit_intercept, "tol": 1e-8}
    alone = SparseLogisticRegression(**made).fit(X, y, sample_weight=weight)
    asked = SparseLogisticRegression(**made, cluster=3).fit(X, y, sample_weight=weight)
    assert alone.result_.status == asked.result_.status == "optimal"
    assert alone.result_.rounds < asked.result_.rounds
    assert alone.result_.objective == pytest.approx(asked.result_.objective, rel=1e-7)
    np.testing.assert_allclose(alone.decision_function(X), asked.decision_function(X), atol=1e-2)


def test_a_perfect_fit_is_left_where_its_loss_is_negligible():
    X, y = data("separable")
    model = SparseLogisticRegression(1e4, fit_intercept=False).fit(X, y)
    assert model.result_.status == "optimal"
    assert model.result_.objective <= 1e-6 * len(y) * np.log(2.0)


def test_other_losses_are_foreseen_as_well():
    X, y = data("dense")
    made = {"domain": L1Ball(1.0), "solver": Solver(tol=1e-7)}
    alone = SparseModel(SquaredHingeLoss(), **made).fit(X, y)
    asked = SparseModel(SquaredHingeLoss(), **made, cluster=2).fit(X, y)
    assert alone.result_.rounds == 1 < asked.result_.rounds
    assert alone.result_.objective == pytest.approx(asked.result_.objective, rel=1e-6)


@pytest.mark.parametrize("few", [0, 20])
def test_rounds_go_on_where_it_ends_early(monkeypatch, few):
    X, y = data("sparse")
    whole = SparseLogisticRegression(8.0, tol=1e-7).fit(X, y)
    monkeypatch.setattr(bent_foresight, "MANY", few)
    model = SparseLogisticRegression(8.0, tol=1e-7).fit(X, y)
    assert model.result_.rounds > whole.result_.rounds == 1
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(whole.result_.objective, rel=1e-6)


@pytest.mark.parametrize(
    "solver",
    [
        Solver(atoms_per_round=3),
        Solver(selection="random-violators"),
        Solver("away"),
        Solver(thin=True),
    ],
    ids=["count", "selection", "step", "thin"],
)
def test_who_asks_for_rounds_gets_them(solver):
    X, y = data("dense")
    result = SparseLogisticRegression(2.0, solver=solver).fit(X, y).result_
    assert result.status == "optimal"
    assert result.rounds > 1


def test_no_more_than_a_few_join_before_these_are_not_enough():
    assert room(0, 0) == FEW
    assert room(100, 90) == FEW - 100
    assert room(100, 100) == MANY - 100
    assert room(FEW, 10) == MANY - FEW


def test_no_feature_of_use_leaves_no_model():
    X, y = data("dense")
    model = SparseLogisticRegression(1.0, tol=10.0).fit(X, y)
    assert model.result_.rounds == 0
    assert not model.coef_.any()


@pytest.mark.parametrize("scale", [1e-20, 0.1, 3.0, 1e3])
def test_likely_atoms_are_those_of_a_solution_where_none_has_to_do_with_another(scale):
    rng = np.random.default_rng(3)
    d, k = 60, 12
    columns = np.zeros((d, k))
    columns[np.arange(d), np.arange(d) % k] = rng.standard_normal(d) * np.tile(
        rng.lognormal(0.0, 1.0, k), d // k
    )
    objective = Logistic(rng.choice([-1.0, 1.0], d))
    merit = np.abs(columns.T @ objective.gradient(np.zeros(d)))
    order = np.argsort(-merit)
    active = ExplicitActiveSet(objective)
    active.append([Atom(int(j), d, columns[:, j]) for j in order])
    lengths = 0.25 * (columns**2).sum(axis=0)

    def norm(penalty):
        return (np.maximum(merit - penalty, 0.0) / lengths).sum() - scale

    penalty = optimize.brentq(norm, 0.0, merit.max()) if norm(0.0) > 0.0 else 0.0
    expected = np.flatnonzero(merit[order] > penalty * (1.0 + 1e-9))
    found = likely(active, scale, merit[order])
    if scale == 1e-20:  # nothing but rounding
        expected = np.array([0])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mean", [10.0, 1e3, 1e4])
@pytest.mark.parametrize("seed", [1, 3])
def test_columns_far_from_zero(seed, mean):
    """All but coincide: models of them took minutes, and ended with a gap of 33 times the loss."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((132, 323))
    s = X @ np.where(np.arange(323) < 20, rng.standard_normal(323), 0.0)
    y = s + 0.5 * rng.standard_normal(132) > np.median(s)
    X += mean
    model = SparseLogisticRegression(45.7, fit_intercept=False).fit(X, y)
    assert model.result_.status == "optimal"
    assert model.result_.rounds <= 3
    w, sign = model.coef_.ravel(), np.where(y, 1.0, -1.0)
    slopes = X.T @ (-sign * expit(-sign * (X @ w)))
    gap = w @ slopes + 45.7 * np.abs(slopes).max()
    assert gap <= 1.01e-4 * np.logaddexp(0.0, -sign * (X @ w)).sum()
