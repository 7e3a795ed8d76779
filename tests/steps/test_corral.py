"""The inner solver of the corrective step: exact on every kind of quadratic, degenerate or not."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atomcast.domains.balls import L1Ball, Simplex
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom
from atomcast.objectives import SquaredError
from atomcast.steps.inner.corral import Corral
from problems import DOMAINS, make_domain, mixture, optimum, regression

EPS = float(np.finfo(np.float64).eps)


def known_atoms(X, y, fit_intercept=False):
    """An active set that knows every column of X."""
    active = ExplicitActiveSet(SquaredError(y, fit_intercept))
    active.append([Atom(j, len(y), X[:, j].astype(np.float64)) for j in range(X.shape[1])])
    return active


def inner_gap(active, domain):
    """The duality gap over the known atoms."""
    scores, inner = active.scores(), active.inner()
    if isinstance(domain, L1Ball):
        return inner + domain.beta * np.abs(scores).max()
    return inner - scores.min()


def minimise(X, y, domain, tolerance=1e-9, fit_intercept=False, start=None):
    """Minimise over all columns; checks feasibility, and the gap that was promised."""
    active = known_atoms(X, y, fit_intercept)
    if start is not None:
        active.set_weights(np.asarray(start, dtype=float))
    target = tolerance * max(float(np.sum((y - y.mean() * fit_intercept) ** 2)), 1e-300)
    Corral(domain).minimise(active, target)
    check_feasible(active.weights, domain)
    longest = float(np.linalg.norm(X, axis=0).max()) * domain.scale
    # The gradient is the sum of terms as long as y and the columns, and cancels down to their last
    # bit where the target is met exactly.
    terms = float(np.linalg.norm(y)) + longest
    rounding = longest * (1e-13 * float(np.linalg.norm(active.gradient)) + 4 * EPS * terms)
    assert inner_gap(active, domain) <= 1.01 * target + rounding
    return active


def check_feasible(weights, domain):
    assert np.all(np.isfinite(weights))
    if isinstance(domain, L1Ball):
        assert np.abs(weights).sum() <= domain.beta * (1 + 1e-12)
    else:
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)


def check_optimal(X, y, domain, **how):
    active = minimise(X, y, domain, **how)
    best, _ = optimum(X, y, domain, how.get("fit_intercept", False))
    total = float(np.sum((y - y.mean() * how.get("fit_intercept", False)) ** 2))
    assert active.value() <= best + 1e-8 * max(total, best)
    return active


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 15),
    n=st.integers(1, 25),
    domain=st.sampled_from(DOMAINS),
    beta=st.sampled_from([1e-6, 0.01, 0.3, 1.0, 3.0, 30.0, 1e3]),
    fit_intercept=st.booleans(),
)
def test_random_problems_of_any_shape(seed, d, n, domain, beta, fit_intercept):
    X, y = regression(seed, d, n) if domain == "l1" else mixture(seed, d, n)
    check_optimal(X, y, make_domain(domain, beta), fit_intercept=fit_intercept)


@pytest.mark.parametrize(
    ("seed", "d", "n", "domain", "beta"),
    [(199136, 15, 23, "l1", 0.01), (0, 6, 20, "simplex", 1.0)],
)
def test_batches_that_fill_the_space(seed, d, n, domain, beta):
    """The last of a batch may depend on the others by less than rounding shows."""
    X, y = regression(seed, d, n) if domain == "l1" else mixture(seed, d, n)
    check_optimal(X, y, make_domain(domain, beta))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 6),
    n=st.integers(1, 20),
    domain=st.sampled_from(DOMAINS),
    beta=st.sampled_from([0.1, 1.0, 4.0, 50.0]),
    fit_intercept=st.booleans(),
)
@example(seed=202, d=4, n=7, domain="simplex", beta=0.1, fit_intercept=True)  # a constant y
def test_degenerate_problems(seed, d, n, domain, beta, fit_intercept):
    """Small integers: duplicates, negatives, zero columns, collinear and constant ones abound."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (d, n)).astype(float)
    y = rng.integers(-2, 3, d).astype(float)
    check_optimal(X, y, make_domain(domain, beta), fit_intercept=fit_intercept)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("d", [1, 2])
def test_many_atoms_in_one_and_two_dimensions(domain, d):
    X, y = regression(5, d, 300)
    for factor in (0.1, 1.0, 10.0):
        check_optimal(X, factor * y, make_domain(domain, 1.0))


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_column_twice_and_negated(domain):
    X, y = mixture(2, 12, 8)
    check_optimal(np.hstack([X, X, -X, X]), y, make_domain(domain, 0.7))


@pytest.mark.parametrize("domain", DOMAINS)
def test_collinear_columns(domain):
    X, y = mixture(3, 12, 6)
    mixes = X @ np.random.default_rng(0).dirichlet(np.ones(6), size=30).T
    check_optimal(np.hstack([X, mixes, 0.5 * X, 2 * X]), y, make_domain(domain, 0.7))


@pytest.mark.parametrize("domain", DOMAINS)
def test_all_columns_zero(domain):
    y = np.arange(1.0, 6.0)
    active = minimise(np.zeros((5, 4)), y, make_domain(domain, 2.0))
    assert active.value() == pytest.approx(float(y @ y))


@pytest.mark.parametrize("domain", DOMAINS)
def test_one_atom(domain):
    a, y = np.array([[1.0], [2.0]]), np.array([3.0, 1.0])
    active = minimise(a, y, make_domain(domain, 0.5))
    assert active.weights.tolist() == [0.5 if domain == "l1" else 1.0]
    interior = minimise(a, y, L1Ball(100.0))
    assert interior.weights[0] == pytest.approx(1.0)
    negative = minimise(-a, y, L1Ball(0.5))
    assert negative.weights.tolist() == [-0.5]


def test_a_solution_inside_the_ball_is_least_squares():
    X, y = regression(4, 30, 10)
    expected = np.linalg.lstsq(X, y)[0]
    active = minimise(X, y, L1Ball(3 * np.abs(expected).sum()), tolerance=1e-13)
    np.testing.assert_allclose(active.weights, expected, atol=1e-6)


@pytest.mark.parametrize("domain", DOMAINS)
def test_interpolation(domain):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((10, 40))
    y = X @ rng.dirichlet(np.ones(40))
    active = minimise(X, y, make_domain(domain, 2.0), tolerance=1e-12)
    assert active.value() <= 1e-12 * float(y @ y)


def test_a_target_inside_the_hull_of_the_simplex():
    X = np.array([[1.0, -1.0, 0.0, 5.0], [0.0, 0.5, -1.0, 5.0]])
    active = minimise(X, np.zeros(2), Simplex(), tolerance=1.0)
    # The tolerance is relative to a target of norm zero, so it is absolute and tiny.
    assert active.value() <= 1e-25


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("span", [2, 4, 6])
def test_columns_of_very_different_scales(span, fit_intercept):
    """Units are the user's choice: metres and micrometres must both work."""
    X, y = regression(7, 30, 13, support=13)
    scales = np.logspace(-span, span, 13)
    weights = np.linalg.lstsq(X * scales, y)[0]
    for share in (1e-9, 1e-4, 0.5, 2.0):
        domain = L1Ball(share * np.abs(weights).sum())
        check_optimal(X * scales, y, domain, fit_intercept=fit_intercept)


@pytest.mark.parametrize("offset", [1e2, 1e4])
def test_columns_far_from_the_origin_with_an_intercept(offset):
    X, y = regression(8, 40, 10)
    shifted = X + offset * np.random.default_rng(0).standard_normal(10)
    domain = L1Ball(0.6)
    active = minimise(shifted, y, domain, fit_intercept=True)
    best, weights = optimum(X, y, domain, fit_intercept=True)
    assert active.value() == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(active.weights, weights, atol=1e-4)


@pytest.mark.parametrize("mean", [10.0, 1e3, 1e4])
def test_columns_that_all_but_coincide(mean):
    """Far from zero, without an intercept: inverses of such columns are large, factors are not."""
    X, y = regression(3, 60, 150)
    minimise(mean + X, y, L1Ball(6.0), tolerance=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_constant_target(fit_intercept):
    X, _ = regression(9, 20, 8)
    active = minimise(X, np.full(20, 3.3), L1Ball(1.0), fit_intercept=fit_intercept)
    if fit_intercept:
        assert active.value() == 0.0
        assert not active.weights.any()


def test_a_thousand_active_atoms():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((1500, 1200))
    y = X @ rng.standard_normal(1200) + rng.standard_normal(1500)
    domain = L1Ball(900.0)
    active = minimise(X, y, domain, tolerance=1e-10)
    assert np.count_nonzero(active.weights) >= 1000
    # The conditions of optimality, by hand: all used atoms have the same slope, none a steeper.
    scores, used = active.scores(), active.weights != 0
    level = np.abs(scores).max()
    np.testing.assert_allclose(-scores[used] * np.sign(active.weights[used]), level, rtol=1e-6)
    assert np.abs(active.weights).sum() == pytest.approx(900.0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), domain=st.sampled_from(DOMAINS), d=st.integers(1, 8))
@example(seed=132053, domain="simplex", d=8)  # starts from which a rounded inverse led astray
@example(seed=775622, domain="simplex", d=5)
@example(seed=821330, domain="l1", d=5)
@example(seed=732135, domain="l1", d=5)
@example(seed=498792, domain="simplex", d=6)
def test_any_feasible_start_leads_to_the_optimum(seed, domain, d):
    """Also one whose atoms depend on each other, as a shrunken or foreign solution may have."""
    rng = np.random.default_rng(seed)
    X, y = mixture(seed, d, 12)
    X = np.hstack([X, X[:, :4], X[:, :4] @ rng.dirichlet(np.ones(4), size=3).T])
    start = rng.dirichlet(np.ones(19)) * (rng.random(19) < 0.8)
    start[0] += 1.0 - start.sum()
    if domain == "l1":
        start = start * rng.choice([-1, 1], 19) * rng.uniform(0.2, 1.0)
    check_optimal(X, y, make_domain(domain, 1.0), start=start)


@pytest.mark.parametrize("domain", DOMAINS)
def test_atoms_may_join_one_at_a_time(domain):
    """The corral is kept from call to call, and equals one that starts afresh."""
    X, y = mixture(11, 15, 40)
    where = make_domain(domain, 0.8)
    active, corral = known_atoms(X[:, :1], y), Corral(where)
    for j in range(1, 40):
        corral.minimise(active, 1e-12)
        active.append([Atom(j, 15, X[:, j].copy())])
    corral.minimise(active, 1e-12)
    fresh = minimise(X, y, where, tolerance=1e-13)
    np.testing.assert_allclose(active.weights, fresh.weights, atol=1e-8)
    assert active.value() == pytest.approx(optimum(X, y, where)[0], rel=1e-8)


@pytest.mark.parametrize("noise", [1e-4, 1e-5, 1e-6, 1e-8])
def test_weights_of_atoms_that_are_all_but_dependent_still_sum_to_one(noise):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 30))
    active = known_atoms(X + noise * rng.standard_normal(X.shape), rng.standard_normal(12))
    active.set_weights(np.full(30, 1 / 30))
    Corral(Simplex()).minimise(active, 1e9)  # anything will do, if it is in the simplex
    check_feasible(active.weights, Simplex())
