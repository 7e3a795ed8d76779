"""Weights of examples: whole numbers are repetitions, zero is absence, and scikit-learn agrees."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Lasso as TheirLasso
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from atomcast import (
    DictionaryLearning,
    GroupLasso,
    GroupLogisticRegression,
    KernelSVC,
    KernelSVR,
    L1AdaBoost,
    Lasso,
    LassoCV,
    MatchingPursuit,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    Shards,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SparseModel,
    StructuredSVM,
)
from atomcast.domains import L1Ball
from atomcast.objectives import (
    Logistic,
    LogisticLoss,
    SquaredError,
    SquaredHingeLoss,
    SquaredLoss,
)
from atomcast.testing import check_objective
from problems import regression

X, Y = regression(seed=4, d=40, n=12)
LABELS = np.where(Y > 0, "yes", "no")
CLASSES = np.digitize(Y, [-1.5, 1.5])
TIMES = np.random.default_rng(0).integers(0, 4, len(Y))
REPEATED = np.repeat(np.arange(len(Y)), TIMES)

CASES = [
    (Lasso(beta=2.0, tol=1e-10), Y),
    (Lasso(alpha=0.1, positive=True, tol=1e-10), Y),
    (SparseLogisticRegression(beta=3.0, tol=1e-10), LABELS),
    (SparseLogisticRegression(C=0.5, class_weight="balanced", tol=1e-10), LABELS),
    (SparseLogisticRegression(beta=3.0, class_weight="balanced", tol=1e-10), CLASSES),
    (GroupLasso(beta=2.0, groups=[[0, 1, 2], list(range(3, 12))], tol=1e-10), Y),
    (GroupLogisticRegression(beta=2.0, tol=1e-10), LABELS),
    (L1AdaBoost(0.2, tol=1e-10), LABELS),
    (KernelSVC(tol=1e-9), LABELS),
    (KernelSVC(gamma="scale", class_weight="balanced", tol=1e-9, cluster=3), CLASSES),
    (KernelSVC(gamma=0.1, multi_class="direct", tol=1e-9), CLASSES),
    (KernelSVR(tol=1e-9), Y),
    (MatchingPursuit(4, cluster=2), Y),
    (MatchingPursuit(tol=5.0, orthogonal=False, normalize=True), Y),
    (MatchingPursuit(3, fit_intercept=False, normalize=True), np.column_stack([Y, X[:, 0] - Y])),
    (StructuredSVM(C=0.1, tol=1e-8, cluster=3), CLASSES),
    (StructuredSVM(C=0.1, tol=1e-8, solver="block-coordinate"), CLASSES),
    (MultipleKernelClassifier(tol=1e-9), LABELS),
    (MultipleKernelRegressor(tol=1e-9), Y),
    (SparseModel(SquaredLoss(), L1Ball(2.0), tol=1e-10), Y),
    (SparseModel(SquaredError, L1Ball(2.0), tol=1e-10), Y),
    (SparseModel(LogisticLoss(), L1Ball(2.0), tol=1e-10), LABELS),
    (SparseModel(SquaredHingeLoss(), L1Ball(2.0), tol=1e-10), LABELS),
]


def said(model, data):
    return getattr(model, "decision_function", model.predict)(data)


@pytest.mark.parametrize(("model", "y"), CASES)
def test_whole_numbers_are_repetitions_and_zero_is_absence(model, y):
    seen = X[TIMES > 0]  # between others, the threshold of a stump may lie anywhere
    weighted = said(model.fit(X, y, TIMES), seen)
    repeated = said(model.fit(X[REPEATED], y[REPEATED]), seen)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-4, atol=1e-4)
    plain = said(model.fit(X, y), seen)
    assert np.abs(plain - weighted).max() > 1e-3  # or else this tests nothing
    np.testing.assert_allclose(said(model.fit(X, y, np.ones(len(y))), seen), plain, rtol=1e-6)


@pytest.mark.parametrize("step", ["classic", "away", "pairwise", "corrective"])
def test_every_step_of_a_kernel_machine_scores_with_weights(step):
    model = KernelSVC(gamma=0.1, solver=step, tol=1e-4, max_rounds=200, cluster=2)
    exact = KernelSVC(gamma=0.1, tol=1e-9).fit(X, LABELS, TIMES)
    model.fit(X, LABELS, TIMES)
    best = exact.result_.objective
    assert best - 1e-9 <= model.result_.objective <= best + model.result_.gap
    assert np.all(TIMES[model.support_] > 0)


def test_scikit_learn_counts_the_same():
    weights = np.random.default_rng(1).uniform(0, 2, len(Y))
    ours = Lasso(alpha=0.2, tol=1e-10).fit(X, Y, weights)
    np.testing.assert_allclose(ours.coef_, TheirLasso(0.2, tol=1e-12).fit(X, Y, weights).coef_)
    ours = SparseLogisticRegression(C=0.5, tol=1e-10, fit_intercept=False).fit(X, LABELS, weights)
    theirs = LogisticRegression(
        C=0.5, l1_ratio=1, solver="liblinear", tol=1e-10, fit_intercept=False
    ).fit(X, LABELS, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    ours = KernelSVC(C=2.0, kernel="linear", tol=1e-9, cluster=3).fit(X, LABELS, weights)
    theirs = LinearSVC(C=1.0, tol=1e-10, max_iter=10**5).fit(X, LABELS, weights)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), rtol=1e-3, atol=1e-3
    )


def test_folds_count_with_weights_where_they_are_fitted_and_compared():
    weights = np.random.default_rng(2).uniform(0.1, 3, len(Y))
    folds = [(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]
    model = LassoCV(betas=[1.0, 3.0], cv=folds, tol=1e-10).fit(X, Y, weights)
    for k, (train, test) in enumerate(folds):
        alone = Lasso(beta=1.0, tol=1e-10).fit(X[train], Y[train], weights[train])
        squares = (Y[test] - alone.predict(X[test])) ** 2
        expected = np.average(squares, weights=weights[test])
        assert model.mse_path_[0, k] == pytest.approx(expected, rel=1e-6)
        np.testing.assert_allclose(model.coefs_paths_[k, 0, 0, :-1], alone.coef_, atol=1e-6)
    np.testing.assert_array_equal(model.scores_, -model.mse_path_.T)


@pytest.mark.parametrize(
    "model", [Lasso(beta=2.0), MatchingPursuit(3), StructuredSVM(), DictionaryLearning(3)]
)
def test_weights_are_routed_through_pipelines(model):
    with config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), asked).fit(X, CLASSES, sample_weight=TIMES)
    given = model.fit(X, CLASSES, sample_weight=TIMES)
    kept = "components_" if hasattr(given, "components_") else "coef_"
    np.testing.assert_array_equal(getattr(pipeline[-1], kept), getattr(given, kept))


@pytest.mark.parametrize("cluster", [None, 3])
def test_weights_go_with_shards_and_travel_with_points(cluster):
    shards = Shards.split(X, 3)
    model = KernelSVC(gamma=0.1, tol=1e-8).fit(shards, LABELS, TIMES)
    alone = KernelSVC(gamma=0.1, tol=1e-8, cluster=cluster).fit(X, LABELS, TIMES)
    np.testing.assert_allclose(said(model, X), said(alone, X), atol=1e-6)
    np.testing.assert_array_equal(alone.support_vectors_, X[alone.support_])


@pytest.mark.parametrize("weights", [np.ones(3), -np.ones(40), np.full(40, np.nan), np.zeros(40)])
@pytest.mark.parametrize("model", [Lasso(beta=1.0), KernelSVC(), L1AdaBoost(), LassoCV()])
def test_bad_weights(model, weights):
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, LABELS if hasattr(model, "decision_function") else Y, weights)


def test_folds_without_weight_are_refused():
    weights = np.append(np.ones(30), np.zeros(10))
    model = SparseLogisticRegressionCV(betas=[1.0], cv=[(np.arange(30), np.arange(30, 40))])
    with pytest.raises(ValueError, match="sample_weight is zero for all rows that a fold"):
        model.fit(X, LABELS, weights)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_weighted_objectives_keep_their_contract(fit_intercept):
    weights = np.array([0.0, 0.5, 1.0, 3.0, 2.0, 0.1])
    check_objective(SquaredError(Y[:6], fit_intercept, weights))
    labels = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
    check_objective(Logistic(labels, fit_intercept, weights))
    check_objective(SquaredHingeLoss(fit_intercept).bind(labels, weights))
