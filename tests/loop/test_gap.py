"""The certificate: at any stop, the gap bounds the distance to the optimum, which others find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast.domains.balls import L1Ball, Simplex
from problems import DOMAINS, STEPS, dense_problem, make_domain, mixture, optimum, regression, solve


def gap_by_hand(X, y, w, domain, fit_intercept):
    """The duality gap of the weights, from its definition; and their objective."""
    residual = X @ w - y
    residual = residual - residual.mean() * fit_intercept
    gradient = 2 * X.T @ residual
    if isinstance(domain, L1Ball):
        gap = w @ gradient + domain.beta * np.abs(gradient).max()
    else:
        gap = w @ gradient - gradient.min()
    return gap, float(residual @ residual)


def check_certificate(result, X, y, domain, fit_intercept=False):
    w = result.weights
    if isinstance(domain, L1Ball):
        assert np.abs(w).sum() <= domain.beta * (1 + 1e-12)
    else:
        assert w.min() >= -1e-15
        assert w.sum() == pytest.approx(1.0, abs=1e-12)
    gap, objective = gap_by_hand(X, y, w, domain, fit_intercept)
    unit = float(y @ y) or 1.0
    rounding = 1e-12 * unit * max(1.0, domain.scale * np.linalg.norm(X) / np.sqrt(unit))
    assert result.objective == pytest.approx(objective, rel=1e-9, abs=rounding)
    # An objective that is never negative bounds its own distance to the optimum: a perfect fit.
    expected = min(gap, objective) if result.gap == result.objective else gap
    assert result.gap == pytest.approx(expected, rel=1e-6, abs=rounding)
    best, _ = optimum(X, y, domain, fit_intercept)
    assert result.objective >= best - 1e-7 * unit
    assert result.gap >= result.objective - best - 1e-9 * unit
    if result.status == "optimal":
        assert result.relative_gap <= 1e-5


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 12),
    n=st.integers(1, 20),
    step=st.sampled_from(STEPS),
    domain=st.sampled_from(DOMAINS),
    beta=st.sampled_from([0.01, 0.5, 2.0, 20.0]),
    rounds=st.integers(1, 12),
    fit_intercept=st.booleans(),
)
def test_the_gap_bounds_the_distance_to_the_optimum(
    seed, d, n, step, domain, beta, rounds, fit_intercept
):
    X, y = dense_problem(domain, seed, d, n)
    where = make_domain(domain, beta)
    how = {"step": step, "max_rounds": rounds, "tol": 1e-5, "atoms_per_round": 1 + seed % 3}
    result = solve(X, y, where, nodes=1 + seed % 4, fit_intercept=fit_intercept, **how)
    check_certificate(result, X, y, where, fit_intercept)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 5),
    n=st.integers(1, 15),
    step=st.sampled_from(STEPS),
    domain=st.sampled_from(DOMAINS),
    rounds=st.integers(1, 30),
)
def test_the_gap_on_degenerate_data(seed, d, n, step, domain, rounds):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (d, n)).astype(float)
    y = rng.integers(-2, 3, d).astype(float)
    result = solve(X, y, make_domain(domain, 1.5), step=step, max_rounds=rounds, tol=1e-5, nodes=2)
    check_certificate(result, X, y, make_domain(domain, 1.5))


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_round_at_all(domain):
    X, y = dense_problem(domain)
    result = solve(X, y, make_domain(domain), max_rounds=0)
    assert result.status == "max_rounds"
    assert result.rounds == 0
    assert len(result.trace) == 1
    if domain == "l1":
        assert result.objective == pytest.approx(float(y @ y))
        assert result.gap == pytest.approx(2 * np.abs(X.T @ y).max())
    else:  # no feasible point is known yet, and none is claimed
        assert result.gap == np.inf
        assert np.isnan(result.objective)


@pytest.mark.parametrize("step", STEPS[2:])
@pytest.mark.parametrize("domain", DOMAINS)
def test_fast_steps_reach_a_tiny_gap(domain, step):
    X, y = dense_problem(domain, seed=3, d=30, n=40)
    where = make_domain(domain, 1.0)
    result = solve(X, y, where, step=step, tol=1e-9, max_rounds=3000)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(optimum(X, y, where)[0], rel=1e-8)


@pytest.mark.parametrize("step", STEPS)
def test_the_best_certified_weights_are_returned(step):
    """The gap of the classic step rises and falls; what is returned is the best of all rounds."""
    X, y = regression(seed=5, d=40, n=60)
    result = solve(X, y, L1Ball(2.0), step=step, tol=1e-12, max_rounds=37)
    gaps = result.trace.gap
    at = int(np.flatnonzero(gaps == gaps.min())[-1])
    assert result.gap == gaps[at]
    assert result.objective == result.trace.objective[at]
    check_certificate(result, X, y, L1Ball(2.0))


@pytest.mark.parametrize(
    ("seed", "tol"), [(57, 0.5), (347, 0.9), (351, 0.5), (438, 0.7), (526, 0.7), (773, 0.9)]
)
def test_optimal_means_that_the_returned_weights_are(seed, tol):
    """Weights with a smaller gap may have a smaller objective, and so a larger relative gap."""
    X, y = regression(seed, d=4, n=5, noise=0.05)
    result = solve(X, y, L1Ball(1.0), step="classic", tol=tol, max_rounds=60)
    assert result.status == "optimal"
    assert result.relative_gap <= tol


def test_a_tolerance_that_rounding_forbids_does_not_run_for_ever():
    X, y = regression(seed=6)
    for step in STEPS[2:]:
        result = solve(X, y, L1Ball(1.0), step=step, tol=1e-300, max_rounds=100_000)
        assert result.status == "stopped" or result.gap == 0.0
        assert result.relative_gap < 1e-9
        assert result.rounds < 5_000


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_tolerance_missed_by_the_last_bit(domain):
    """No atom may violate anything although the gap is above the tolerance by rounding."""
    for seed in range(20):
        X, y = dense_problem(domain, seed, d=10, n=5)
        before = solve(X, y, make_domain(domain, 0.5), max_rounds=1, step="line-search")
        for tol in (before.relative_gap, np.nextafter(before.relative_gap, 0.0)):
            if 0 < tol < np.inf:
                result = solve(X, y, make_domain(domain, 0.5), tol=tol, max_rounds=100)
                assert result.status in ("optimal", "stopped")
    for seed in range(20):
        X, y = regression(seed, d=10, n=5)
        before = solve(X, y, L1Ball(0.5), max_rounds=0)
        tol = np.nextafter(before.relative_gap, 0.0)
        result = solve(X, y, L1Ball(0.5), tol=tol, max_rounds=100)
        assert result.relative_gap <= tol * (1 + 1e-12)


def test_a_perfect_fit_is_certified():
    X, y = mixture(seed=7, d=8, n=30, noise=0.0)
    for where in (Simplex(), L1Ball(3.0)):
        result = solve(X, y, where, tol=1e-6)
        assert result.status == "optimal"
        assert result.objective <= 1e-8 * float(y @ y)


@pytest.mark.parametrize("selection", ["random-subset", "m-centers"])
def test_a_perfect_fit_is_certified_where_atoms_were_left_out(selection):
    X, y = regression(seed=2, d=20, n=200)
    y = X[:, :3] @ [3.0, -2.0, 1.0]
    result = solve(X, y, L1Ball(60.0), nodes=3, tol=1e-8, selection=selection)
    assert result.objective <= 1e-16 * float(y @ y)
    assert result.status == "optimal"
    assert result.gap <= result.objective * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_an_absolute_tolerance_is_that_of_the_gap_itself(scale):
    X, y = regression(seed=3)
    y, ball = scale * y, L1Ball(2.0 * scale)
    best, _ = optimum(X, y, ball)
    for step, tol in (("corrective", 1e-4 * best), ("line-search", 1e-2 * best)):
        result = solve(X, y, ball, step=step, tol=tol, tol_kind="absolute")
        assert result.status == "optimal"
        assert result.gap <= tol
        assert result.objective - best <= tol * (1 + 1e-6)
        assert result.relative_gap == pytest.approx(result.gap / result.objective)
    with pytest.raises(ValueError, match="tol_kind"):
        solve(X, y, ball, tol_kind="exact")
