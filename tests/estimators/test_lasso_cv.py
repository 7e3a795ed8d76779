"""The path and cross-validation: warm starts, nothing sent twice, the same choice as by hand."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_score

from atomcast import Lasso, LassoCV, LocalCluster, Shards, Solver, lasso_path
from atomcast.domains.balls import L1Ball
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from problems import STEPS, optimum, regression, sparse_regression

TIGHT = Solver(tol=1e-8)


@pytest.fixture
def diabetes():
    return load_diabetes(return_X_y=True)


# -- the path -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_path_is_the_models_one_by_one(diabetes, fit_intercept):
    X, y = diabetes
    betas = [1.0, 50.0, 400.0, 900.0, 1800.0, 5000.0]
    path = lasso_path(X, y, betas=betas, fit_intercept=fit_intercept, cluster=3, solver=TIGHT)
    assert path.betas.tolist() == betas
    assert path.coefs.shape == (10, 6)
    assert path.intercepts.shape == path.dual_gaps.shape == (6,)
    for k, beta in enumerate(betas):
        alone = Lasso(beta, fit_intercept=fit_intercept, solver=TIGHT).fit(X, y)
        assert path.results[k].objective == pytest.approx(alone.result_.objective, rel=1e-7)
        assert path.results[k].status == "optimal"
        np.testing.assert_allclose(path.coefs[:, k], alone.coef_, atol=0.05)
        assert path.intercepts[k] == pytest.approx(alone.intercept_, abs=1e-6)
        assert path.dual_gaps[k] == path.results[k].gap


@pytest.mark.parametrize("step", STEPS)
def test_no_feature_is_sent_twice_along_a_path(step):
    X, y = sparse_regression(seed=1, d=60, n=100)
    solver = Solver(step=step, max_rounds=15, tol=1e-2)
    path = lasso_path(X, y, betas=np.geomspace(0.1, 20, 6), cluster=5, solver=solver)
    ledger = path.results[-1].ledger
    sent = [entry.atom for entry in ledger.disclosures]
    assert len(sent) == len(set(sent)) > 0
    used = set(np.flatnonzero(path.coefs.any(axis=1)).tolist())
    assert used <= set(sent)
    assert all(result.ledger is ledger for result in path.results)


def test_warm_starts_save_rounds_and_atoms():
    X, y = sparse_regression(seed=2, d=150, n=400)
    betas = np.geomspace(0.5, 12, 10)
    path = lasso_path(X, y, betas=betas, cluster=4)
    cold = [Lasso(beta, cluster=4).fit(X, y).result_ for beta in betas]
    assert path.results[-1].ledger.atoms_sent < sum(result.ledger.atoms_sent for result in cold)
    assert sum(r.rounds for r in path.results) < sum(r.rounds for r in cold)


@pytest.mark.parametrize("d", [2, 3, 20])
@pytest.mark.parametrize("step", ["corrective", "away", "pairwise"])
def test_radii_may_grow_and_shrink(d, step):
    """Also with more atoms than dimensions, where the atoms of one solution are dependent."""
    X, y = regression(seed=3, d=d, n=25)
    X = np.hstack([X, X[:, :5], -X[:, :3]])
    betas = [0.1, 2.0, 0.3, 50.0, 1e-3, 1.0, 1.0, 0.5]
    problems = [explicit_problem(SquaredError(y), L1Ball(beta)) for beta in betas]
    solver = Solver(step=step, tol=1e-7, max_rounds=2000)
    results = list(solver.solve_path(problems, Shards.split(X, 3), LocalCluster(3)))
    total = float(y @ y)
    for beta, result in zip(betas, results, strict=True):
        assert np.abs(result.atom_weights).sum() <= beta * (1 + 1e-12)
        best, _ = optimum(X, y, L1Ball(beta))
        assert result.objective <= best + 1e-6 * total
        assert result.gap >= result.objective - best - 1e-9 * total
    sent = [entry.atom for entry in results[-1].ledger.disclosures]
    assert len(sent) == len(set(sent))


def test_results_of_a_path_are_not_overwritten_by_the_next():
    X, y = regression(seed=4)
    betas = [0.1, 1.0, 10.0]
    problems = (explicit_problem(SquaredError(y), L1Ball(beta)) for beta in betas)
    kept = [
        (result, result.weights.copy(), result.image.copy(), result.objective)
        for result in Solver().solve_path(problems, Shards.split(X, 2), LocalCluster(2))
    ]
    for result, weights, image, objective in kept:
        np.testing.assert_array_equal(result.weights, weights)
        np.testing.assert_array_equal(result.image, image)
        assert np.sum((y - image) ** 2) == pytest.approx(objective)


def test_a_path_left_early_closes_its_session():
    X, y = regression(seed=5)
    problems = (explicit_problem(SquaredError(y), L1Ball(beta)) for beta in (1.0, 2.0))
    opened = []

    class Watched(LocalCluster):
        def open(self, problem, shards):
            opened.append(super().open(problem, shards))
            return opened[-1]

    path = Solver().solve_path(problems, Shards.split(X, 2), Watched(2))
    next(iter(path))
    path.close()
    assert opened[0]._fleets == []


def test_radii_are_sorted_and_found(diabetes):
    X, y = diabetes
    path = lasso_path(X, y, betas=[100, 1, 10])
    assert path.betas.tolist() == [1.0, 10.0, 100.0]
    found = lasso_path(X, y, n_betas=12, solver=TIGHT)
    assert len(found.betas) == 12
    assert np.all(np.diff(found.betas) > 0)
    # From hardly anything to hardly constrained.
    objective = [result.objective for result in found.results]
    total = np.sum((y - y.mean()) ** 2)
    least = np.sum((y - LinearRegression().fit(X, y).predict(X)) ** 2)
    assert objective[0] > 0.99 * total
    assert objective[-1] - least < 0.02 * total


@pytest.mark.parametrize(
    "betas", [[], [1.0, 0.0], [1.0, -2.0], [np.nan], [np.inf], [[1.0, 2.0]], "abc", [None]]
)
def test_bad_radii(betas, diabetes):
    for fit in (lambda: lasso_path(*diabetes, betas=betas), LassoCV(betas=betas).fit):
        with pytest.raises((ValueError, TypeError)) as error:
            fit(*diabetes) if fit.__name__ == "fit" else fit()
        assert str(error.value)


# -- cross-validation ---------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_same_as_a_loop_by_hand(diabetes, fit_intercept):
    X, y = diabetes
    betas = [10.0, 300.0, 1000.0, 2000.0]
    folds = KFold(4, shuffle=True, random_state=0)
    how = {"fit_intercept": fit_intercept, "solver": TIGHT}
    model = LassoCV(betas, cv=folds, cluster=3, **how).fit(X, y)
    by_hand = np.array(
        [
            -cross_val_score(Lasso(beta, **how), X, y, cv=folds, scoring="neg_mean_squared_error")
            for beta in betas
        ]
    )
    np.testing.assert_allclose(model.mse_path_, by_hand, rtol=1e-5)
    best = betas[int(np.argmin(by_hand.mean(axis=1)))]
    assert model.beta_ == best
    np.testing.assert_allclose(model.coef_, Lasso(best, **how).fit(X, y).coef_, atol=0.05)
    assert model.score(X, y) == pytest.approx(Lasso(best, **how).fit(X, y).score(X, y), rel=1e-6)


@pytest.mark.parametrize("kind", ["dense", "F", "csr", "csc", "coo", "frame"])
def test_kinds_of_data(kind):
    X, y = sparse_regression(seed=6, d=60, n=20, density=0.3)
    data = {
        "dense": X.toarray(),
        "F": np.asfortranarray(X.toarray()),
        "csr": X.tocsr(),
        "csc": X.tocsc(),
        "coo": X.tocoo(),
        "frame": pd.DataFrame(X.toarray(), columns=[f"x{j}" for j in range(20)]),
    }[kind]
    model = LassoCV(betas=[0.5, 2.0, 8.0], cv=3, cluster=3, solver=TIGHT).fit(data, y)
    same = LassoCV(betas=[0.5, 2.0, 8.0], cv=3, solver=TIGHT).fit(X.toarray(), y)
    assert model.beta_ == same.beta_
    np.testing.assert_allclose(model.mse_path_, same.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(data), same.predict(X.toarray()), atol=1e-6)


@pytest.mark.parametrize("kind", ["split", "coo split", "files", "mine"])
def test_shards(kind, tmp_path):
    X, y = regression(seed=7, d=40, n=12)
    np.save(tmp_path / "0.npy", X[:, :5])
    sparse.save_npz(tmp_path / "1.npz", sparse.csc_matrix(X[:, 5:]))
    shards = {
        "split": lambda: Shards.split(X, 3, by=[1, 0, 11]),
        "coo split": lambda: Shards.split(sparse.coo_matrix(X), 3),
        "files": lambda: Shards.files([tmp_path / "0.npy", tmp_path / "1.npz"]),
        "mine": lambda: Shards.mine(X),
    }[kind]()
    model = LassoCV(betas=[0.5, 2.0, 8.0], cv=3, solver=TIGHT).fit(shards, y)
    same = LassoCV(betas=[0.5, 2.0, 8.0], cv=3, solver=TIGHT).fit(X, y)
    assert model.beta_ == same.beta_
    np.testing.assert_allclose(model.mse_path_, same.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-6)
    owners = shards.assignment()
    assert all(entry.node == owners[entry.atom] for entry in model.result_.ledger.disclosures)


def test_other_ways_to_split(diabetes):
    X, y = diabetes
    pairs = [(np.arange(300), np.arange(300, 442)), (np.arange(142, 442), np.arange(142))]
    assert LassoCV([100.0, 1000.0], cv=pairs).fit(X, y).mse_path_.shape == (2, 2)
    splitter = ShuffleSplit(3, test_size=0.3, random_state=1)
    assert LassoCV([100.0, 1000.0], cv=splitter).fit(X, y).mse_path_.shape == (2, 3)


def test_radii_found_from_the_data(diabetes):
    X, y = diabetes
    model = LassoCV(n_betas=8, cv=3, cluster=2).fit(X, y)
    assert model.betas_.shape == (8,)
    assert model.mse_path_.shape == (8, 3)
    assert model.beta_ in model.betas_
    assert model.score(X, y) > 0.45


def test_a_path_goes_on_hardly_further_than_the_best_radius():
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((60, 40)), rng.standard_normal(40)
    X[:, 0] *= 30.0  # what its penalty leaves empty is far above that of the others
    w[0] = 0.3
    model = LassoCV(n_betas=12).fit(X, X @ w + 0.3 * rng.standard_normal(60))
    best = int(np.argmin(model.mse_path_.mean(axis=1)))
    assert 12 <= best < len(model.betas_) <= best + 3


def test_a_constant_target():
    X, _ = regression(seed=8)
    model = LassoCV(cv=3, n_betas=4).fit(X, np.full(20, 2.5))
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(X), 2.5)


def test_radii_are_found_also_where_nodes_work_at_their_own_pace(diabetes):
    X, y = diabetes
    free = LocalCluster(3, asynchronous=True)
    expected = lasso_path(X, y, n_betas=5, cluster=3)
    path = lasso_path(X, y, n_betas=5, cluster=free)
    assert [result.status for result in path.results] == ["optimal"] * 5
    np.testing.assert_allclose(path.betas, expected.betas, rtol=1e-3)
    scale = np.max(np.abs(X.T @ (y - y.mean())) / np.sum(X**2, axis=0))  # one feature, closed form
    assert path.betas[0] <= scale <= path.betas[-1]
    assert LassoCV(n_betas=4, cv=3, cluster=free).fit(X, y).result_.status == "optimal"


def test_products_of_atoms_are_kept_from_radius_to_radius(monkeypatch):
    X, y = regression(seed=4, d=60, n=80)
    computed = []
    products = ExplicitActiveSet.products

    def counting(active, start, stop):
        computed.append(stop - start)
        return products(active, start, stop)

    monkeypatch.setattr(ExplicitActiveSet, "products", counting)
    path = lasso_path(X, y, betas=[0.5, 1.0, 1.5, 2.0], cluster=2)
    assert sum(computed) == path.results[-1].ledger.atoms_sent


# -- folds side by side -------------------------------------------------------------------------


def test_folds_side_by_side_give_the_same_model_and_account(diabetes):
    X, y = diabetes
    alone, together = (
        LassoCV([10.0, 300.0, 900.0], cv=2, cluster=3, n_jobs=jobs).fit(X, y) for jobs in (None, 2)
    )
    np.testing.assert_allclose(together.mse_path_, alone.mse_path_, rtol=1e-9)
    np.testing.assert_allclose(together.coef_, alone.coef_, rtol=1e-9)
    assert [led.values for led in together.ledgers_] == [led.values for led in alone.ledgers_]
    assert together.result_.ledger.values == alone.result_.ledger.values


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": "all"}, "n_jobs='all'"),
        ({"n_jobs": 2, "solver": Solver(callbacks=[print])}, "callbacks"),
        ({"n_jobs": 2, "solver": Solver(resume="nowhere")}, "checkpoints"),
    ],
)
def test_what_folds_side_by_side_cannot_do_is_refused(diabetes, how, told):
    with pytest.raises(ValueError, match=told):
        LassoCV([1.0], **how).fit(*diabetes)


# -- several targets ----------------------------------------------------------------------------


def test_several_targets_share_a_radius(diabetes):
    X, y = diabetes
    targets, folds = np.column_stack([y, 200.0 * X[:, 2] - y]), list(KFold(3).split(X))
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    betas = [50.0, 800.0, 4000.0, 8000.0]
    model = LassoCV(betas, cv=folds, cluster=3, solver=TIGHT).fit(X, targets, weights)
    for k, (train, test) in enumerate(folds):
        alone = Lasso(800.0, solver=TIGHT).fit(X[train], targets[train], weights[train])
        squares = (targets[test] - alone.predict(X[test])) ** 2
        expected = np.average(squares, weights=weights[test], axis=0).mean()
        assert model.mse_path_[1, k] == pytest.approx(expected, rel=1e-6)
        both = np.column_stack([alone.coef_, alone.intercept_])
        np.testing.assert_allclose(model.coefs_paths_[k, 1], both, atol=1e-4)
    assert model.beta_ == betas[np.argmin(model.mse_path_.mean(axis=1))]
    for t in range(2):  # with the same penalty, targets are independent of each other
        alone = Lasso(alpha=model.alpha_, solver=TIGHT).fit(X, targets[:, t], weights)
        np.testing.assert_allclose(model.coef_[t], alone.coef_, atol=1e-4)
        assert model.intercept_[t] == pytest.approx(alone.intercept_)
    assert model.predict(X).shape == targets.shape


def test_a_target_twice_is_that_target_with_twice_the_radius(diabetes):
    X, y = diabetes
    twice = LassoCV(n_betas=5, cv=3, scoring="r2", solver=TIGHT).fit(X, np.column_stack([y, y]))
    once = LassoCV(n_betas=5, cv=3, scoring="r2", solver=TIGHT).fit(X, y)
    np.testing.assert_allclose(twice.betas_, 2.0 * once.betas_, rtol=1e-4)
    np.testing.assert_allclose(twice.mse_path_, once.mse_path_, rtol=1e-4)
    np.testing.assert_allclose(twice.scores_, once.scores_, atol=1e-4)
    np.testing.assert_allclose(twice.predict(X), once.predict(X)[:, None] * [1, 1], rtol=1e-3)
    column = LassoCV(n_betas=5, cv=3, scoring="r2", solver=TIGHT).fit(X, y[:, None])
    np.testing.assert_array_equal(column.coef_, once.coef_)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_folds_take_no_copies_of_the_data(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5000))
    y = X[:, :3].sum(axis=1)
    X, size = (X, X.nbytes) if kind == "dense" else (sparse.csc_array(X), 12 * X.size)
    model = LassoCV(betas=[0.5, 1.0], cluster=3)
    model.fit(X, y)  # whatever is loaded once
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * size
