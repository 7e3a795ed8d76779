"""Data as it comes: other units, far from the origin, nearly or exactly dependent, constant."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.domains.balls import L1Ball
from problems import STEPS, make_domain, optimum, solve

KINDS = {
    "integer": lambda X, rng: rng.integers(-1, 2, X.shape).astype(float),
    "other units": lambda X, rng: X * 10.0 ** rng.integers(-4, 5, X.shape[1]),
    "far away": lambda X, rng: X + 100 * rng.standard_normal(X.shape[1]),
    "nearly equal": lambda X, rng: np.hstack([X, X + 1e-3 * rng.standard_normal(X.shape)]),
    "and negated": lambda X, rng: np.hstack([X, -X]),
    "low rank": lambda X, rng: rng.standard_normal((len(X), 2)) @ X[:2],
    "constants": lambda X, rng: np.where(np.arange(X.shape[1]) % 3, X, 10.0 ** rng.integers(-3, 6)),
}


def make_case(kind, seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 25)), int(rng.integers(1, 50))
    name = "l1" if rng.random() < 0.7 else "simplex"
    domain = make_domain(name, 10.0 ** rng.integers(-2, 3))
    fit_intercept = bool(rng.random() < 0.5)
    X = KINDS[kind](rng.standard_normal((d, n)), rng)
    return X, 3 * rng.standard_normal(d) + 5 * fit_intercept, domain, fit_intercept


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", KINDS)
def test_the_corrective_step_reaches_its_tolerance(kind, seed):
    X, y, domain, fit_intercept = make_case(kind, seed)
    data = sparse.csc_array(X) if seed % 3 == 0 else X
    how = {"tol": 1e-5, "max_rounds": 300}
    result = solve(data, y, domain, nodes=1 + seed % 4, fit_intercept=fit_intercept, **how)
    assert result.status == "optimal"
    residual = y - X @ result.weights
    residual -= residual.mean() * fit_intercept
    assert result.objective == pytest.approx(float(residual @ residual), rel=1e-6, abs=1e-9)
    if kind not in ("other units", "constants"):  # the reference solver needs comparable columns
        best, _ = optimum(X, y, domain, fit_intercept)
        assert result.objective <= best + 1e-4 * float(y @ y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", STEPS)
def test_no_step_fails_or_lies(kind, step):
    """Whatever a step achieves here in a few rounds, its weights are feasible and its gap true."""
    for seed in range(20, 26):
        X, y, domain, fit_intercept = make_case(kind, seed)
        how = {"step": step, "tol": 1e-5, "max_rounds": 25}
        result = solve(X, y, domain, nodes=3, fit_intercept=fit_intercept, **how)
        w = result.weights
        if isinstance(domain, L1Ball):
            assert np.abs(w).sum() <= domain.beta * (1 + 1e-12)
        else:
            assert w.min() >= -1e-15
            assert w.sum() == pytest.approx(1.0, abs=1e-12)
        residual = X @ w - y
        residual -= residual.mean() * fit_intercept
        gradient = 2 * X.T @ residual
        merit = np.abs(gradient) if isinstance(domain, L1Ball) else -gradient
        gap = float(w @ gradient + domain.scale * merit.max())
        size = np.linalg.norm(X, axis=0).max() * domain.scale
        rounding = (
            1e-12 * size * max(np.linalg.norm(residual), 1e-8 * np.linalg.norm(y), 1e-4 * size)
        )
        assert abs(result.gap - gap) <= 1e-6 * gap + rounding or result.gap == result.objective
