"""Groups of features: the optimum of other libraries, whole groups on one node, clear errors."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast import GroupLasso, GroupLogisticRegression, Lasso, LocalCluster, Shards, Solver
from atomcast.data import GroupedShards, one_hot
from atomcast.domains.balls import Domain
from atomcast.domains.group_ball import GroupBall, as_groups
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom
from atomcast.objectives import SquaredError
from atomcast.steps.inner import group_solver
from atomcast.steps.inner.group_solver import GroupSolver

# Steps that are slow by nature are cut short here, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

GROUPS = [[0, 5, 7], [1], [2, 3, 4, 6], [8, 9], [10, 11, 12, 13, 14]]


def data(seed=0, d=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, 15))
    return X, X[:, [0, 5, 7]] @ [1.0, -1.0, 2.0] + X[:, 8] + 0.5 * rng.standard_normal(d)


def ball(groups, beta, weights=None, n=15):
    return GroupBall(beta, as_groups(groups, weights, Shards.split(np.zeros((1, n)), 1)))


def optimum(X, y, groups, weights, beta, loss):
    """The optimum by CVXPY with Clarabel at tight tolerances, with an intercept."""
    import cvxpy as cp

    w, b = cp.Variable(X.shape[1]), cp.Variable()
    size = sum(c * cp.norm(w[group]) for c, group in zip(weights, groups, strict=True))
    fit = X @ w + b
    total = (
        cp.sum_squares(y - fit) if loss == "squared" else cp.sum(cp.logistic(cp.multiply(-y, fit)))
    )
    return cp.Problem(cp.Minimize(total), [size <= beta]).solve(
        solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 1.0, 3.0]])
@pytest.mark.parametrize("beta", [0.5, 4.0, 1e3])
def test_squared_error_equals_cvxpy(beta, weights):
    X, y = data()
    model = GroupLasso(
        beta, groups=GROUPS, weights=weights, cluster=3, solver=Solver(tol=1e-9)
    ).fit(X, y)
    c = [np.sqrt(len(group)) for group in GROUPS] if weights is None else weights
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(
        optimum(X, y, GROUPS, c, beta, "squared"), rel=1e-6
    )
    size = sum(c[k] * np.linalg.norm(model.coef_[group]) for k, group in enumerate(GROUPS))
    assert size <= beta * (1 + 1e-9)
    assert np.sum((y - model.predict(X)) ** 2) == pytest.approx(model.result_.objective, rel=1e-9)


@pytest.mark.parametrize("beta", [0.5, 4.0, 8.0])
def test_logistic_loss_equals_cvxpy(beta):
    X, y = data(1)
    y = np.sign(y)
    model = GroupLogisticRegression(beta, groups=GROUPS, cluster=3, solver=Solver(tol=1e-8))
    model.fit(X, y)
    c = [np.sqrt(len(group)) for group in GROUPS]
    assert model.result_.objective == pytest.approx(
        optimum(X, y, GROUPS, c, beta, "logistic"), rel=1e-6
    )
    assert model.score(X, y) > 0.6


def test_equals_celer_at_the_matching_penalty():
    celer = pytest.importorskip("celer")
    X, y = data(2)
    groups = [sorted(group) for group in GROUPS]
    theirs = celer.GroupLasso(groups=groups, alpha=0.2, tol=1e-10, fit_intercept=True).fit(X, y)
    beta = sum(np.linalg.norm(theirs.coef_[group]) for group in groups)
    ours = GroupLasso(beta, groups=groups, weights=np.ones(5), solver=Solver(tol=1e-9)).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.result_.objective == pytest.approx(np.sum((y - theirs.predict(X)) ** 2), rel=1e-6)


def test_groups_of_one_are_the_lasso():
    X, y = data(3)
    lasso = Lasso(2.0, solver=Solver(tol=1e-9)).fit(X, y)
    group = GroupLasso(2.0, solver=Solver(tol=1e-9)).fit(X, y)
    np.testing.assert_allclose(group.coef_, lasso.coef_, atol=1e-7)


@pytest.mark.parametrize("kind", [GroupLasso, GroupLogisticRegression])
@pytest.mark.parametrize("step", ["classic", "line-search", "corrective"])
def test_any_number_of_nodes_and_every_step_that_applies(step, kind):
    X, y = data(4)
    y = np.sign(y) if kind is GroupLogisticRegression else y
    solver = Solver(step=step, tol=1e-7 if step == "corrective" else 1e-3, max_rounds=120)
    results = [
        kind(3.0, groups=GROUPS, cluster=cluster, solver=solver).fit(X, y).result_
        for cluster in (None, 2, 5, LocalCluster(4, isolated=True))
    ]
    best = kind(3.0, groups=GROUPS, solver=Solver(tol=1e-10)).fit(X, y).result_.objective
    for result in results:
        assert result.rounds == results[0].rounds
        np.testing.assert_allclose(result.weights, results[0].weights, atol=1e-8)
        assert best - 1e-8 <= result.objective <= best + result.gap + 1e-8


@pytest.mark.parametrize("step", ["away", "pairwise", "blended-pairwise"])
def test_steps_that_do_not_apply_say_so(step):
    with pytest.raises(ValueError, match=f"step='{step}' needs a domain with finitely many"):
        GroupLasso(1.0, groups=GROUPS, solver=step).fit(*data())


def test_a_group_is_sent_once_and_counts_all_its_columns():
    X, y = data()
    model = GroupLasso(3.0, groups=GROUPS, cluster=4, solver=Solver(step="classic", max_rounds=60))
    with pytest.warns(Warning, match="raise max_rounds"):
        model.fit(X, y)
    entries = model.result_.ledger.disclosures
    assert len({entry.atom for entry in entries}) == len(entries)
    sizes = {min(group): len(group) for group in GROUPS}
    assert all(entry.values == sizes[entry.atom] * len(X) for entry in entries)
    atoms = model.result_.ledger.by_kind()["atom"]
    assert atoms.values == 4 * sum(entry.values for entry in entries)


def test_sparse_data_and_shards():
    X, y = data(5)
    X[np.abs(X) < 0.7] = 0.0
    how = {"groups": GROUPS, "solver": Solver(tol=1e-9)}
    dense = GroupLasso(2.0, **how).fit(X, y)
    labels = as_groups(GROUPS, None, Shards.split(X, 1)).labels
    for other in (sparse.csc_matrix(X), sparse.csr_array(X), GroupedShards(X, 3, labels)):
        model = GroupLasso(2.0, **how).fit(other, y)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-7)
        np.testing.assert_allclose(model.predict(other), dense.predict(X), atol=1e-6)


def test_sources_as_groups():
    """Multi-view learning: what a node holds is a group."""
    X, y = data(6)
    views = Shards.split(X, 3, by=[4, 5, 6])
    model = GroupLasso(2.0, groups="sources").fit(views, y)
    by_hand = [list(range(4)), list(range(4, 9)), list(range(9, 15))]
    other = GroupLasso(2.0, groups=by_hand).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    assert [group.tolist() for group in model.active_groups_] == [
        group for group in by_hand if other.coef_[group].any()
    ]


def test_dummy_variables_enter_together():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": rng.standard_normal(200),
            "colour": rng.choice(["red", "green", "blue"], 200),
            "town": pandas.Categorical(rng.choice(list("abcdef"), 200)),
            "member": rng.random(200) < 0.5,
        }
    )
    effect = frame["colour"].map({"red": 0.0, "green": 1.0, "blue": 3.0})
    y = effect + 0.1 * rng.standard_normal(200)
    encoded, groups = one_hot(frame)
    assert [len(group) for group in groups] == [1, 3, 6, 2]
    assert encoded.shape == (200, 12)
    np.testing.assert_array_equal(encoded.iloc[:, 1:4].sum(axis=1), 1.0)
    model = GroupLasso(2.0, groups=groups, cluster=3).fit(encoded, y)
    active = [list(encoded.columns[group]) for group in model.active_groups_]
    assert active == [["colour=blue", "colour=green", "colour=red"]]


# -- the domain ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_the_ball_s_vertices_minimise_linear_functions(seed):
    rng = np.random.default_rng(seed)
    domain = ball(GROUPS, 2.5, rng.random(5) + 0.2)
    assert isinstance(domain, Domain)
    groups, scores = domain.groups, rng.standard_normal(15)
    ids = groups.leaders[groups.labels].tolist()
    merit = domain.known_merit(ids, scores)
    best = int(np.argmax(merit))
    members = groups.members(int(groups.labels[best]))
    vertex = np.zeros(15)
    vertex[members] = domain.direction(ids[best], scores[members])
    assert groups.norm(vertex) == pytest.approx(domain.beta)
    assert vertex @ scores == pytest.approx(-domain.scale * merit[best])
    for _ in range(20):
        other = rng.standard_normal(15)
        other *= domain.beta / groups.norm(other)
        assert other @ scores >= vertex @ scores - 1e-12
        gap = domain.gap(float(other @ scores), float(merit.max()))
        assert gap == pytest.approx((other - vertex) @ scores)


def known_groups(X, y, groups, intercept):
    """An active set that knows every column, group by group."""
    active = ExplicitActiveSet(SquaredError(y, intercept))
    active.append([Atom(j, len(y), X[:, j].copy()) for j in range(X.shape[1])])
    active.ids = [group[0] for group in groups for _ in group]
    return active


KINDS = {
    "plain": lambda X, rng: X,
    "twice": lambda X, rng: np.hstack([X, X]),
    "and negated": lambda X, rng: np.hstack([X, -X]),
    "some zero": lambda X, rng: np.where(np.arange(X.shape[1]) % 3, X, 0.0),
    "other units": lambda X, rng: X * 10.0 ** rng.uniform(-1, 1, X.shape[1]),
    "low rank": lambda X, rng: rng.standard_normal((len(X), 2)) @ X[:2],
}


@pytest.mark.parametrize("uncompiled", [0, 100])
@pytest.mark.parametrize("few_rows", [0, 500])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_the_known_groups_get_the_best_weights(seed, kind, few_rows, uncompiled, monkeypatch):
    """Through columns or through products, on faces and inside the ball: the gap is closed."""
    monkeypatch.setattr(group_solver, "UNCOMPILED", uncompiled)
    monkeypatch.setattr(group_solver, "FEW_ROWS", few_rows)
    rng, intercept = np.random.default_rng(seed), bool(seed % 2)
    d, n, radius = int(rng.integers(2, 40)), int(rng.integers(2, 40)), 10.0 ** (seed % 4 - 1)
    X = KINDS[kind](rng.standard_normal((d, n)), rng)
    y, n = 3 * rng.standard_normal(d) + 5 * intercept, X.shape[1]
    label = np.sort(rng.integers(0, max(n // 4, 1), n))
    groups = [np.flatnonzero(label == g).tolist() for g in np.unique(label)]
    active, domain = known_groups(X, y, groups, intercept), ball(groups, radius, n=n)
    tolerance = 1e-6 * max(active.value(), 1e-9)
    GroupSolver(domain).minimise(active, tolerance)
    assert domain.groups.norm(active.weights) <= radius * (1 + 1e-9)
    scores = active.scores()
    gap = active.weights @ scores + radius * domain.known_merit(active.ids, scores).max()
    assert gap <= 1.01 * tolerance


def test_many_groups_go_by_columns_where_products_would_not_fit(monkeypatch):
    """Also those that went by products before there were so many."""
    rng, groups = np.random.default_rng(0), np.arange(40).reshape(-1, 4).tolist()
    X = rng.standard_normal((20, 40))
    y, domain = X[:, 0] + rng.standard_normal(20), ball(groups, 2.0, n=40)
    exact, active = (known_groups(X, y, groups, True) for _ in range(2))
    monkeypatch.setattr(group_solver, "FEW_ROWS", 0)
    solver = GroupSolver(domain)
    solver.minimise(exact, 1e-8)
    monkeypatch.setattr(group_solver.gram, "MOST_WEIGHTS", 39)
    monkeypatch.delattr(ExplicitActiveSet, "products")
    solver.minimise(active, 1e-8)
    assert active.value() == pytest.approx(exact.value(), rel=1e-8)


@pytest.mark.parametrize(
    ("groups", "weights", "message"),
    [
        ([[0, 1], [1, *range(2, 15)]], None, "groups overlap: column 1"),
        ([[0, 0], list(range(1, 15))], None, "groups overlap: column 0"),
        ([[0, 1], [2, 3]], None, "do not cover column 4"),
        ([[0, 99], list(range(1, 15))], None, "column 99, but X has 15"),
        ([[0.5], list(range(1, 15))], None, r"groups\[0\] holds 0.5"),
        ([[np.nan], list(range(1, 15))], None, r"groups\[0\] holds nan"),
        ([[True], [0, *range(2, 15)]], None, r"groups\[0\] holds True"),
        ([[], list(range(15))], None, r"groups\[0\] is empty"),
        ([3, 4], None, "each group is a list of columns"),
        ([["height"]], None, "names 'height', but X has no such column"),
        ("views", None, '"sources" or a list of lists'),
        (GROUPS, [1.0, 2.0], "weights must be 5 finite numbers"),
        (GROUPS, [1.0, 2.0, 0.0, 1.0, 1.0], "weights must be 5 finite numbers"),
    ],
)
def test_bad_groups(groups, weights, message):
    with pytest.raises(ValueError, match=message):
        GroupLasso(1.0, groups=groups, weights=weights).fit(*data())


def test_bad_input():
    X, y = data()
    with pytest.raises(ValueError, match="a group is split: column 0 is on node 0, but column"):
        GroupLasso(1.0, groups=GROUPS).fit(Shards.split(X, 3, by="contiguous"), y)
    with pytest.raises(ValueError, match="beta must be a finite number > 0"):
        GroupLasso(-1.0, groups=GROUPS).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        GroupLasso(1.0, groups=GROUPS).fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="only one class"):
        GroupLogisticRegression(1.0).fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="Only binary classification"):
        GroupLogisticRegression(1.0).fit(X, np.arange(len(y)) % 3)


@pytest.mark.parametrize("mean", [100.0, 1000.0])
def test_columns_far_from_zero_that_all_but_coincide(mean):
    """Without an intercept; gradients along such columns led nowhere, and the fit gave up."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 240))
    y = X[:, :8] @ rng.standard_normal(8) + rng.standard_normal(100)
    groups = [list(range(k, k + 4)) for k in range(0, 240, 4)]
    X += mean
    model = GroupLasso(beta=6.0, groups=groups, fit_intercept=False).fit(X, y)
    assert model.result_.status == "optimal"
    slopes = 2.0 * X.T @ (X @ model.coef_ - y)
    steepest = np.linalg.norm(slopes.reshape(-1, 4), axis=1).max() / 2.0
    gap = model.coef_ @ slopes + 6.0 * steepest
    assert gap <= 1.01e-4 * np.sum((X @ model.coef_ - y) ** 2)
