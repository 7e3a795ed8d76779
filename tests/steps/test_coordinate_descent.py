"""The inner solver for many atoms reaches what the exact one does, and certifies it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast import Lasso, Solver, SparseLogisticRegression
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.known import active_set, gram
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom
from atomcast.objectives import Logistic, SquaredError
from atomcast.steps.inner import choice as inner
from atomcast.steps.inner import coordinate_descent
from atomcast.steps.inner.column_model import ColumnModel
from atomcast.steps.inner.coordinate_descent import CoordinateDescent, _Bounds
from atomcast.steps.inner.corral import Corral
from atomcast.steps.inner.own_part import penalised_weights
from atomcast.steps.inner.plane import newton_step


def known_atoms(X, y, fit_intercept=False, objective=SquaredError):
    """An active set that knows every column, stored sparsely if X is sparse."""
    active = ExplicitActiveSet(objective(y, fit_intercept))
    if sparse.issparse(X):
        columns = [X[:, [j]].tocoo() for j in range(X.shape[1])]
        active.append([Atom(j, len(y), c.data, c.row) for j, c in enumerate(columns)])
    else:
        active.append([Atom(j, len(X), X[:, j].copy()) for j in range(X.shape[1])])
    return active


def gap_of(active, domain, weights):
    """The duality gap of weights, by hand, and the check that they are feasible."""
    total = np.abs(weights).sum()
    assert total <= domain.scale * (1 + 1e-12)
    if not domain.has_origin:
        assert weights.min() >= 0.0
        assert total == pytest.approx(domain.scale, rel=1e-12)
    active.set_weights(weights)
    scores = active.columns.scores(active.objective.gradient(active.image))
    merit = domain.merit(scores).max()
    return weights @ scores + domain.scale * (max(merit, 0.0) if domain.has_origin else merit)


KINDS = {
    "plain": lambda X, rng: X,
    "twice": lambda X, rng: np.hstack([X, X]),
    "and negated": lambda X, rng: np.hstack([X, -X]),
    "other units": lambda X, rng: X * 10.0 ** rng.uniform(-1, 1, X.shape[1]),
    "small integers": lambda X, rng: rng.integers(-1, 2, X.shape).astype(float),
    "some zero": lambda X, rng: np.where(np.arange(X.shape[1]) % 3, X, 0.0),
    "some constant": lambda X, rng: np.where(np.arange(X.shape[1]) % 3, X, 1.0),
}


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(sorted(KINDS)),
    stored=st.sampled_from(["dense", "sparse"]),
    radius=st.sampled_from([0.01, 0.1, 1.0, 10.0, 1e3]),
    intercept=st.booleans(),
)
def test_it_reaches_the_optimum_of_the_ball(seed, kind, stored, radius, intercept):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 40)), int(rng.integers(2, 50))
    X, y = KINDS[kind](rng.standard_normal((d, n)), rng), 3 * rng.standard_normal(d) + 5 * intercept
    active = known_atoms(sparse.csc_array(X) if stored == "sparse" else X, y, intercept)
    domain, tolerance = L1Ball(radius), 1e-6 * max(active.value(), 1e-12)
    weights, found = CoordinateDescent(domain).minimise(ColumnModel.of(active), tolerance)
    gap = gap_of(active, domain, weights)
    assert gap <= 1.001 * tolerance or not found  # whatever it says is true
    exact = known_atoms(X, y, intercept)
    inner.Quadratic(domain).corral.minimise(exact, 1e-3 * tolerance)
    if found:
        assert active.value() <= exact.value() + 1.01 * tolerance


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("from_steps", [np.inf, -1.0], ids=["by steps", "factorised"])
def test_ordinary_data_needs_no_other_solver(kind, seed, from_steps, monkeypatch):
    monkeypatch.setattr(ColumnModel, "steps_to_factorise", lambda *_: from_steps)
    rng = np.random.default_rng(seed)
    X = KINDS[kind](rng.standard_normal((int(rng.integers(2, 40)), int(rng.integers(2, 50)))), rng)
    active = known_atoms(X, 3 * rng.standard_normal(len(X)), bool(seed % 2))
    domain = L1Ball([0.01, 0.1, 1.0, 10.0, 1e3][seed % 5])
    assert CoordinateDescent(domain).minimise(ColumnModel.of(active), 1e-6 * active.value())[1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["plain", "twice", "and negated", "other units"])
def test_it_reaches_the_optimum_of_the_simplex(kind, seed):
    rng = np.random.default_rng(seed)
    X = KINDS[kind](rng.standard_normal((20, 30)), rng)
    y, domain = rng.standard_normal(20), Simplex()
    exact, active = known_atoms(X, y), known_atoms(X, y)
    Corral(domain).minimise(exact, 1e-12)
    for start in (np.zeros(X.shape[1]), np.full(X.shape[1], 1.0 / X.shape[1])):
        active.set_weights(start)
        tolerance = 1e-7 * exact.value()
        weights, found = CoordinateDescent(domain).minimise(ColumnModel.of(active), tolerance)
        assert found
        assert gap_of(active, domain, weights) <= 1.001 * tolerance
        assert active.value() == pytest.approx(exact.value(), rel=1e-6)


def test_a_flat_direction_of_the_simplex_is_left_to_the_exact_solver():
    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.standard_normal((12, 5)), np.ones(12)]), rng.standard_normal(12)
    active = known_atoms(X, y, True)
    active.set_weights(np.full(6, 1 / 6))
    assert not CoordinateDescent(Simplex()).minimise(ColumnModel.of(active), 1e-6)[1]


@dataclass(frozen=True)
class NonnegativeBall(L1Ball):
    """Nonnegative weights with a sum of at most beta."""

    def merit(self, scores):
        return -scores

    def signs(self, scores):
        return np.ones_like(scores)


@pytest.mark.parametrize("radius", [0.3, 100.0])
def test_nonnegative_weights(radius):
    scipy_optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    active = known_atoms(X, y)
    weights, found = CoordinateDescent(NonnegativeBall(radius)).minimise(
        ColumnModel.of(active), 1e-9
    )
    assert found
    assert weights.min() >= 0.0
    assert gap_of(active, NonnegativeBall(radius), weights) <= 1.1e-9
    if radius > 1.0:  # inside: what the sum is bounded by does not matter
        np.testing.assert_allclose(weights, scipy_optimize.nnls(X, y)[0], atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
def test_sparse_text_as_celer_solves_it(intercept, monkeypatch):
    """Columns of very different length: what unpreconditioned methods are slow on."""
    celer = pytest.importorskip("celer")
    rng = np.random.default_rng(1)
    words = rng.choice(600, 3_000, p=1 / np.arange(1, 601) / np.sum(1 / np.arange(1, 601)))
    counts = sparse.coo_array((np.ones(3_000), (rng.integers(0, 300, 3_000), words)), (300, 600))
    X = sparse.csc_matrix(counts)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    y = X @ np.where(rng.random(600) < 0.1, rng.standard_normal(600), 0) + rng.standard_normal(300)
    theirs = celer.Lasso(alpha=0.02, tol=1e-12, fit_intercept=intercept).fit(X, y)
    monkeypatch.setattr(active_set, "FEW", 20)
    beta = float(np.abs(theirs.coef_).sum())
    ours = Lasso(beta, fit_intercept=intercept, solver=Solver(tol=1e-7)).fit(X, y)
    assert ours.result_.status == "optimal"
    assert ours.result_.objective == pytest.approx(np.sum((y - theirs.predict(X)) ** 2), rel=1e-6)


def test_a_run_goes_on_to_the_same_answer_when_it_takes_over(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 200))
    y = X[:, :20] @ rng.normal(size=20) + 0.1 * rng.normal(size=80)
    exact = Lasso(5.0, solver=Solver(tol=1e-8)).fit(X, y)
    monkeypatch.setattr(active_set, "FEW", 7)
    monkeypatch.setattr(active_set, "WORTH", 0)
    other = Lasso(5.0, solver=Solver(tol=1e-8)).fit(X, y)
    assert other.result_.status == "optimal"
    assert other.result_.objective == pytest.approx(exact.result_.objective, rel=1e-8)
    np.testing.assert_allclose(other.coef_, exact.coef_, atol=1e-4)


def test_where_it_gives_up_the_exact_solver_takes_over(monkeypatch):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 60)) * 10.0 ** rng.uniform(-6, 6, size=60)
    y = rng.normal(size=40)
    exact, active = known_atoms(X, y), known_atoms(X, y)
    domain = L1Ball(1e3)
    Corral(domain).minimise(exact, 1e-10)
    monkeypatch.setattr(active_set, "FEW", 10)
    monkeypatch.setattr(active_set, "WORTH", 0)
    monkeypatch.setattr(CoordinateDescent, "alternations", 2)
    assert active.sweepable
    assert not CoordinateDescent(domain).minimise(ColumnModel.of(active), 1e-9 * exact.value())[1]
    inner.Quadratic(domain).minimise(active, 1e-9 * exact.value())
    assert active.value() == pytest.approx(exact.value(), rel=1e-7)


@pytest.mark.parametrize(
    ("objective", "domain"),
    [(SquaredError, L1Ball(2.0)), (SquaredError, Simplex()), (Logistic, L1Ball(2.0))],
)
def test_no_matrix_of_products_is_larger_than_the_bound(objective, domain, monkeypatch):
    """Neither where products are cheaper than sweeps, nor where sweeps give up."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((12, 90))
    X[:, 80:] = 0.0  # flat directions, which sweeps over a simplex leave to others
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    exact, active = (known_atoms(X, y, objective=objective) for _ in range(2))
    make_inner = partial(inner.Quadratic, domain)
    solver = make_inner() if exact.quadratic else inner.Newton(domain, make_inner)
    solver.minimise(exact, 1e-10)
    sizes = []
    for name in ("products", "hessian"):
        original = getattr(ExplicitActiveSet, name)

        def counted(self, *chosen, original=original):
            result = original(self, *chosen)
            sizes.append(min(result.shape[0], len(result.T)))
            return result

        monkeypatch.setattr(ExplicitActiveSet, name, counted)
    monkeypatch.setattr(gram, "MOST_WEIGHTS", 60)
    monkeypatch.setattr(CoordinateDescent, "alternations", 1)
    solver.minimise(active, 1e-10)
    assert active.sweepable
    assert max(sizes) <= 60
    assert active.value() == pytest.approx(exact.value(), rel=1e-7)


def test_a_part_of_a_node_needs_no_products_either(monkeypatch):
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((30, 50)), rng.standard_normal(30)
    usual = penalised_weights(known_atoms(X, y, True), L1Ball(1.0), 8.0)
    assert 0 < np.count_nonzero(usual) < 30
    monkeypatch.setattr(gram, "MOST_WEIGHTS", 49)
    monkeypatch.delattr(ExplicitActiveSet, "hessian")
    other = penalised_weights(known_atoms(X, y, True), L1Ball(1.0), 8.0)
    np.testing.assert_allclose(other, usual, atol=1e-7)


def test_operations_decide_not_the_number_of_atoms():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 200))
    assert not known_atoms(X, X[:, 0]).sweepable
    thin = sparse.random_array((3_000, 200), density=2e-3, format="csc", rng=rng)
    assert known_atoms(thin, X[:, 0]).sweepable
    labels = np.where(X[:, 0] > 0, 1.0, -1.0)
    assert known_atoms(X, labels, True, Logistic).sweepable
    assert not known_atoms(X[:300], labels[:300], True, Logistic).sweepable
    wide = np.random.default_rng(2).standard_normal((160, 400))  # 160 of them are independent
    assert not known_atoms(wide, wide[:, 0]).sweepable


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize("beta", [3.0, 30.0])
def test_logistic_models_by_columns_and_by_products_agree(beta, stored, intercept, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, 80)) * (rng.random((120, 80)) < 0.4)
    y = X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(120) > 0
    data = sparse.csc_array(X) if stored == "sparse" else X
    results = []
    for effort in (0.0, np.inf):
        monkeypatch.setattr(active_set, "EFFORT", effort)
        model = SparseLogisticRegression(beta, fit_intercept=intercept, solver=Solver(tol=1e-8))
        results.append(model.fit(data, y).result_)
    assert [result.status for result in results] == ["optimal", "optimal"]
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-7)


def test_the_model_is_the_objective_where_that_is_quadratic():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((15, 6)), rng.standard_normal(15)
    active = known_atoms(X, y, True)
    active.set_weights(rng.standard_normal(6))
    model, before = ColumnModel.of(active), active.value()
    elsewhere = rng.standard_normal(6)
    active.set_weights(elsewhere)
    value, gradient = model.at(elsewhere)
    assert value == pytest.approx(active.value() - before, rel=1e-9)
    np.testing.assert_allclose(gradient, active.gradient, atol=1e-9)


@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize("intercept", [False, True])
def test_slopes_that_are_known_spare_passes_and_change_nothing(stored, intercept):
    rng = np.random.default_rng(6)
    X = np.where(rng.random((40, 12)) < 0.5, rng.standard_normal((40, 12)), 0.0)
    y = np.where(rng.random(40) < 0.4, 1.0, -1.0)
    data = sparse.csc_array(X) if stored == "sparse" else X
    active = known_atoms(data, y, intercept, Logistic)
    active.set_weights(0.1 * rng.standard_normal(12))
    plain, knowing = ColumnModel.of(active), ColumnModel.of(active, active.scores())
    np.testing.assert_allclose(knowing.at_zero(), plain.at(np.zeros(12))[1], atol=1e-12)
    descent = CoordinateDescent(L1Ball(2.0))
    expected, weights = (descent.minimise(model, 1e-9)[0] for model in (plain, knowing))
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert descent.gain == pytest.approx(-plain.at(weights)[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("steps", [0, 1_000], ids=["by steps", "factorised"])
def test_a_face_that_is_solved_stays_solved(seed, steps):
    """Steps below rounding must not drive conjugate gradients away from where they began."""
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((60, 40)), rng.standard_normal(40)
    residual = X @ np.linalg.solve(X.T @ X, 0.5 * np.sign(weights))  # a multiplier of one
    active = known_atoms(X, X @ weights + residual)
    active.set_weights(weights)
    model, solution = ColumnModel.of(active), weights.copy()
    descent = CoordinateDescent(L1Ball(float(np.abs(weights).sum())))
    descent._steps = steps
    level = descent._solve_face(model, solution, model.gradient, 1.0, 0.0, (1e-3, 0.0))
    assert level == pytest.approx(1.0)
    assert solution == pytest.approx(weights)


def test_many_steps_on_a_face_are_followed_by_a_factorisation(monkeypatch):
    """Nearly as many columns as rows: conjugate gradients are slow, and few of them are needed."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((120, 400)), rng.standard_normal(120)
    used = []

    def counted(matrix, *rest):
        used.append(len(matrix))
        return newton_step(matrix, *rest)

    monkeypatch.setattr(coordinate_descent, "newton_step", counted)
    active, domain = known_atoms(X, y), L1Ball(6.0)
    model, tolerance = ColumnModel.of(active), 1e-6 * active.value()
    weights, found = CoordinateDescent(domain).minimise(model, tolerance)
    assert found
    assert used
    assert gap_of(active, domain, weights) <= 1.001 * tolerance
    value, tries = active.value(), len(used)
    monkeypatch.setattr(ColumnModel, "steps_to_factorise", lambda *_: np.inf)
    weights, found = CoordinateDescent(domain).minimise(model, tolerance)
    assert len(used) == tries
    assert gap_of(active, domain, weights) <= 1.001 * tolerance
    assert active.value() == pytest.approx(value, rel=1e-6)


def test_sparse_columns_are_not_factorised():
    X = sparse.random_array((50, 30), density=0.2, format="csc", rng=0)
    assert ColumnModel.of(known_atoms(X, np.ones(50))).steps_to_factorise(30) == np.inf


def test_a_penalty_near_its_bound_is_taken_and_one_beyond_does_not_lead_far_away():
    bounds = _Bounds(from_zero=True, highest=26.0)
    bounds.learn(0.03, excess=0.009, settled=True)
    assert bounds.within(0.03 * (1 - 1e-5)) == 0.03 * (1 - 1e-5)
    assert 0.03 < bounds.within(0.01) <= 0.06
    bounds.learn(0.05, excess=-0.1, settled=True)
    assert bounds.within(0.01) == pytest.approx(0.03 + 0.02 * 0.009 / 0.109)
    bounds.learn(0.05, excess=-0.1, settled=True)  # nothing to draw a line through
    assert bounds.within(0.01) == pytest.approx(0.04)


def test_bounds_that_lead_on_are_not_forgotten():
    """One-hot columns: a face says nothing of the penalty, but each sweep comes nearer."""
    bounds = _Bounds(from_zero=True, highest=3000.0)
    penalty = bounds.within(1e-5)
    for _ in range(20):
        excess = 700.0 - 460.0 * penalty
        if abs(excess) < 0.1:
            break
        bounds.learn(penalty, excess, settled=penalty < 0.01)
        penalty = bounds.within(1e-6)
    assert penalty == pytest.approx(700.0 / 460.0, rel=1e-3)


@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_gradient_on_the_way_to_a_face_is_that_of_the_weights_there(stored, intercept):
    """It is scaled back from inside the ball; weights that change their sign end at zero."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((20, 8)), rng.standard_normal(20)
    active = known_atoms(sparse.csc_array(X) if stored == "sparse" else X, y, intercept)
    active.set_weights(0.1 * rng.standard_normal(8))
    model, descent = ColumnModel.of(active), CoordinateDescent(L1Ball(1.0))
    origin = model.at(np.zeros(8))[1]
    for _ in range(20):
        weights, solution = rng.standard_normal((2, 8))
        found, gradient = descent._toward(model, weights, solution, origin)
        np.testing.assert_allclose(gradient, model.at(found)[1], atol=1e-9)
        values = [model.at(descent._feasible(w))[0] for w in (weights, found)]
        assert values[1] <= values[0] + 1e-12
        assert np.all(found * weights >= 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_from_zero_it_does_not_let_all_atoms_in_at_once(seed):
    """At a penalty of zero, more columns than entries would come in, and hardly leave again."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 400))
    w = np.where(np.arange(400) < 20, 3.0 * rng.standard_normal(400), 0.0)
    y = X @ w + rng.standard_normal(120)
    for share in (0.05, 0.1, 0.2, 0.4, 0.8):
        active, domain = known_atoms(X, y, True), L1Ball(share * float(np.abs(w).sum()))
        tolerance = 1e-4 * active.value()
        weights, found = CoordinateDescent(domain).minimise(ColumnModel.of(active), tolerance)
        assert found
        assert gap_of(active, domain, weights) <= tolerance


@pytest.mark.parametrize("seed", range(5))
def test_weights_that_the_ball_does_not_bound_say_nothing_of_the_penalty(seed):
    """At a penalty of zero, all that join would come in at once, and hardly leave again."""
    rng = np.random.default_rng(seed)
    X = (rng.integers(0, 40, (400, 12))[:, :, None] == np.arange(40)).reshape(400, -1).astype(float)
    y = X @ np.where(rng.random(480) < 0.2, 3.0 * rng.standard_normal(480), 0.0)
    active, few = known_atoms(sparse.csc_array(X), y + rng.standard_normal(400)), 60
    weights = np.zeros(480)
    weights[:few] = np.linalg.lstsq(X[:, :few], active.objective.y, rcond=None)[0]
    active.set_weights(weights)
    domain = L1Ball(1.05 * float(np.abs(weights).sum()))
    descent = CoordinateDescent(domain)
    descent.alternations, descent.inside = 7, inner.INSIDE
    tolerance = 1e-4 * active.value()
    found, enough = descent.minimise(ColumnModel.of(active), tolerance)
    assert enough
    assert gap_of(active, domain, found) <= tolerance
