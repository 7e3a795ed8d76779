"""The inner solver for many atoms reaches what the exact one does, and certifies it."""

from __future__ import annotations

import numpy as np
import pytest

from atomcast import Lasso, Solver
from atomcast.domains.base import L1Ball, Simplex
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.gram import Gram
from atomcast.messages.atom import Atom
from atomcast.objectives import SquaredError
from atomcast.steps.inner import choice as inner
from atomcast.steps.inner.corral import Corral
from atomcast.steps.inner.face_descent import FaceDescent


def known_atoms(X, y, fit_intercept=False):
    active = ExplicitActiveSet(SquaredError(y, fit_intercept))
    active.append([Atom(j, len(X), X[:, j].copy()) for j in range(X.shape[1])])
    return active


CASES = {
    "ball": (L1Ball(2.0), 40, 30),
    "ball, more atoms than rows": (L1Ball(3.0), 20, 80),
    "solution inside the ball": (L1Ball(1e3), 60, 10),
    "simplex": (Simplex(), 30, 40),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("intercept", [False, True])
def test_it_reaches_the_exact_optimum(case, intercept):
    domain, d, n = CASES[case]
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(d, n)), rng.normal(size=d)
    X[:, -1] = X[:, 0]  # a duplicate must not confuse it
    exact, active = known_atoms(X, y, intercept), known_atoms(X, y, intercept)
    Corral(domain, Gram()).minimise(exact, 1e-12)
    descent = FaceDescent(domain)
    if not domain.has_origin:
        active.set_weights(np.full(n, 1.0 / n))
    descent.minimise(active, 1e-8 * exact.value())
    assert active.value() == pytest.approx(exact.value(), rel=2e-8)
    gradient = -2 * X.T @ active.objective.residual(active.image)
    merit = domain.merit(gradient).max()
    gap = active.weights @ gradient + domain.scale * max(merit, 0.0 if domain.has_origin else merit)
    assert gap <= 1.01e-8 * exact.value()


@pytest.mark.parametrize("domain", [L1Ball(2.0), Simplex()])
@pytest.mark.parametrize("pattern", ["negatives", "triples", "zero", "one row"])
def test_atoms_that_cancel_out(domain, pattern):
    """The search for the curvature starts somewhere: no data may make it start from nothing."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 9))
    X, intercept = {
        "negatives": (np.hstack([X, -X]), False),
        "triples": (np.repeat(X, 2, axis=1), True),
        "zero": (np.zeros((12, 9)), False),
        "one row": (X[:1], True),
    }[pattern]
    y = rng.normal(size=len(X))
    active = known_atoms(X, y, intercept)
    if not domain.has_origin:
        active.set_weights(np.full(X.shape[1], 1.0 / X.shape[1]))
    FaceDescent(domain).minimise(active, 1e-8)
    exact = known_atoms(X, y, intercept)
    Corral(domain, Gram()).minimise(exact, 1e-12)
    assert active.value() == pytest.approx(exact.value(), abs=1e-7)


@pytest.mark.parametrize("domain", [L1Ball(1.5), Simplex()])
def test_projection_is_the_nearest_point(domain):
    rng = np.random.default_rng(0)
    for _ in range(50):
        point = rng.normal(size=8)
        nearest = domain.project(range(8), point)
        total = np.abs(nearest).sum()
        assert total <= domain.scale * (1 + 1e-12)
        # Optimality: no vertex of the domain lies further along the remaining direction.
        rest = point - nearest
        signs = (1.0, -1.0) if domain.has_origin else (1.0,)
        vertices = [sign * domain.scale * column for sign in signs for column in np.eye(8)]
        assert all((vertex - nearest) @ rest <= 1e-10 for vertex in vertices)


def test_a_run_goes_on_to_the_same_answer_when_it_takes_over(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 200))
    y = X[:, :20] @ rng.normal(size=20) + 0.1 * rng.normal(size=80)
    exact = Lasso(5.0, solver=Solver(tol=1e-8)).fit(X, y)
    monkeypatch.setattr(inner, "MANY_WEIGHTS", 7)
    other = Lasso(5.0, solver=Solver(tol=1e-8)).fit(X, y)
    assert other.result_.status == "optimal"
    assert other.result_.objective == pytest.approx(exact.result_.objective, rel=1e-8)
    np.testing.assert_allclose(other.coef_, exact.coef_, atol=1e-5)


def test_where_it_gives_up_the_exact_solver_takes_over(monkeypatch):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 60)) * 10.0 ** rng.uniform(-4, 4, size=60)
    y = rng.normal(size=40)
    exact, active = known_atoms(X, y), known_atoms(X, y)
    domain = L1Ball(1.0)
    Corral(domain, Gram()).minimise(exact, 1e-10)
    assert not FaceDescent(domain).minimise(active, 1e-9 * exact.value())
    monkeypatch.setattr(inner, "MANY_WEIGHTS", 10)
    active = known_atoms(X, y)
    inner.Quadratic(domain).minimise(active, 1e-9 * exact.value())
    assert active.value() == pytest.approx(exact.value(), rel=1e-9)
