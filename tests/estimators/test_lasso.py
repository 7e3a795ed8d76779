"""Lasso against celer, scikit-learn and CVXPY, dense and sparse, with and without intercept."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as PenalisedLasso
from sklearn.linear_model import LinearRegression

from atomcast import Lasso, LocalCluster, Shards, Solver
from atomcast.domains.balls import L1Ball
from atomcast.steps import foresight
from problems import optimum, regression, sparse_regression

TIGHT = Solver(tol=1e-9)


def sum_of_squares(X, y, w, b):
    return float(np.sum((y - X @ w - b) ** 2))


def check_against(reference, X, y, fit_intercept, cluster=4):
    """The penalised solution solves the constrained problem of the radius that it has."""
    reference.fit(X, y)
    w, b = np.ravel(reference.coef_), float(reference.intercept_)
    beta = float(np.abs(w).sum())
    model = Lasso(beta, fit_intercept=fit_intercept, cluster=cluster, solver=TIGHT).fit(X, y)
    theirs, ours = sum_of_squares(X, y, w, b), sum_of_squares(X, y, model.coef_, model.intercept_)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours == pytest.approx(model.result_.objective, rel=1e-9)
    assert np.abs(model.coef_).sum() <= beta * (1 + 1e-12)
    assert model.intercept_ == pytest.approx(b, rel=1e-4, abs=1e-4)
    np.testing.assert_allclose(model.coef_, w, atol=1e-3 * np.abs(w).max())
    assert model.result_.status == "optimal"
    return model


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0])
def test_diabetes_against_scikit_learn(alpha, fit_intercept):
    X, y = load_diabetes(return_X_y=True)
    reference = PenalisedLasso(alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=10**6)
    check_against(reference, X, y, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.03, 1.0])
def test_diabetes_against_celer(alpha, fit_intercept):
    import celer

    X, y = load_diabetes(return_X_y=True)
    reference = celer.Lasso(alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=1000)
    check_against(reference, X, y, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sparse_data_against_celer(seed, fit_intercept):
    import celer

    X, y = sparse_regression(seed, d=200, n=400, density=0.05)
    y = y + 3.0
    X = sparse.csc_matrix(X)
    reference = celer.Lasso(0.003, fit_intercept=fit_intercept, tol=1e-12, max_iter=1000)
    model = check_against(reference, X, y, fit_intercept, cluster=37)
    assert 10 < np.count_nonzero(model.coef_) < 400


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("beta", [0.01, 1.0, 5.0, 1e4])
def test_against_cvxpy(beta, fit_intercept):
    X, y = regression(seed=4, d=25, n=15)
    y = y + 2.0
    model = Lasso(beta, fit_intercept=fit_intercept, solver=TIGHT).fit(X, y)
    best, _ = optimum(X, y, L1Ball(beta), fit_intercept)
    assert model.result_.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("step", ["away", "pairwise", "blended-pairwise", "corrective"])
def test_every_step_fits_the_same_model(step):
    X, y = load_diabetes(return_X_y=True)
    model = Lasso(1200.0, cluster=5, solver=Solver(step=step, tol=1e-8)).fit(X, y)
    best = Lasso(1200.0, solver=TIGHT).fit(X, y)
    assert model.result_.objective == pytest.approx(best.result_.objective, rel=1e-7)


def test_a_large_radius_is_least_squares():
    X, y = regression(seed=5, d=50, n=8)
    model = Lasso(1e3, solver=Solver(tol=1e-12)).fit(X, y)
    reference = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5)
    assert model.intercept_ == pytest.approx(reference.intercept_, abs=1e-5)


# -- kinds of data ------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sparse_and_dense_data_give_the_same_model(fit_intercept):
    X, y = sparse_regression(seed=6, d=60, n=90, density=0.2)
    y = y - 4.0
    dense = Lasso(4.0, fit_intercept=fit_intercept, solver=TIGHT).fit(X.toarray(), y)
    for convert in (
        sparse.csc_matrix,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.csr_array,
        sparse.coo_matrix,
        np.asfortranarray,
    ):
        data = convert(X.toarray()) if convert is np.asfortranarray else convert(X)
        model = Lasso(4.0, fit_intercept=fit_intercept, cluster=3, solver=TIGHT).fit(data, y)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-8)
        assert model.intercept_ == pytest.approx(dense.intercept_, abs=1e-8)
        np.testing.assert_allclose(model.predict(data), dense.predict(X.toarray()), atol=1e-7)


@pytest.mark.parametrize("order", ["C", "F"])
def test_single_precision_data_is_fitted_in_double_precision(order):
    X, y = regression(seed=7, d=40, n=70)
    single = np.asarray(X, dtype=np.float32, order=order)
    model = Lasso(2.0, cluster=3, solver=TIGHT).fit(single, y)
    same = Lasso(2.0, cluster=3, solver=TIGHT).fit(single.astype(np.float64), y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-9)
    assert model.coef_.dtype == np.float64
    assert model.result_.relative_gap <= 1e-9


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_])
def test_integer_data(dtype):
    rng = np.random.default_rng(8)
    X = rng.integers(0, 2, (30, 20)).astype(dtype)
    y = rng.integers(-5, 5, 30)
    model = Lasso(2.0, solver=TIGHT).fit(X, y)
    same = Lasso(2.0, solver=TIGHT).fit(X.astype(float), y.astype(float))
    np.testing.assert_array_equal(model.coef_, same.coef_)


def test_a_frame_gives_names():
    X, y = regression(seed=9, d=30, n=6)
    frame = pd.DataFrame(X, columns=[f"feature {c}" for c in "abcdef"])
    model = Lasso(2.0, cluster=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    names = {entry.name for entry in model.result_.ledger.disclosures}
    assert names <= set(frame.columns)
    assert names
    assert all(
        entry.name == frame.columns[entry.atom] for entry in model.result_.ledger.disclosures
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


# -- attributes ---------------------------------------------------------------------------------


def test_the_result_is_at_hand():
    X, y = regression(seed=10)
    model = Lasso(1.0, cluster=3).fit(X, y)
    result = model.result_
    assert model.dual_gap_ == result.gap
    assert model.n_iter_ == result.rounds
    np.testing.assert_array_equal(result.weights, model.coef_)
    np.testing.assert_allclose(result.image, X @ model.coef_, atol=1e-10)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    assert result.relative_gap <= 1e-4


@pytest.mark.parametrize(
    ("how", "remedy"),
    [
        ({"max_rounds": 2}, "raise max_rounds or tol"),
        ({"callbacks": [lambda state: state.round < 2]}, "let it go on, or raise tol"),
        ({"callbacks": [lambda state: "time_limit" if state.round == 2 else None]}, "allow more"),
        ({"callbacks": [lambda state: "bored" if state.round == 2 else None]}, "let it go on"),
    ],
)
@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_ending_above_the_tolerance_warns_whatever_the_reason(how, remedy, kind):
    X, y = regression(seed=11)
    solver = Solver(step="classic", tol=1e-3, tol_kind=kind, **how)
    with pytest.warns(ConvergenceWarning) as seen:
        result = Lasso(1.0, solver=solver).fit(X, y).result_
    gap = result.relative_gap if kind == "relative" else result.gap
    words = f"the {kind} gap is {gap:.2g}, above tol=0.001, after 2 rounds: "
    assert str(seen[0].message).startswith(words)
    assert remedy in str(seen[0].message)


def test_what_reaches_its_tolerance_does_not_warn():
    X, y = regression(seed=11)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Lasso(1.0, solver=Solver(callbacks=[lambda state: True])).fit(X, y)


@pytest.mark.parametrize("cluster", [None, 1, 3, np.int64(4), LocalCluster(5)])
@pytest.mark.parametrize("solver", [None, "away", Solver(tol=1e-6)])
def test_short_forms(cluster, solver):
    X, y = regression(seed=12)
    assert Lasso(1.0, cluster=cluster, solver=solver).fit(X, y).result_.status == "optimal"


# -- edge cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_feature_and_one_row(fit_intercept):
    for d, n in ((1, 1), (1, 7), (7, 1)):
        X, y = regression(seed=13, d=d, n=n)
        model = Lasso(0.5, fit_intercept=fit_intercept, cluster=3).fit(X, y)
        assert np.all(np.isfinite(model.predict(X)))
        best, _ = optimum(X, y, L1Ball(0.5), fit_intercept)
        assert model.result_.objective == pytest.approx(best, rel=1e-3, abs=1e-9)


def test_a_constant_target():
    X, _ = regression(seed=14)
    model = Lasso(1.0, cluster=3).fit(X, np.full(20, 0.1))
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(0.1)
    assert model.result_.ledger.atoms_sent == 0
    assert Lasso(1.0, fit_intercept=False).fit(X, np.full(20, 0.1)).coef_.any()
    zero = Lasso(1.0, fit_intercept=False).fit(X, np.zeros(20))
    assert not zero.coef_.any()


@pytest.mark.parametrize("level", [0.0, 1.0, 1e6, 0.1])
@pytest.mark.parametrize("layout", [np.asfortranarray, sparse.csc_matrix])
@pytest.mark.parametrize("step", ["classic", "line-search", "away", "corrective"])
def test_constant_columns_are_never_chosen(level, layout, step):
    X, y = regression(seed=15, d=30, n=12)
    X[:, [0, 5, 11]] = level
    solver = Solver(step=step, tol=1e-6, max_rounds=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for beta in (0.5, 1e3):  # the constraint binds, or does not
            model = Lasso(beta, cluster=2, solver=solver).fit(layout(X), y)
            assert not model.coef_[[0, 5, 11]].any()
            sent = {entry.atom for entry in model.result_.ledger.disclosures}
            assert not sent & {0, 5, 11}


@pytest.mark.parametrize("level", [1.0, 0.1, 1e6])
def test_a_constant_column_is_none_where_all_are_known_at_once(level):
    """Centred, rounding leaves something of it or nothing: it was once divided by."""
    X, y = regression(seed=15, d=30, n=12)
    constant = np.full((30, 1), level)
    for beta in (0.01, 0.5, 1e3):
        model = Lasso(beta, solver=TIGHT).fit(np.hstack([X, constant]), y)
        assert model.coef_[-1] == pytest.approx(0.0, abs=1e-6)
        expected = Lasso(beta, solver=TIGHT).fit(X, y)
        np.testing.assert_allclose(model.coef_[:-1], expected.coef_, atol=1e-6)


def test_more_nodes_than_features():
    X, y = regression(seed=16, d=20, n=5)
    many = Lasso(1.0, cluster=50, solver=TIGHT).fit(X, y)
    np.testing.assert_allclose(many.coef_, Lasso(1.0, solver=TIGHT).fit(X, y).coef_, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_features_in_very_different_units(fit_intercept):
    """A radius in the units of the smallest features must not shut them out."""
    X, y = regression(seed=17, d=60, n=4, support=4)
    scales = np.array([1e6, 1e3, 1.0, 1e-3])
    reference = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    beta = 2 * np.abs(reference.coef_ / scales).sum()
    model = Lasso(beta, fit_intercept=fit_intercept, solver=Solver(tol=1e-6)).fit(X * scales, y)
    expected = np.sum((y - reference.predict(X)) ** 2)
    assert model.result_.objective == pytest.approx(expected, rel=1e-5)


def test_unscaled_columns_with_an_intercept():
    """Years, prices and shares side by side, as tables come."""
    rng = np.random.default_rng(18)
    X = np.column_stack(
        [2000 + rng.integers(0, 20, 200), 3e5 + 5e4 * rng.standard_normal(200), rng.random(200)]
    )
    y = 0.5 * (X[:, 0] - 2010) + 1e-5 * X[:, 1] + 4 * X[:, 2] + 0.1 * rng.standard_normal(200)
    reference = LinearRegression().fit(X, y)
    model = Lasso(10.0, cluster=3).fit(X, y)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), atol=1e-2)
    assert model.result_.status == "optimal"


# -- shards -------------------------------------------------------------------------------------


def test_shards_of_every_kind(tmp_path):
    X, y = regression(seed=19, d=30, n=12)
    names = [f"x{j}" for j in range(12)]
    plain = Lasso(1.5, solver=TIGHT).fit(X, y)
    np.save(tmp_path / "0.npy", X[:, :5])
    sparse.save_npz(tmp_path / "1.npz", sparse.csc_matrix(X[:, 5:6]))
    np.savez(tmp_path / "2.npz", X[:, 6:])
    pd.DataFrame(X[:, :7], columns=names[:7]).to_parquet(tmp_path / "0.parquet")
    pd.DataFrame(X[:, 7:], columns=names[7:]).to_csv(tmp_path / "1.csv", index=False)
    kinds = {
        "split": Shards.split(X, 4),
        "sizes": Shards.split(X, 3, by=[0, 10, 2]),
        "sparse": Shards.split(sparse.csr_array(X), 4),
        "frame": Shards.split(pd.DataFrame(X, columns=names), 4),
        "mine": Shards.mine(X),
        "arrays": Shards.files([tmp_path / f"{k}" for k in ("0.npy", "1.npz", "2.npz")]),
        "tables": Shards.files([tmp_path / "0.parquet", tmp_path / "1.csv"]),
    }
    for kind, shards in kinds.items():
        model = Lasso(1.5, solver=TIGHT).fit(shards, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-8, err_msg=kind)
        assert model.intercept_ == pytest.approx(plain.intercept_)
        np.testing.assert_allclose(model.predict(shards), plain.predict(X), atol=1e-7)
        assert model.n_features_in_ == 12
        assert model.score(shards, y) == pytest.approx(plain.score(X, y))
        owners = shards.assignment()
        for entry in model.result_.ledger.disclosures:
            assert entry.node == owners[entry.atom]
        if kind in ("frame", "tables"):
            assert model.feature_names_in_.tolist() == names


def test_shards_and_the_cluster_must_fit():
    X, y = regression(seed=20)
    with pytest.raises(ValueError, match=r"cut into 4 shards.*LocalCluster\(nodes=4\)"):
        Lasso(cluster=3).fit(Shards.split(X, 4), y)
    assert Lasso(cluster=LocalCluster(4)).fit(Shards.split(X, 4), y).result_.status == "optimal"


def test_predicting_with_the_wrong_number_of_features():
    X, y = regression(seed=21)
    model = Lasso().fit(X, y)
    for wrong in (X[:, :5], Shards.split(X[:, :5], 2)):
        with pytest.raises(ValueError, match="has 5 features, but Lasso is expecting 30"):
            model.predict(wrong)


def test_without_a_cluster_the_known_features_double_where_nearly_all_are_of_use(monkeypatch):
    monkeypatch.setattr(foresight, "ROUNDS", 0)  # as for data that it takes long to look at
    rng = np.random.default_rng(1)
    X = rng.standard_normal((800, 1_000))
    y = X[:, :400] @ rng.standard_normal(400) + rng.standard_normal(800)
    alone, sent = (Lasso(200.0, cluster=cluster).fit(X, y).result_ for cluster in (None, 2))
    assert alone.trace.atoms[:4].tolist() == [0, 64, 128, 256]
    assert alone.rounds <= 0.6 * sent.rounds
    np.testing.assert_allclose(alone.objective, sent.objective, rtol=2e-4)


def test_without_a_cluster_few_rounds_are_needed():
    X, y = regression(seed=2, d=80, n=60)
    alone, four = (Lasso(40.0, cluster=nodes).fit(X, y) for nodes in (None, 4))
    assert alone.n_iter_ == 1  # all features join at once, as nobody has to be sent them
    assert four.n_iter_ > 2
    assert alone.result_.objective == pytest.approx(four.result_.objective, rel=1e-4)
    assert alone.result_.ledger.values == 0


def test_plain_arrays_need_none_of_scikit_learns_checks(monkeypatch):
    X, y = regression(seed=2, d=30, n=20)
    model = Lasso(2.0).fit(pd.DataFrame(X).add_prefix("x"), y)
    assert len(model.feature_names_in_) == 20
    expected = model.coef_

    def never(*arguments, **options):
        raise AssertionError("the quick way was not taken")

    with monkeypatch.context() as patched:
        patched.setattr("atomcast.estimators.inputs.validate_data", never)
        model.fit(X[:, :19], y)
        assert model.n_features_in_ == 19
        assert not hasattr(model, "feature_names_in_")
        model.fit(X, y)
        np.testing.assert_array_equal(model.predict(X), X @ model.coef_ + model.intercept_)
        np.testing.assert_array_equal(model.coef_, expected)
    spoilt = X.copy()
    spoilt[3, 4] = np.nan
    for wrong in (spoilt, X[:0], X[0], X[:-1]):
        with pytest.raises(ValueError):
            model.fit(wrong, y)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(spoilt)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.where(y > 0, y, np.nan))
