"""What users of scikit-learn reach for: limits, signs, starts, targets, scorers, stages, tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import Lasso as TheirLasso
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from atomcast import (
    KernelSVC,
    L1AdaBoost,
    Lasso,
    LassoCV,
    LocalCluster,
    MatchingPursuit,
    Shards,
    Solver,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    lasso_path,
)
from problems import regression

X, Y = load_diabetes(return_X_y=True)


# -- limits ---------------------------------------------------------------------------------------


def test_limits_at_the_top_go_before_those_of_the_solver():
    solver = Solver("pairwise", tol=0.5, max_rounds=3)
    model = Lasso(beta=1000.0, solver=solver, tol=1e-7, max_rounds=5000).fit(X, Y)
    assert model.result_.relative_gap <= 1e-7
    assert (solver.tol, solver.max_rounds) == (0.5, 3)
    assert model.solver is solver
    search = GridSearchCV(Lasso(beta=1000.0), {"tol": [5.0, 1e-6]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"tol": 1e-6}
    with pytest.raises(ValueError, match="tol must be a finite number > 0"):
        Lasso(beta=1.0, tol=-1.0).fit(X, Y)
    pursuit = MatchingPursuit(tol=0.0, n_nonzero=3).fit(X, Y)  # a goal of its own
    assert np.count_nonzero(pursuit.coef_) == 3


# -- signs, starts, targets -----------------------------------------------------------------------


@pytest.mark.parametrize(("d", "n"), [(50, 30), (300, 600)])
def test_coefficients_that_may_not_be_negative(d, n):
    A, b = regression(seed=8, d=d, n=n)
    ours = Lasso(alpha=0.05, positive=True, tol=1e-9, cluster=3).fit(A, b)
    theirs = TheirLasso(0.05, positive=True, tol=1e-11, max_iter=10**5).fit(A, b)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert np.all(ours.coef_ >= 0)
    path = lasso_path(A, b, betas=[ours.beta_], positive=True, solver=Solver(tol=1e-9))
    np.testing.assert_allclose(path.coefs[:, 0], ours.coef_, atol=1e-6)
    chosen = LassoCV(betas=[0.1, 1.0], cv=2, positive=True).fit(A, b)
    assert np.all(chosen.coefs_paths_[..., :-1] >= 0)


@pytest.mark.parametrize("positive", [False, True])
def test_several_targets_are_those_of_scikit_learn(positive, tmp_path):
    from atomcast import load_model, save_model

    A, b = regression(seed=9, d=40, n=60)
    targets = np.column_stack([b, -b + A[:, 0], A[:, 1] * 3 + 2])
    weights = np.random.default_rng(0).uniform(0, 2, len(b))
    ours = Lasso(alpha=0.05, tol=1e-10, positive=positive, cluster=3).fit(A, targets, weights)
    theirs = TheirLasso(0.05, tol=1e-12, max_iter=10**5, positive=positive)
    theirs.fit(A, targets, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(A), theirs.predict(A), atol=1e-5)
    used = np.count_nonzero(ours.coef_.any(axis=0))
    assert used <= ours.result_.ledger.atoms_sent <= A.shape[1]  # a feature is sent once for all
    ball = Lasso(beta=ours.beta_, tol=1e-10, positive=positive).fit(A, targets, weights)
    np.testing.assert_allclose(ball.coef_, ours.coef_, atol=1e-6)
    save_model(ours, tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(A), ours.predict(A))
    assert (again.alpha_, again.beta_) == (0.05, ours.beta_)


@pytest.mark.parametrize("how", [{"beta": 4.0}, {"alpha": 0.05}])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_warm_start_begins_where_the_fit_before_ended(how, targets, isolated):
    A, b = regression(seed=6, d=40, n=60)
    y = b if targets == 1 else np.column_stack([b, A[:, :2]])
    cluster = LocalCluster(3, isolated=isolated)
    model = Lasso(**how, warm_start=True, tol=1e-9, cluster=cluster).fit(A, y)
    first, coef = model.n_iter_, model.coef_.copy()
    model.fit(A, y)
    assert model.n_iter_ == 0 < first
    np.testing.assert_allclose(model.coef_, coef, atol=1e-9)
    nearby = {name: 0.8 * value for name, value in how.items()}
    cold = Lasso(**nearby, tol=1e-9, cluster=cluster).fit(A, y)
    model.set_params(**nearby).fit(A, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-6)
    assert model.n_iter_ < cold.n_iter_
    model.fit(A[:, :10], y)  # other data: from nothing
    assert model.coef_.shape[-1] == 10


def test_a_warm_start_where_messages_are_lost_begins_with_nothing():
    from atomcast import Faults

    cluster = LocalCluster(3, faults=Faults(loss=0.1))
    model = Lasso(beta=500.0, warm_start=True, cluster=cluster).fit(X, Y)
    coef = model.coef_.copy()
    np.testing.assert_allclose(model.fit(X, Y).coef_, coef, rtol=1e-3)


# -- cross-validation -----------------------------------------------------------------------------


def test_the_radius_by_a_scorer():
    A, y = load_breast_cancer(return_X_y=True)
    A = scale(A)
    folds = [(np.arange(300), np.arange(300, 569)), (np.arange(269, 569), np.arange(269))]
    model = SparseLogisticRegressionCV(betas=[0.05, 2.0, 9.0], cv=folds, scoring="roc_auc")
    model.fit(A, y)
    assert model.scores_.shape == (2, 3)
    assert model.coefs_paths_.shape == (2, 3, 1, 31)
    for k, (train, test) in enumerate(folds):
        alone = SparseLogisticRegression(beta=2.0).fit(A[train], y[train])
        area = roc_auc_score(y[test], alone.decision_function(A[test]))
        assert model.scores_[k, 1] == pytest.approx(area, abs=2e-3)
        by_hand = A[test] @ model.coefs_paths_[k, 1, 0, :-1] + model.coefs_paths_[k, 1, 0, -1]
        assert model.scores_[k, 1] == pytest.approx(roc_auc_score(y[test], by_hand))
    assert model.beta_ == [0.05, 2.0, 9.0][int(model.scores_.mean(axis=0).argmax())]
    several = SparseLogisticRegressionCV(betas=[1.0], cv=2, scoring="accuracy")
    several.fit(*load_iris(return_X_y=True))
    assert several.coefs_paths_.shape == (2, 1, 3, 5)
    assert 0.5 < several.scores_.min() <= several.scores_.max() <= 1.0
    with pytest.raises(ValueError, match="scoring"):
        SparseLogisticRegressionCV(scoring="beauty").fit(A, y)


@pytest.fixture(params=["split", "sizes", "files"])
def columns(request, tmp_path):
    if request.param == "files":
        np.save(tmp_path / "a.npy", X[:, :4])
        np.save(tmp_path / "b.npy", X[:, 4:])
        return Shards.files([tmp_path / "a.npy", tmp_path / "b.npy"])
    return Shards.split(X, 2, by=[4, 6] if request.param == "sizes" else "random")


def test_cross_validation_of_shards(columns):
    model = Lasso(beta=1000.0, tol=1e-9)
    assert columns.shape == X.shape
    np.testing.assert_allclose(
        cross_val_score(model, columns, Y), cross_val_score(model, X, Y), rtol=1e-6
    )
    np.testing.assert_allclose(
        cross_val_predict(model, columns, Y), cross_val_predict(model, X, Y), rtol=1e-5
    )
    search = GridSearchCV(Lasso(), {"beta": [10.0, 1000.0]}, cv=3).fit(columns, Y)
    assert search.best_params_ == {"beta": 1000.0}


@pytest.mark.parametrize("kind", ["split", "sizes", "files", "csv"])
def test_cross_validation_of_shards_of_rows(kind, tmp_path):
    data, labels = X[:120], Y[:120] > 150
    first, second = data[:50], data[50:]
    if kind == "split" or kind == "sizes":
        shards = Shards.split(data, 2, by=[50, 70] if kind == "sizes" else "random")
    else:
        for name, part in (("a", first), ("b", second)):
            np.save(tmp_path / f"{name}.npy", part)
            pd.DataFrame(part).add_prefix("x").to_csv(tmp_path / f"{name}.csv", index=False)
        end = "csv" if kind == "csv" else "npy"
        shards = Shards.files([tmp_path / f"a.{end}", tmp_path / f"b.{end}"])
    model = KernelSVC(gamma=5.0, tol=1e-4)
    assert shards.shape == data.shape
    expected = cross_val_score(model, data, labels, cv=3)
    np.testing.assert_allclose(cross_val_score(model, shards, labels, cv=3), expected)


def test_rows_of_shards_by_mask_and_slice_keep_their_order():
    shards = Shards.split(X, 2, by=[200, 242])
    for rows in (slice(150, 300), Y > 200, np.array([301, 5, 250])):
        chosen = shards[rows]
        assert chosen.shape == X[rows].shape
        together = np.zeros_like(X[rows])
        for i in range(2):
            shard = chosen.shard(i, axis=0)
            together[shard.ids] = shard.matrix
        np.testing.assert_array_equal(together, X[rows])
    with pytest.raises(ValueError, match="once each"):
        shards[[1, 1]]


# -- kernel machines ------------------------------------------------------------------------------

IRIS, KINDS = load_iris(return_X_y=True)


@pytest.mark.parametrize("multi_class", ["one-vs-one", "one-vs-rest", "direct"])
def test_a_kernel_that_is_computed_beforehand(multi_class, tmp_path):
    from atomcast import load_model, save_model

    K = rbf_kernel(IRIS, gamma=0.3)
    same = {"multi_class": multi_class, "tol": 1e-9}
    plain = KernelSVC(gamma=0.3, **same).fit(IRIS, KINDS)
    model = KernelSVC(kernel="precomputed", cluster=3, **same).fit(K, KINDS)
    np.testing.assert_allclose(model.decision_function(K), plain.decision_function(IRIS), atol=1e-6)
    assert model.result_.ledger.disclosures[0].values == len(K) + 1 + 1  # its number, its label
    save_model(model, tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(K), model.predict(K))
    scores = [cross_val_score(m, data, KINDS, cv=3) for m, data in ((plain, IRIS), (model, K))]
    np.testing.assert_array_equal(*scores)


def test_a_kernel_that_is_no_square_is_refused():
    for bad in (np.ones((6, 4)), np.ones((4, 6))):
        with pytest.raises(ValueError, match="must be a square matrix"):
            KernelSVC(kernel="precomputed").fit(bad, np.arange(len(bad)) % 2)


def test_the_sigmoid_is_taken_where_it_is_a_kernel(tmp_path):
    from atomcast import load_model, save_model

    data = scale(IRIS)
    model = KernelSVC(kernel="sigmoid", gamma=0.01).fit(data, KINDS)
    assert model.score(data, KINDS) > 0.85
    save_model(model, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        load_model(tmp_path / "m.safetensors").decision_function(data),
        model.decision_function(data),
    )
    with pytest.raises(ValueError, match="not positive semidefinite"):
        KernelSVC(kernel="sigmoid", gamma=5.0, coef0=-3.0).fit(data, KINDS)
    assert KernelSVC(gamma="auto").fit(data, KINDS).gamma_ == 0.25


def test_decisions_for_every_two_classes():
    model = KernelSVC(gamma=0.3, decision_function_shape="ovo", tol=1e-6).fit(IRIS, KINDS)
    theirs = SVC(gamma=0.3, decision_function_shape="ovo").fit(IRIS, KINDS)
    ours = model.decision_function(IRIS)
    assert ours.shape == theirs.decision_function(IRIS).shape == (150, 3)
    assert np.mean(np.sign(ours) == np.sign(theirs.decision_function(IRIS))) > 0.97
    plain = KernelSVC(gamma=0.3, tol=1e-6).fit(IRIS, KINDS)
    np.testing.assert_array_equal(model.predict(IRIS), plain.predict(IRIS))
    assert np.abs(ours - plain.decision_function(IRIS)).max() > 0.1
    with pytest.raises(ValueError, match="needs a machine for every two classes"):
        model.set_params(multi_class="direct").fit(IRIS, KINDS)


def test_probabilities_by_shuffled_folds():
    how = {"probability": True, "gamma": 0.3, "decision_function_shape": "ovo"}
    first, again, other = (
        KernelSVC(**how, random_state=seed).fit(IRIS, KINDS).predict_proba(IRIS)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-6
    model = KernelSVC(**how, random_state=0).fit(IRIS, KINDS)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(IRIS)), first)


# -- boosting -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def boosted():
    A, y = load_breast_cancer(return_X_y=True)
    labels = np.where(y == 1, "benign", "malignant")
    return L1AdaBoost(0.2, n_estimators=7, cluster=2).fit(A, labels), A, labels


def test_a_number_of_classifiers(boosted, recwarn):
    model, A, labels = boosted
    assert model.n_estimators_ <= 7
    assert model.result_.status == "reached"
    assert model.result_.ledger.atoms_sent == 7
    again = L1AdaBoost(0.2, n_estimators=10**4, tol=1e-2).fit(A, labels)
    assert again.result_.status == "optimal"
    assert not recwarn.list
    with pytest.raises(ValueError, match="n_estimators must be a whole number >= 1"):
        L1AdaBoost(n_estimators=0).fit(A, labels)


def test_classifiers_one_by_one(boosted):
    model, A, _ = boosted
    votes = [np.where(one.predict(A) == model.classes_[1], 1, -1) for one in model.estimators_]
    np.testing.assert_allclose(
        model.estimator_weights_ @ votes, model.decision_function(A), atol=1e-12
    )
    shares = np.zeros(A.shape[1])
    np.add.at(shares, model.stumps_[:, 0].astype(int), model.estimator_weights_)
    np.testing.assert_allclose(model.feature_importances_, shares)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_stages(boosted):
    model, A, labels = boosted
    stages = list(model.staged_decision_function(A))
    assert len(stages) == model.n_estimators_
    np.testing.assert_allclose(stages[-1], model.decision_function(A), atol=1e-12)
    assert np.all(np.abs(stages[0]) == pytest.approx(1.0))
    np.testing.assert_array_equal(list(model.staged_predict(A))[-1], model.predict(A))
    np.testing.assert_allclose(list(model.staged_predict_proba(A))[-1], model.predict_proba(A))
    scores = list(model.staged_score(A, labels))
    assert scores[-1] == model.score(A, labels) > scores[0]
    np.testing.assert_allclose(np.exp(model.predict_log_proba(A)), model.predict_proba(A))


def test_fitted_classifiers_and_columns_have_importances():
    A, y = load_breast_cancer(return_X_y=True)
    base = [DecisionTreeClassifier(max_depth=d, random_state=d).fit(A, y) for d in (1, 2, 3)]
    model = L1AdaBoost(0.2, base=base).fit(A, y)
    assert model.feature_importances_.shape == (30,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert all(one in base for one in model.estimators_)
    columns = L1AdaBoost(0.2, base="matrix").fit(np.sign(scale(A)), y)
    assert columns.feature_importances_.argmax() in columns.estimator_ids_
    with pytest.raises(AttributeError, match="columns only"):
        columns.estimators_  # noqa: B018


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["pyarrow", "polars"])
def test_tables_of_other_packages(package):
    module = pytest.importorskip(package)
    frame, target = load_diabetes(return_X_y=True, as_frame=True)
    columns = {name: frame[name].to_numpy() for name in frame}
    table = (module.table if package == "pyarrow" else module.DataFrame)(columns)
    series = module.array(target) if package == "pyarrow" else module.Series(target.to_numpy())
    expected = Lasso(beta=1000.0).fit(frame, target)
    for data in (table, Shards.split(table, 1)):
        model = Lasso(beta=1000.0).fit(data, series, series)
        assert list(model.feature_names_in_) == list(frame.columns)
        # Not to the bit: packages lay values out in different orders, and those who are alone take
        # all features at once, so that sums round otherwise.
        found = Lasso(beta=1000.0).fit(data, series).coef_
        np.testing.assert_allclose(found, expected.coef_, rtol=1e-12)
        np.testing.assert_allclose(model.predict(table), model.predict(frame), rtol=1e-13)


def test_a_table_that_holds_no_values_yet():
    class Lazy:
        columns = ("a",)

        def collect_schema(self):
            raise NotImplementedError

    with pytest.raises(ValueError, match=r"give X\.collect\(\)"):
        Lasso(beta=1.0).fit(Lazy(), Y)
