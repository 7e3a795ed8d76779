"""What every domain promises: its vertices, the linear minimiser among them, and the gap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from atomcast.domains.balls import Domain, L1Ball, Simplex, onto_simplex
from problems import DOMAINS, make_domain


def vertices(domain, n):
    """Every vertex of the domain in n dimensions, as rows."""
    eye = domain.scale * np.eye(n)
    return np.vstack([eye, -eye]) if isinstance(domain, L1Ball) else eye


def scores_of(seed, n):
    """Random scores, zeros and ties among them."""
    return np.random.default_rng(seed).integers(-3, 4, n) * 0.7


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(DOMAINS), st.integers(0, 10**6), st.integers(1, 12))
def test_the_vertex_of_the_best_atom_minimises_the_linear_function(name, seed, n):
    domain, scores = make_domain(name, 2.5), scores_of(seed, n)
    merit = domain.merit(scores)
    best = int(np.argmax(merit))
    vertex = np.zeros(n)
    vertex[best] = domain.scale * domain.signs(scores[best : best + 1])[0]
    costs = vertices(domain, n) @ scores
    assert any((vertex == row).all() for row in vertices(domain, n))
    assert vertex @ scores == pytest.approx(costs.min())
    assert -domain.scale * merit[best] == pytest.approx(costs.min())


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(DOMAINS), st.integers(0, 10**6), st.integers(1, 12))
def test_the_gap_is_the_largest_linear_decrease(name, seed, n):
    domain, scores = make_domain(name, 2.5), scores_of(seed, n)
    alpha = np.random.default_rng(seed).dirichlet(np.ones(len(vertices(domain, n))))
    alpha = alpha @ vertices(domain, n)
    gap = domain.gap(float(alpha @ scores), float(domain.merit(scores).max()))
    expected = max(((alpha - row) @ scores) for row in vertices(domain, n))
    assert gap == pytest.approx(max(expected, 0.0), abs=1e-12)


@pytest.mark.parametrize("name", DOMAINS)
def test_the_contract(name):
    domain = make_domain(name)
    assert isinstance(domain, Domain)
    assert domain.has_origin is (name == "l1")
    assert set(domain.signs(np.array([-1.0, 0.0, 2.0])).tolist()) <= {-1.0, 1.0}


def test_signs_go_against_the_gradient():
    assert L1Ball(1.0).signs(np.array([-2.0, 0.0, 3.0])).tolist() == [1.0, 1.0, -1.0]
    assert Simplex().signs(np.array([-2.0, 0.0, 3.0])).tolist() == [1.0, 1.0, 1.0]


def test_gaps_are_never_negative():
    assert L1Ball(1.0).gap(-1e-18, 0.0) == 0.0
    assert Simplex().gap(-1.0, 1.0 - 1e-17) == 0.0
    # Nobody proposes anything: the origin is still there.
    assert L1Ball(1.0).gap(0.5, -np.inf) == 0.5


@pytest.mark.parametrize("beta", [0, 0.0, -1, -1e-9, np.nan, np.inf, "1", None, True, [1.0]])
def test_a_bad_radius(beta):
    with pytest.raises(ValueError, match="beta must be a finite number > 0") as error:
        L1Ball(beta)
    assert repr(beta) in str(error.value)


@pytest.mark.parametrize("beta", [1, 2.5, np.float32(0.5), np.int64(3)])
def test_good_radii(beta):
    assert L1Ball(beta).scale == float(beta)


@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_projection_takes_the_same_from_all_that_stay(count):
    rng = np.random.default_rng(count)
    for total in (0.1, 1.0, 5.0):
        weights = rng.exponential(size=count) * rng.choice([0.1, 1.0, 10.0], count)
        weights *= max(1.0, 2.0 * total / weights.sum())

        def too_much(loss, weights=weights, total=total):
            return np.maximum(weights - loss, 0.0).sum() - total

        expected = np.maximum(weights - brentq(too_much, 0.0, weights.max()), 0.0)
        np.testing.assert_allclose(onto_simplex(weights, total), expected, atol=1e-10)
