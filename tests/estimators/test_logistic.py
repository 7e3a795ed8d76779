"""Sparse logistic regression: the optimum, the same on any number of nodes, and its errors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import scale

import realdata
from atomcast import (
    LocalCluster,
    Shards,
    Solver,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
)
from atomcast.data import load_dorothea

# Steps that are slow by nature are cut short here, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

STEPS = ("classic", "line-search", "away", "pairwise", "blended-pairwise", "corrective")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[::2], y[::2]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    return np.hstack([scale(X), rng.standard_normal((150, 6))]), np.array(["a", "b", "c"])[y]


def total_loss(model, X, y):
    return log_loss(y, model.predict_proba(X), normalize=False)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_equals_scikit_learn_at_the_matching_penalty(data, fit_intercept, request):
    X, y = request.getfixturevalue(data)
    theirs = LogisticRegression(
        l1_ratio=1.0,
        solver="saga",
        C=0.05,
        tol=1e-9,
        max_iter=100_000,
        fit_intercept=fit_intercept,
        random_state=0,
    ).fit(X, y)
    radius = np.abs(theirs.coef_).sum()
    ours = SparseLogisticRegression(
        radius, fit_intercept=fit_intercept, cluster=3, solver=Solver(tol=1e-8)
    ).fit(X, y)
    assert ours.result_.status == "optimal"
    assert np.abs(ours.coef_).sum() <= radius * (1 + 1e-9)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    expected = total_loss(theirs, X, y)
    assert ours.result_.objective == pytest.approx(expected, rel=1e-6)
    assert total_loss(ours, X, y) == pytest.approx(ours.result_.objective, rel=1e-9)
    # The multiplier of the ball is scikit-learn's penalty, 1 / C.
    gradient = (ours.predict_proba(X) - (y[:, None] == ours.classes_)).T @ X
    steepest = np.abs(gradient).max()
    assert steepest == pytest.approx(1 / 0.05, rel=1e-3)


def tolerance(step):
    """What a step reaches in a test's time: Algorithm 3 is slow by nature."""
    return 3e-3 if step in ("classic", "line-search") else 1e-7


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_any_number_of_nodes_and_every_step(data, step, request):
    X, y = request.getfixturevalue(data)
    solver = Solver(step=step, tol=tolerance(step), max_rounds=150)
    results = [
        SparseLogisticRegression(3.0, cluster=cluster, solver=solver).fit(X, y).result_
        for cluster in (1, 2, 7, LocalCluster(5, isolated=True))
    ]
    best = SparseLogisticRegression(3.0, solver=Solver(tol=1e-9)).fit(X, y).result_.objective
    for result in results:
        assert result.rounds == results[0].rounds
        np.testing.assert_array_equal(result.atom_ids, results[0].atom_ids)
        np.testing.assert_allclose(result.weights, results[0].weights, atol=1e-8)
        assert best - 1e-9 <= result.objective <= best + result.gap + 1e-9


def test_a_feature_is_broadcast_once_for_all_classes(iris):
    X, y = iris
    model = SparseLogisticRegression(20.0, cluster=4, solver=Solver(tol=1e-6)).fit(X, y)
    sent = [entry.atom for entry in model.result_.ledger.disclosures]
    assert len(sent) == len(set(sent)) <= X.shape[1]
    assert all(entry.values == len(X) for entry in model.result_.ledger.disclosures)
    shared = np.count_nonzero(model.coef_, axis=0)
    assert shared.max() >= 2  # some feature does serve more than one class
    assert set(np.flatnonzero(shared)) <= set(sent)


@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_layouts_give_the_same_model(data, request):
    X, y = request.getfixturevalue(data)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    solver = Solver(tol=1e-8)
    dense = SparseLogisticRegression(2.0, solver=solver).fit(X, y)
    for other in (sparse.csc_matrix(X), sparse.csr_array(X), Shards.split(X, 3)):
        model = SparseLogisticRegression(2.0, solver=solver).fit(other, y)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-6)
        np.testing.assert_allclose(model.predict_proba(other), dense.predict_proba(X), atol=1e-6)


def test_class_weights_count_like_repeated_examples(cancer):
    X, y = cancer
    again = np.flatnonzero(y == 0)
    solver = Solver(tol=1e-9)
    weighted = SparseLogisticRegression(2.0, class_weight={0: 2.0, 1: 1.0}, solver=solver)
    repeated = SparseLogisticRegression(2.0, solver=solver)
    weighted.fit(X, y)
    repeated.fit(np.vstack([X, X[again]]), np.append(y, y[again]))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-6)


def test_separable_classes_and_a_huge_radius():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = (X[:, 0] > 0).astype(int)
    model = SparseLogisticRegression(1e4).fit(X, y)
    assert model.score(X, y) == 1.0
    assert np.all(np.isfinite(model.coef_))
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    assert SparseLogisticRegression(1e3).fit(X, three).score(X, three) == 1.0


def test_features_of_no_use(cancer):
    _, y = cancer
    model = SparseLogisticRegression(1.0).fit(np.zeros((len(y), 4)), y)
    assert not model.coef_.any()
    assert model.predict_proba(np.zeros((1, 4)))[0, 1] == pytest.approx(y.mean())


def test_cross_validation_along_a_path(cancer):
    X, y = cancer
    model = SparseLogisticRegressionCV(n_betas=6, cv=3, cluster=3).fit(X, y)
    assert model.loss_path_.shape == (6, 3)
    assert model.beta_ == model.betas_[np.argmin(model.loss_path_.mean(axis=1))]
    last = [one for one in model.result_.ledger.disclosures if one.phase.startswith("final fit")]
    sent = [one.atom for one in last]
    assert len(sent) == len(set(sent))  # what one radius needed, the next one has
    alone = SparseLogisticRegression(model.beta_).fit(X, y)
    assert model.result_.objective == pytest.approx(alone.result_.objective, rel=1e-3)
    assert model.score(X, y) > 0.95
    given = SparseLogisticRegressionCV(betas=[3.0, 0.5], cv=3).fit(X, y)
    assert given.betas_.tolist() == [0.5, 3.0]


def test_the_losses_of_the_path_are_those_of_single_fits(iris):
    X, y = iris
    folds = [(np.arange(0, 150, 2), np.arange(1, 150, 2))]
    model = SparseLogisticRegressionCV(betas=[1.0, 4.0], cv=folds, solver=Solver(tol=1e-7)).fit(
        X, y
    )
    train, test = folds[0]
    for beta, loss in zip([1.0, 4.0], model.loss_path_[:, 0], strict=True):
        alone = SparseLogisticRegression(beta, solver=Solver(tol=1e-7)).fit(X[train], y[train])
        assert loss == pytest.approx(log_loss(y[test], alone.predict_proba(X[test])), rel=1e-3)


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (SparseLogisticRegression(beta=0.0), None, "beta must be a finite number > 0"),
        (SparseLogisticRegression(), "one class", "only one class"),
        (SparseLogisticRegression(), "NaN", "NaN"),
        (SparseLogisticRegression(), "regression", "Unknown label type"),
        (SparseLogisticRegression(solver="newton"), None, "step must be one of"),
        (SparseLogisticRegressionCV(betas=[1.0, -1.0]), None, "betas must be a finite number > 0"),
        (
            SparseLogisticRegressionCV(betas=[1.0], cv=[(np.arange(10), np.arange(5))]),
            "sorted",
            "without training",
        ),
    ],
)
def test_bad_input(model, change, message, cancer):
    X, y = cancer[0].copy(), cancer[1]
    if change == "NaN":
        X[3, 2] = np.nan
    y = {"one class": np.ones(len(y)), "regression": X[:, 0], "sorted": np.sort(y)}.get(change, y)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_nan_in_a_shard_is_named(cancer):
    X, y = cancer[0].copy(), cancer[1]
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="column 2 contains NaN"):
        SparseLogisticRegression().fit(Shards.split(X, 1), y)


def test_dorothea_equals_celer(monkeypatch):
    """100,000 features: the optimum of another library, and few more atoms than it takes."""
    celer = pytest.importorskip("celer")
    realdata.use("dorothea", monkeypatch)
    data = load_dorothea()
    theirs = celer.LogisticRegression(C=0.2, tol=1e-9, fit_intercept=False).fit(data.X, data.y)
    radius = np.abs(theirs.coef_).sum()
    ours = SparseLogisticRegression(
        radius, fit_intercept=False, cluster=10, solver=Solver(tol=1e-6)
    ).fit(data.X, data.y)
    expected = np.logaddexp(0.0, -data.y * (data.X @ theirs.coef_[0])).sum()
    assert ours.result_.objective == pytest.approx(expected, rel=1e-6)
    assert ours.result_.ledger.atoms_sent <= 2 * np.count_nonzero(ours.coef_)


def test_alone_rounds_are_fewer_and_the_model_is_the_same():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, 900))
    y = X[:, :60] @ rng.standard_normal(60) > 0.0
    alone = SparseLogisticRegression(12.0, tol=1e-8).fit(X, y)
    cluster = SparseLogisticRegression(12.0, tol=1e-8, cluster=1).fit(X, y)
    assert alone.n_iter_ < 0.7 * cluster.n_iter_
    np.testing.assert_allclose(alone.coef_, cluster.coef_, atol=1e-3)
