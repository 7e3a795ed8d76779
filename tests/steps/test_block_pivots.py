"""The quick inner solver of few atoms: exact where it succeeds, and harmless where it does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast.domains.balls import L1Ball
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom
from atomcast.objectives import SquaredError
from atomcast.steps.inner import block_pivots, choice
from atomcast.steps.inner.block_pivots import RIDGE, minimise_by_pivots, solutions
from problems import DOMAINS, make_domain, mixture, optimum, regression


def known_atoms(X, y):
    """An active set that knows every column of X."""
    active = ExplicitActiveSet(SquaredError(y))
    active.append([Atom(j, len(y), X[:, j].astype(np.float64)) for j in range(X.shape[1])])
    return active


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 15),
    n=st.integers(1, 25),
    domain=st.sampled_from(DOMAINS),
    beta=st.sampled_from([1e-6, 0.01, 0.3, 1.0, 3.0, 30.0, 1e3]),
)
def test_what_it_finds_is_the_optimum_and_what_it_does_not_it_leaves(seed, d, n, domain, beta):
    X, y = regression(seed, d, n) if domain == "l1" else mixture(seed, d, n)
    domain, active = make_domain(domain, beta), known_atoms(X, y)
    active.set_weights(np.eye(n)[0] * domain.scale * float(not domain.has_origin))
    target = 1e-9 * float(y @ y)
    if minimise_by_pivots(domain, active, target):
        total = np.abs(active.weights).sum()
        assert total <= domain.scale * (1 + 1e-12)
        assert isinstance(domain, L1Ball) or (active.weights.min() >= 0.0 and total > 1 - 1e-12)
        assert active.value() <= optimum(X, y, domain)[0] + 1e-8 * float(y @ y)
    else:
        assert np.count_nonzero(active.weights) <= 1


@pytest.mark.parametrize("beta", [0.3, 3.0, 30.0])
def test_independent_columns_need_no_other_method(beta):
    X, y = regression(0, 80, 60)
    assert minimise_by_pivots(L1Ball(beta), known_atoms(X, y), 1e-9 * float(y @ y))


@pytest.mark.parametrize("rest", [-1e-14, 0.0, 1e-14])  # rounding may leave anything of them
def test_of_equal_columns_the_first_ones_carry_the_weights(rest):
    X, y = regression(1, 20, 5)
    active, domain = known_atoms(np.hstack([X, -X]), y), L1Ball(5.0)
    active.kept_products.extend(active)
    matrix = active.kept_products.matrix
    matrix[range(10), range(10)] *= 1.0 + rest
    assert minimise_by_pivots(domain, active, 1e-9 * float(y @ y))
    assert active.value() <= optimum(X, y, domain)[0] + 1e-8 * float(y @ y)
    assert not active.weights[5:].any()


@pytest.mark.parametrize("beta", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("seed", range(3))
def test_sums_that_are_sums_of_others_need_no_other_method(seed, beta):
    """The columns of a category add up to one, whatever the category."""
    rng = np.random.default_rng(seed)
    X = np.hstack([np.eye(k)[rng.integers(0, k, 60)] for k in (2, 3, 4)])
    y = X @ rng.standard_normal(9) + 0.1 * rng.standard_normal(60)
    active, domain = known_atoms(X, y), L1Ball(beta)
    active.kept_products.extend(active)
    known = domain, active.kept_products.matrix, active.weights, active.scores()
    active.set_weights(next(solutions(*known, 1e-9 * float(y @ y), ridge=RIDGE)))
    assert np.abs(active.weights).sum() <= beta * (1 + 1e-12)
    assert active.value() <= optimum(X, y, domain)[0] + 1e-8 * float(y @ y)


def test_where_there_is_room_for_all_one_face_does_whatever_their_signs(monkeypatch):
    """Both columns point to the target, but the second is to take away from the first."""
    solved, solve = [], block_pivots.dposv
    monkeypatch.setattr(block_pivots, "dposv", lambda *a, **k: solved.append(a) or solve(*a, **k))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2)) @ np.array([[1.0, 1.0], [0.0, 0.3]])
    y = X @ np.array([3.0, -2.0])
    active = known_atoms(X, y)
    active.kept_products.extend(active)
    assert np.ptp(np.sign(active.scores())) == 0.0
    known = active.kept_products.matrix, active.weights, active.scores()
    found = next(solutions(L1Ball(5.5), *known, 1e-9))
    np.testing.assert_allclose(found, [3.0, -2.0], rtol=1e-9)
    assert len(solved) == 1
    tight = next(solutions(L1Ball(4.0), *known, 1e-9))
    assert np.abs(tight).sum() <= 4.0 * (1 + 1e-12)
    assert len(solved) > 2


@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_as_long_as_faces_get_better_more_are_tried(seed, share):
    """Many categories take more faces than any fixed number that others would be in vain with."""
    rng = np.random.default_rng(seed)
    X = np.hstack([np.eye(k)[rng.integers(0, k, 600)] for k in (10, 20, 30, 40, 50)])
    y = X @ rng.standard_normal(150) + 0.5 * rng.standard_normal(600)
    beta = share * float(np.abs(np.linalg.lstsq(X, y)[0]).sum())
    active, domain = known_atoms(X, y), L1Ball(beta)
    active.kept_products.extend(active)
    known = domain, active.kept_products.matrix, active.weights, active.scores()
    active.set_weights(next(solutions(*known, 1e-9 * float(y @ y), ridge=RIDGE)))
    assert np.abs(active.weights).sum() <= beta * (1 + 1e-12)
    gap = domain.gap(active.inner(), float(domain.merit(active.scores()).max()))
    assert gap <= 1e-8 * float(y @ y)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_not_easy_is_left_to_the_careful_method(seed):
    """More columns than they have entries, and a ball that leaves them nearly no loss."""
    X, y = regression(seed, 4, 8)
    y = X @ np.ones(8)
    active, domain = known_atoms(X, y), L1Ball(7.0)
    assert not minimise_by_pivots(domain, active, 1e-9 * float(y @ y))
    assert not active.weights.any()
    choice.Quadratic(domain).minimise(active, 1e-9 * float(y @ y))
    assert active.value() <= optimum(X, y, domain)[0] + 1e-8 * float(y @ y)


def test_a_simplex_without_weights_has_no_face_to_begin_with():
    X, y = np.array([[1.0, 2.0]]), np.array([-1.0])
    active = known_atoms(X, y)
    assert not minimise_by_pivots(make_domain("simplex"), active, 1.0)
    assert not active.weights.any()


@pytest.mark.parametrize("beta", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("way", ["BOLD", "MILD"])
def test_either_way_alone_leads_to_the_optimum(monkeypatch, way, beta):
    X, y = regression(2, 80, 60)
    monkeypatch.setattr(block_pivots, way, 0)
    active = known_atoms(X, y)
    assert minimise_by_pivots(L1Ball(beta), active, 1e-9 * float(y @ y))
    assert active.value() <= optimum(X, y, L1Ball(beta))[0] + 1e-8 * float(y @ y)
