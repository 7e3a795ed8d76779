"""Matching pursuit: scikit-learn's choices, on any number of nodes, and what is known of them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import OrthogonalMatchingPursuit

from atomcast import (
    Checkpoint,
    Faults,
    LocalCluster,
    MatchingPursuit,
    RandomSubset,
    Shards,
    Solver,
)


def problem(seed, d=40, targets=None):
    """Columns of all lengths and means, and a noisy combination of a few."""
    rng = np.random.default_rng(seed)
    n, k = 20 + seed % 30, 1 + seed % 6
    X = rng.standard_normal((d, n)) * np.exp(0.5 * rng.standard_normal(n))
    X += rng.standard_normal(n)
    w = np.zeros((n, targets or 1))
    w[rng.choice(n, k, replace=False)] = rng.standard_normal((k, targets or 1))
    y = X @ w + 0.1 * rng.standard_normal((d, targets or 1)) + seed % 3
    return X, (y if targets else y[:, 0]), k


@pytest.mark.parametrize("seed", range(200))
def test_the_choices_of_scikit_learn(seed):
    X, y, k = problem(seed)
    intercept, normalize = bool(seed % 2), bool(seed % 4 // 2)
    unit = np.linalg.norm(X - intercept * X.mean(axis=0), axis=0) if normalize else 1.0
    theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=k, fit_intercept=intercept).fit(X / unit, y)
    model = MatchingPursuit(
        k, fit_intercept=intercept, normalize=normalize, cluster=1 + seed % 7
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_ / unit, atol=1e-9)
    assert model.intercept_ == pytest.approx(theirs.intercept_, abs=1e-9)
    assert model.result_.status == "reached"
    assert model.result_.gap is None
    assert model.result_.relative_gap is None
    assert model.residual_ == pytest.approx(np.sum((y - model.predict(X)) ** 2))


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize("seed", range(8))
def test_weights_are_repetitions_in_choices_goals_and_guarantees(seed, form):
    X, y, _ = problem(seed, targets=1 + seed % 2)
    X *= np.abs(X) > 0.5
    times = np.random.default_rng(seed).integers(0, 4, len(y))
    options = {"fit_intercept": bool(seed % 2), "normalize": bool(seed % 4 // 2)}
    goal = {"tol": 0.5} if seed // 4 else {"correlation": 2.0}
    model = MatchingPursuit(**goal, **options, cluster=3)
    weighted = model.fit(form(X), y, times)
    chosen, left, coef = weighted.exact_recovery_, weighted.residual_, weighted.coef_
    repeated = model.fit(form(np.repeat(X, times, axis=0)), np.repeat(y, times, axis=0))
    np.testing.assert_allclose(coef, repeated.coef_, atol=1e-9)
    assert np.count_nonzero(coef) > 1
    assert chosen == pytest.approx(repeated.exact_recovery_)
    assert left == pytest.approx(repeated.residual_)


@pytest.mark.parametrize("seed", range(8))
def test_until_the_residual_is_small(seed):
    X, y, _ = problem(seed)
    tol = 0.3 * np.sum((y - y.mean()) ** 2)
    model = MatchingPursuit(tol=tol, cluster=3).fit(X, y)
    np.testing.assert_allclose(
        model.coef_, OrthogonalMatchingPursuit(tol=tol).fit(X, y).coef_, atol=1e-9
    )
    assert model.residual_ <= tol


def test_until_no_feature_is_correlated_with_the_residual():
    X, y, _ = problem(11)
    model = MatchingPursuit(correlation=8.0, normalize=True, cluster=3).fit(X, y)
    centred = X - X.mean(axis=0)
    scores = 2 * np.abs(centred.T @ (y - model.predict(X))) / np.linalg.norm(centred, axis=0)
    assert scores.max() <= 8.0
    fewer = MatchingPursuit(np.count_nonzero(model.coef_) - 1, normalize=True).fit(X, y)
    scores = 2 * np.abs(centred.T @ (y - fewer.predict(X))) / np.linalg.norm(centred, axis=0)
    assert scores.max() > 8.0


@pytest.mark.parametrize("topology", ["star", "tree", "complete"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array, np.float32])
def test_any_network_and_any_form_of_data(topology, form):
    X, y, k = problem(4)
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(np.float32).astype(float)
    one = MatchingPursuit(k, normalize=True).fit(X, y)
    cluster = LocalCluster(4, topology=topology)
    model = MatchingPursuit(k, normalize=True, cluster=cluster).fit(form(X), y)
    np.testing.assert_allclose(model.coef_, one.coef_, atol=1e-9)
    assert model.exact_recovery_ == pytest.approx(one.exact_recovery_)
    assert model.result_.ledger.atoms_sent == k


def test_several_targets_share_their_features():
    X, Y, _ = problem(5, targets=3)
    model = MatchingPursuit(4, cluster=3).fit(X, Y)
    assert model.coef_.shape == (3, X.shape[1])
    assert model.intercept_.shape == (3,)
    chosen: list[int] = []
    centred, residual = X - X.mean(axis=0), Y - Y.mean(axis=0)
    for _ in range(4):  # by the book
        chosen.append(int(np.argmax(np.linalg.norm(centred.T @ residual, axis=1))))
        W, *_ = np.linalg.lstsq(centred[:, chosen], Y - Y.mean(axis=0), rcond=None)
        residual = Y - Y.mean(axis=0) - centred[:, chosen] @ W
    np.testing.assert_allclose(model.coef_[:, chosen], W.T, atol=1e-9)
    assert np.count_nonzero(model.coef_) == 12
    assert model.result_.ledger.by_kind()["target"].values == 3 * Y.size


def test_a_plain_pursuit_comes_to_the_same_residual_in_more_rounds():
    X, y, _ = problem(11)
    plain = MatchingPursuit(tol=0.2, orthogonal=False, cluster=3).fit(X, y)
    best = MatchingPursuit(tol=0.2, cluster=3).fit(X, y)
    assert max(plain.residual_, best.residual_) <= 0.2
    assert plain.n_iter_ > best.n_iter_
    assert plain.exact_recovery_ is None
    few = MatchingPursuit(2, orthogonal=False).fit(X, y)
    assert np.count_nonzero(few.coef_) == 2


def test_several_winners_a_round():
    X, y, _ = problem(17)
    model = MatchingPursuit(5, cluster=3, solver=Solver(atoms_per_round=2)).fit(X, y)
    assert np.count_nonzero(model.coef_) == 5
    assert model.n_iter_ == 3


@pytest.mark.parametrize("normalize", [False, True])
def test_features_that_a_selection_leaves_out_are_not_chosen(normalize):
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((40, 30)), rng.standard_normal(40)
    model = MatchingPursuit(n_nonzero=3, fit_intercept=False, normalize=normalize, cluster=3)
    shards = Shards.split(X, 3, by="contiguous")
    model.set_params(solver=Solver(selection=RandomSubset(m=1, seed=1))).fit(shards, y)
    chosen = np.flatnonzero(model.coef_)
    assert (chosen // 10).tolist() == [0, 1, 2]  # the one that each node may propose
    squares = np.linalg.lstsq(X[:, chosen], y)[1]
    assert model.residual_ == pytest.approx(float(squares[0]))
    model.set_params(solver=Solver(selection=RandomSubset(m=30))).fit(shards, y)
    usual = MatchingPursuit(3, fit_intercept=False, normalize=normalize).fit(X, y)
    np.testing.assert_allclose(model.coef_, usual.coef_)


def test_a_column_that_is_there_twice_is_used_once():
    X, y, _ = problem(8)
    X = np.column_stack([X, X])
    model = MatchingPursuit(4, solver=Solver(atoms_per_round=2)).fit(X, y)
    assert np.count_nonzero(model.coef_) == 4
    assert np.isfinite(model.coef_).all()


def test_exact_recovery_is_promised_where_it_happens():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    y = X[:, [3, 7, 20]] @ [1.0, -2.0, 0.5]
    model = MatchingPursuit(3, fit_intercept=False, cluster=4).fit(X, y)
    others = np.delete(X, [3, 7, 20], axis=1)
    by_hand = np.abs(np.linalg.pinv(X[:, [3, 7, 20]]) @ others).sum(axis=0).max()
    assert model.exact_recovery_ == pytest.approx(by_hand)
    assert model.exact_recovery_ < 1.0
    for seed in range(20):  # whatever the weights
        weights = np.random.default_rng(seed).standard_normal(3)
        again = MatchingPursuit(3, fit_intercept=False).fit(X, X[:, [3, 7, 20]] @ weights)
        np.testing.assert_array_equal(np.flatnonzero(again.coef_), [3, 7, 20])


def test_a_report_says_that_there_is_no_gap(tmp_path):
    X, y, _ = problem(1)
    model = MatchingPursuit(2, cluster=2).fit(X, y)
    page = model.result_.report(tmp_path / "page.html", model).read_text(encoding="utf-8")
    assert "reached" in page
    assert "none" in page


def test_nothing_to_explain():
    X, _, _ = problem(2)
    model = MatchingPursuit(3).fit(X, np.full(len(X), 7.0))
    assert not model.coef_.any()
    assert model.intercept_ == 7.0
    constant = np.column_stack([np.ones(len(X)), X[:, 0]])
    assert MatchingPursuit(2).fit(constant, X[:, 0] + 1e-3 * X[:, 1]).coef_[0] == 0.0


def test_shards_and_messages_that_are_lost():
    X, y, k = problem(9)
    expected = MatchingPursuit(k).fit(X, y).coef_
    shards = Shards.split(X, nodes=4)
    np.testing.assert_allclose(MatchingPursuit(k).fit(shards, y).coef_, expected, atol=1e-9)
    cluster = LocalCluster(4, faults=Faults(loss=0.2))
    model = MatchingPursuit(k, cluster=cluster).fit(X, y)
    assert model.result_.status == "reached"
    assert np.count_nonzero(model.coef_) == k


def test_a_run_is_resumed(tmp_path):
    X, y, _ = problem(3)
    whole = MatchingPursuit(6, cluster=3).fit(X, y)
    path = tmp_path / "run.safetensors"
    part = Solver(max_rounds=3, callbacks=[Checkpoint(path, rounds=1)])
    with pytest.warns(ConvergenceWarning, match="the goal was not reached after 3 rounds"):
        MatchingPursuit(6, cluster=3, solver=part).fit(X, y)
    rest = MatchingPursuit(6, cluster=2, solver=Solver(resume=path)).fit(X, y)
    np.testing.assert_allclose(rest.coef_, whole.coef_, atol=1e-12)
    assert rest.exact_recovery_ == pytest.approx(whole.exact_recovery_)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_nonzero": 0}, "n_nonzero must be a whole number >= 1"),
        ({"n_nonzero": 23}, "n_nonzero=23 is more than the 22 features: use at most 22"),
        ({"tol": -1.0}, "tol must be a finite number > 0"),
        ({"correlation": "high"}, "correlation must be a finite number > 0"),
        ({"solver": "away"}, "step='away' is not for matching pursuit"),
    ],
)
def test_bad_parameters(wrong, says):
    X, y, _ = problem(2)
    with pytest.raises(ValueError, match=says):
        MatchingPursuit(**wrong).fit(X, y)
