"""Candidates that better ones make superfluous, and batches by what a round costs."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.columns import SparseColumns
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.storage import Storage
from atomcast.messages.atom import Atom
from atomcast.objectives import Logistic, SquaredError
from atomcast.steps.inner.corral import Corral
from atomcast.steps.thinning import Thinning, cheapest_batch, dearness
from problems import dense_problem, make_domain, regression

FIRST, MORE = 12, 5


def atoms_of(X):
    held = SparseAtoms(X) if sparse.issparse(X) else DenseAtoms(X)
    return [held.atom(j, j) for j in range(X.shape[1])]


def solved(active, domain):
    """The active set at the best weights over what it knows."""
    Corral(domain).minimise(active, 1e-12)
    return active


def known_and_new(domain, radius=1.5, seed=0):
    """An active set at its best weights, the atoms that it does not know, and all data."""
    X, y = dense_problem(domain, seed, d=20, n=FIRST + MORE)
    atoms, where = atoms_of(X), make_domain(domain, radius)
    active = ExplicitActiveSet(SquaredError(y))
    active.append(atoms[:FIRST])
    return solved(active, where), where, atoms, X


# -- products ---------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize(
    "objective",
    [SquaredError, lambda y: SquaredError(y, True), lambda y: Logistic(np.sign(y), True)],
    ids=["squared", "with intercept", "logistic"],
)
def test_products_with_columns_are_those_after_they_have_come(objective, layout):
    X, y = regression(seed=1, d=15, n=FIRST + MORE)
    atoms, active = atoms_of(layout(X)), ExplicitActiveSet(objective(y))
    alone = active.products_with(atoms)
    active.append(atoms[:FIRST])
    before = active.products_with(atoms[FIRST:])
    active.append(atoms[FIRST:])
    np.testing.assert_allclose(before, active.products(FIRST, FIRST + MORE), atol=1e-12)
    np.testing.assert_allclose(alone, active.products(0, FIRST + MORE), atol=1e-12)


def test_products_of_columns_with_few_nonzeros_need_no_dense_block(monkeypatch):
    rng = np.random.default_rng(2)
    X = np.where(rng.random((5000, 60)) < 0.02, rng.standard_normal((5000, 60)), 0.0)
    X[:, 3] = 1.0  # an intercept makes nothing of it
    active = ExplicitActiveSet(SquaredError(rng.standard_normal(5000), fit_intercept=True))
    active.append(atoms_of(sparse.csc_array(X)))
    monkeypatch.delattr(SparseColumns, "block")
    centred = X - X.mean(axis=0)
    expected = active.objective.curvature(active.image).diagonal * (centred.T @ centred[:, 20:])
    np.testing.assert_allclose(active.products(20, 60), expected, atol=1e-10)


def test_products_with_points_are_those_after_they_have_come():
    rng = np.random.default_rng(0)
    points, labels = rng.standard_normal((FIRST + MORE, 4)), rng.integers(0, 3, FIRST + MORE)
    atoms = [
        Atom(k, 4, points[k], extras=np.array([float(labels[k])])) for k in range(FIRST + MORE)
    ]
    code = LabelCode(3, np.full(3, 10.0))
    active = KernelActiveSet(KernelSpec("rbf", gamma=0.3), code, Storage(1 << 20, np.float64))
    active.append(atoms[:FIRST])
    before = active.products_with(atoms[FIRST:])
    active.append(atoms[FIRST:])
    np.testing.assert_allclose(before, active.products(FIRST, FIRST + MORE), atol=1e-12)


# -- which candidates -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("domain", "radius"), [("l1", 1.5), ("l1", 1e3), ("simplex", 1.0)])
def test_products_are_without_what_the_vertices_in_use_make_up(domain, radius, seed):
    """Beside a least-squares fit: by shares that add up to one, or any where the origin is free."""
    active, where, atoms, X = known_and_new(domain, radius, seed)
    scores = X[:, FIRST:].T @ active.gradient
    used = np.flatnonzero(active.weights)
    vertices = X[:, used] * np.sign(active.weights[used])
    new = X[:, FIRST:] * where.signs(scores)
    if radius < 1e3:
        vertices, new = vertices[:, 1:] - vertices[:, :1], new - vertices[:, :1]
    left = new - vertices @ np.linalg.lstsq(vertices, new)[0]
    products = active.products_with(atoms[FIRST:])
    found = Thinning(active, where)._unexplained(products, scores)
    np.testing.assert_allclose(found, 2.0 * left.T @ left, atol=1e-7)


def test_of_equal_atoms_one_is_of_use_and_of_orthogonal_ones_all_are():
    X = np.eye(6)[:, [0, 1, 1, 2, 1]]
    y = np.array([1.0, 0.9, 0.8, 0.0, 0.0, 0.0])
    active, where = ExplicitActiveSet(SquaredError(y)), L1Ball(10.0)
    scores = X.T @ active.gradient
    taken = Thinning(active, where).of_use(atoms_of(X), scores, 1.0, 3)
    assert taken.tolist() == [0, 1, 3]
    assert Thinning(active, where).of_use(atoms_of(X)[:1], scores[:1], 1.0, 3).tolist() == [0]
    assert Thinning(active, where).of_use([], scores[:0], 1.0, 3).tolist() == []


def test_what_is_foreseen_is_what_happens():
    """The slopes after the first has joined, where that changes no sign."""
    active, where, atoms, X = known_and_new("l1", 1e3, seed=3)
    scores = X[:, FIRST:].T @ active.gradient
    taken = Thinning(active, where).of_use(atoms[FIRST:], scores, 1.0, 3)
    active.append([atoms[FIRST + taken[0]]])
    after = np.abs(X[:, FIRST:].T @ solved(active, where).gradient)
    left_out = np.setdiff1d(np.arange(MORE), taken)
    assert np.all(after[left_out] < np.abs(scores).max())
    if len(taken) > 1:
        best_after = after[taken[1:]].max()
        assert best_after >= 0.4 * np.abs(scores).max() - 1e-9


def test_the_dearer_rounds_are_the_more_candidates_join():
    X, y = regression(seed=1, d=20, n=30)
    active, where = ExplicitActiveSet(SquaredError(y)), L1Ball(1e3)
    scores, atoms = X.T @ active.gradient, atoms_of(X)
    taken = [
        len(Thinning(active, where).of_use(atoms, scores, dearness(price), 3))
        for price in (1, 1e2, 1e4)
    ]
    assert taken == sorted(taken)
    assert taken[0] < taken[-1]


def test_vertices_that_depend_on_each_other():
    """Equal columns may both have weights; the factor must not break on them."""
    X = np.repeat(np.eye(4), 2, axis=1)[:, :6]
    y = np.array([3.0, 2.0, 1.0, 0.5])
    active = ExplicitActiveSet(SquaredError(y))
    active.append(atoms_of(X)[:4])
    active.set_weights(np.array([0.4, 0.4, 0.1, 0.1]))
    taken = Thinning(active, Simplex()).of_use(atoms_of(X)[4:], np.array([-9.0, -9.0]), 1.0, 3)
    assert taken.tolist() == [0]


# -- batches ----------------------------------------------------------------------------------


def test_the_cheapest_batch():
    assert cheapest_batch(1.0, 0.5, most=100) == 3  # the square root of 1 / (1 / 10)
    assert cheapest_batch(100.0, 0.5, most=100) == 31
    assert cheapest_batch(100.0, 1.0, most=100) == 100
    assert cheapest_batch(np.inf, 0.5, most=7) == 7
    assert cheapest_batch(1e-9, 0.5, most=7) == 1
    assert cheapest_batch(5.0, 0.0, most=np.inf) == 10  # at the start, a third is in vain
