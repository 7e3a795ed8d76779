"""The steps of the paper, to the letter: against ten lines of NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import BETA, DOMAINS, dense_problem, frank_wolfe, iterates, make_domain


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("step", ["classic", "line-search"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_every_iterate_is_that_of_plain_frank_wolfe(domain, step, nodes):
    X, y = dense_problem(domain, seed=1, d=25, n=40)
    expected = frank_wolfe(X, y, domain, rounds=60, exact=step == "line-search")
    how = {"step": step, "tol": 1e-300, "max_rounds": 60, "nodes": nodes}
    _, seen = iterates(X, y, make_domain(domain, BETA), **how)
    assert len(seen) == 61
    for (weights, objective, gap), w in zip(seen, expected, strict=True):
        np.testing.assert_allclose(weights, w, rtol=0, atol=1e-10)
        if domain == "simplex" and not w.any():
            assert np.isnan(objective)
            assert gap == np.inf
            continue
        gradient = 2 * X.T @ (X @ w - y)
        best = gradient.min() if domain == "simplex" else -BETA * abs(gradient).max()
        assert objective == pytest.approx(np.sum((y - X @ w) ** 2), rel=1e-12)
        assert gap == pytest.approx(w @ gradient - best, rel=1e-9, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 12), st.integers(1, 15)),
    domain=st.sampled_from(DOMAINS),
    exact=st.booleans(),
    nodes=st.integers(1, 5),
)
def test_iterates_on_problems_of_any_shape(seed, shape, domain, exact, nodes):
    X, y = dense_problem(domain, seed, *shape)
    how = {"step": "line-search" if exact else "classic", "tol": 1e-300, "max_rounds": 15}
    _, seen = iterates(X, y, make_domain(domain, BETA), nodes=nodes, **how)
    expected = frank_wolfe(X, y, domain, rounds=15, exact=exact)
    for k, (weights, _, gap) in enumerate(seen):
        gradient = 2 * X.T @ (X @ expected[k] - y)
        if np.abs(gradient).max() < 1e-9 * np.abs(X.T @ y).max():
            break  # an exact fit: from here on, rounding picks the atom
        np.testing.assert_allclose(weights, expected[k], rtol=0, atol=1e-10)
        if gap < 1e-9:
            break
