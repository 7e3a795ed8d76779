"""What a certificate is worth: gaps and optima worked out without atomcast."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Lasso as PenalisedLasso

from problems import regression, sparse_regression


def lasso_problem(seed, d=30, n=60, penalty=0.1, sparse_data=False):
    """Data, a radius, and the optimum within it, which scikit-learn has found by a penalty."""
    if sparse_data:
        X, y = sparse_regression(seed, d=2 * d, n=n, density=0.2)
    else:
        X, y = regression(seed, d, n, support=8)
    reference = PenalisedLasso(
        alpha=penalty * float(np.abs(X.T @ y).max()) / len(y),
        fit_intercept=False,
        tol=1e-13,
        max_iter=1_000_000,
    ).fit(X, y)
    beta = float(np.abs(reference.coef_).sum())
    return X, y, beta, float(np.sum((y - X @ reference.coef_) ** 2))


def true_gap(X, y, weights, beta):
    """The duality gap over all atoms, from the definition in Algorithm 1."""
    gradient = -2.0 * (X.T @ (y - X @ weights))
    return float(weights @ gradient + beta * np.abs(gradient).max())


def assert_certified(result, X, y, beta, best, tol):
    """The run has ended within the tolerance, and what it says of itself is true."""
    weights = result.weights
    objective = float(np.sum((y - X @ weights) ** 2))
    scale = float(y @ y)
    assert result.status == "optimal"
    assert result.relative_gap <= tol
    assert np.abs(weights).sum() <= beta * (1 + 1e-9)
    np.testing.assert_allclose(result.objective, objective, rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(result.gap, true_gap(X, y, weights, beta), atol=1e-9 * scale)
    assert objective - best <= result.gap + 1e-9 * scale
    assert objective >= best - 1e-9 * scale


def assert_sent_once(result):
    """No atom has left its node twice."""
    sent = [disclosure.atom for disclosure in result.ledger.disclosures]
    assert len(sent) == len(set(sent))
