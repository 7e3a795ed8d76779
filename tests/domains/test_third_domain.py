"""A domain that a user brings: neither the l1 ball nor the simplex, but a bit of both."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pytest

from atomcast.domains.balls import Domain, onto_simplex
from atomcast.known.active_set import ExplicitActiveSet
from problems import STEPS, regression, solve


@dataclass(frozen=True)
class NonnegativeBall(Domain):
    """Nonnegative weights that sum to at most `beta`: the hull of beta a_j and of the origin."""

    beta: float
    has_origin: ClassVar[bool] = True

    @property
    def scale(self):
        return self.beta

    def merit(self, scores):
        return np.negative(scores)

    def signs(self, scores):
        return np.ones_like(scores)

    def project(self, ids, weights):
        positive = np.maximum(weights, 0.0)
        return positive if positive.sum() <= self.beta else onto_simplex(weights, self.beta)


X, Y = regression(3, d=30, n=20)


@lru_cache
def best_value(beta, steps=5_000):
    """The optimum by plain projected gradient steps with momentum."""
    domain, bound = NonnegativeBall(beta), 2.0 * np.linalg.norm(X, 2) ** 2
    w = ahead = np.zeros(X.shape[1])
    for k in range(steps):
        new = domain.project(None, ahead - 2.0 * X.T @ (X @ ahead - Y) / bound)
        ahead, w = new + k / (k + 3.0) * (new - w), new
    return float(np.sum((Y - X @ w) ** 2))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("beta", [0.3, 100.0])  # on the border, and inside
@pytest.mark.parametrize("first_order", [False, True])
def test_weights_are_feasible_and_the_gap_is_true(step, beta, first_order, monkeypatch):
    if first_order:  # the corrective step then uses what is for thousands of atoms
        monkeypatch.setattr(ExplicitActiveSet, "sweepable", True)
    result = solve(X, Y, NonnegativeBall(beta), nodes=3, step=step, tol=1e-3, max_rounds=3_000)
    weights = result.weights
    assert weights.min() >= 0.0
    assert weights.sum() <= beta * (1 + 1e-12)
    optimum = best_value(beta)
    assert result.objective - optimum <= result.gap + 1e-9 * optimum
    if step == "corrective":
        assert result.status == "optimal"
        assert result.objective <= optimum * (1 + 1e-3)
