"""Greedy m-centers: the same ones as by the definition, however many atoms are never compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from atomcast.atoms import kernel as kernel_module
from atomcast.atoms import l1_space
from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
from atomcast.atoms.kernel import KernelAtoms
from atomcast.data.generators import make_speech_like
from atomcast.known.kernels import sums as sums_module
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.storage import Storage
from atomcast.selection import m_centers as module
from atomcast.selection.m_centers import GreedyCenters

TIE = 1e-12


def gonzalez(D, m):
    """Centers and radius from a matrix of distances, by the definition."""
    nearest, chosen = np.full(len(D), np.inf), [0]
    while True:
        nearest = np.minimum(nearest, D[chosen[-1]])
        nearest[chosen] = -1.0
        if len(chosen) == min(m, len(D)):
            return chosen, max(nearest.max(), 0.0)
        chosen.append(int(np.argmax(nearest >= nearest.max() * (1 - TIE))))


def kernel_atoms(X, codes, kernel="rbf", costs=(10.0, 10.0), **parameters):
    code = LabelCode(len(costs), np.array(costs))
    active = KernelActiveSet(KernelSpec(kernel, **parameters), code, Storage(2**20))
    atoms = KernelAtoms(X, codes, np.arange(X.shape[0]), Storage(2**20))
    active.append([atoms.atom(0, 0)])
    atoms.follow(active)
    return atoms


def kernel_distances(K, codes, costs):
    """Between points of the augmented kernel space, from its definition."""
    other = -1.0 / (len(costs) - 1)
    augmented = np.where(codes[:, None] == codes, 1.0, other) * (K + 1.0)
    augmented += np.diag(1.0 / np.array(costs)[codes])
    lengths = np.diag(augmented)
    return np.sqrt(np.maximum(lengths[:, None] + lengths - 2 * augmented, 0.0))


def check(atoms, D, m, rows=None):
    """All centers in order, in one go and in several, and the radius at each stop."""
    rows = np.arange(len(D)) if rows is None else rows
    D = D[np.ix_(rows, rows)]
    expected, radius = gonzalez(D, m)
    greedy = GreedyCenters(atoms.space(), rows)
    greedy.grow(m)
    if m >= len(rows):  # all of them: there is nothing to compare
        expected = np.arange(len(rows))
    assert greedy.centers == rows[expected].tolist()
    assert greedy.radius == pytest.approx(radius, rel=1e-9, abs=1e-12)
    in_steps = GreedyCenters(atoms.space(), rows)
    for k in (1, m // 3, m // 2, m):
        in_steps.grow(k)
        if 0 < k < len(rows):
            assert in_steps.radius == pytest.approx(gonzalez(D, k)[1], rel=1e-9, abs=1e-12)
    if m < len(rows):
        assert in_steps.centers == greedy.centers
    else:
        assert sorted(in_steps.centers) == rows.tolist()


@pytest.fixture
def tiny(monkeypatch):
    """Compare few atoms at a time, so that small problems take every path."""
    monkeypatch.setattr(module, "PIECE", 8)
    monkeypatch.setattr(module, "FEWEST", 3)
    monkeypatch.setattr(module, "MOST_CENTERS", 4)


@pytest.fixture(params=[False, True], ids=["plain", "compiled"])
def compiled(request, monkeypatch):
    """Small problems as they are, and as if they were large."""
    if request.param:
        for where in (l1_space, sums_module, kernel_module):
            monkeypatch.setattr(where, "COMPILE_FROM", 1)
    return request.param


# Few different values, so that there are duplicates and ties of all sorts.
COLUMNS = st.integers(1, 4).flatmap(
    lambda d: st.integers(1, 40).flatmap(
        lambda n: arrays.arrays(np.float64, (d, n), elements=st.integers(-2, 2))
    )
)


def with_tiny_parts(function):
    """Hypothesis wants no fixtures that last for all examples: set and reset the sizes here."""

    def run(*args):
        kept = module.PIECE, module.FEWEST, module.MOST_CENTERS
        module.PIECE, module.FEWEST, module.MOST_CENTERS = 8, 3, 4
        try:
            function(*args)
        finally:
            module.PIECE, module.FEWEST, module.MOST_CENTERS = kept

    return run


@settings(deadline=None, max_examples=40)
@given(A=COLUMNS, m=st.integers(1, 45), kind=st.sampled_from(["dense", "sparse"]))
def test_l1_centers_are_those_of_the_definition(A, m, kind):
    atoms = DenseAtoms(A) if kind == "dense" else SparseAtoms(sparse.csc_array(A))
    with_tiny_parts(check)(atoms, cdist(A.T, A.T, "cityblock"), min(m, A.shape[1]))


@settings(deadline=None, max_examples=40)
@given(A=COLUMNS, m=st.integers(1, 45), seed=st.integers(0, 99), classes=st.integers(2, 3))
def test_centers_in_kernel_space_are_those_of_the_definition(A, m, seed, classes):
    rng = np.random.default_rng(seed)
    X, codes = A.T.copy(), rng.integers(0, classes, A.shape[1]).astype(np.uint8)
    costs = rng.choice([0.2, 1.0, 100.0], classes)
    D = kernel_distances(np.exp(-0.3 * cdist(X, X, "sqeuclidean")), codes, costs)
    atoms = kernel_atoms(X, codes, gamma=0.3, costs=costs)
    with_tiny_parts(check)(atoms, D, min(m, len(X)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_columns(tiny, compiled, dtype, order):
    A = np.random.default_rng(0).standard_normal((7, 90)).astype(dtype, order=order)
    D = cdist(A.T.astype(float), A.T.astype(float), "cityblock")
    check(DenseAtoms(A), D, 40)
    check(DenseAtoms(A), D, 20, rows=np.arange(3, 90, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_columns(tiny, compiled, dtype):
    A = sparse.random_array((30, 100), density=0.2, rng=0, format="csc").astype(dtype)
    A = sparse.hstack([A, A[:, :20]], format="csc")  # duplicates, some columns are empty
    dense = A.toarray().astype(float)
    check(SparseAtoms(A), cdist(dense.T, dense.T, "cityblock"), 60)
    check(SparseAtoms(A), cdist(dense.T, dense.T, "cityblock"), 30, rows=np.arange(20, 120))


KERNELS = {
    "rbf": ({"gamma": 0.2}, lambda X: rbf_kernel(X, gamma=0.2)),
    "laplacian": ({"gamma": 0.2}, lambda X: laplacian_kernel(X, gamma=0.2)),
    "linear": ({}, linear_kernel),
    "poly": (
        {"gamma": 0.5, "degree": 3, "coef0": 1.0},
        lambda X: polynomial_kernel(X, gamma=0.5, degree=3, coef0=1.0),
    ),
    rbf_kernel: ({}, rbf_kernel),
}


@pytest.mark.parametrize("costs", [(100.0, 100.0), (0.1, 100.0, 5.0)], ids=["binary", "three"])
@pytest.mark.parametrize("storage", ["dense", "single", "sparse"])
@pytest.mark.parametrize(
    "kernel", KERNELS, ids=lambda kernel: kernel if isinstance(kernel, str) else "function"
)
def test_kernels(tiny, compiled, kernel, storage, costs):
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((70, 6)) * (rng.random((70, 6)) < 0.6), 2)
    X[60:] = X[:10]
    codes = rng.integers(0, len(costs), 70).astype(np.uint8)
    if storage == "single":
        X = X.astype(np.float32)
        kernel = "rbf" if callable(kernel) else kernel  # scikit-learn's would be less exact
    parameters, function = KERNELS[kernel]
    D = kernel_distances(function(X.astype(float)), codes, costs)
    points = sparse.csr_array(X) if storage == "sparse" else X
    check(kernel_atoms(points, codes, kernel, costs, **parameters), D, 35)


@pytest.mark.parametrize("storage", [sparse.csr_array, np.asarray])
def test_binary_points_are_tied_for_most_places(tiny, compiled, storage):
    rng = np.random.default_rng(2)
    X = (rng.random((150, 70)) < 0.1).astype(float)
    X[:, 3:] = 0
    X[:, 64:] = rng.random((150, 6)) < 0.5  # a second word of bits
    codes = rng.integers(0, 2, 150).astype(np.uint8)
    D = kernel_distances(rbf_kernel(X, gamma=0.1), codes, (10.0, 10.0))
    check(kernel_atoms(storage(X), codes, gamma=0.1), D, 50)


def test_speech_like_data_needs_every_digit(compiled):
    """Single precision alone would change the order of centers that are nearly tied."""
    data = make_speech_like(1_500, random_state=3)
    codes, X = (data.y > 0).astype(np.uint8), data.X.astype(float)
    D = kernel_distances(np.exp(-0.002 * cdist(X, X, "sqeuclidean")), codes, (100.0, 100.0))
    check(kernel_atoms(data.X, codes, gamma=0.002, costs=(100.0, 100.0)), D, 200)


@pytest.mark.parametrize("shift", [0.0, 1e4, 1e18])
def test_far_from_the_origin_and_beyond_single_precision(tiny, monkeypatch, shift):
    for where in (sums_module, kernel_module):
        monkeypatch.setattr(where, "COMPILE_FROM", 1)
    rng = np.random.default_rng(4)
    X = rng.integers(-8, 8, (100, 3)) * max(shift / 1e4, 1.0) + shift
    codes, gamma = np.zeros(100, dtype=np.uint8), 0.01 / max(shift / 1e4, 1.0) ** 2
    D = kernel_distances(np.exp(-gamma * cdist(X, X, "sqeuclidean")), codes, (10.0, 10.0))
    check(kernel_atoms(X, codes, gamma=gamma), D, 40)


def test_not_all_atoms_are_compared_with_all_centers(monkeypatch):
    """Those that are near a center early on are not looked at again for long."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((4, 20))[:, rng.integers(0, 20, 2000)]
    A += 0.1 * rng.standard_normal(A.shape)
    pairs, nearest = 0, l1_space.DenseSpace.nearest

    def counted(self, others):
        nonlocal pairs
        pairs += len(self.rows) * len(others.rows)
        return nearest(self, others)

    monkeypatch.setattr(l1_space.DenseSpace, "nearest", counted)
    monkeypatch.setattr(module, "MOST", 100)
    greedy = GreedyCenters(DenseAtoms(A).space(), np.arange(2000))
    greedy.grow(200)
    assert pairs < 0.8 * 2000 * 200
    D = cdist(A.T, A.T, "cityblock")
    assert greedy.centers == gonzalez(D, 200)[0]


def test_duplicates_do_not_become_centers_twice():
    A = np.ones((3, 10))
    greedy = GreedyCenters(DenseAtoms(A).space(), np.arange(10))
    greedy.grow(4)
    assert greedy.centers == [0, 1, 2, 3]
    assert greedy.radius == 0.0
    greedy.grow(10)
    assert sorted(greedy.centers) == list(range(10))


def test_nothing_to_choose_from():
    greedy = GreedyCenters(DenseAtoms(np.ones((3, 4))).space(), np.zeros(0, dtype=np.int64))
    greedy.grow(3)
    assert greedy.centers == []
    assert greedy.radius == 0.0


@pytest.mark.parametrize("exponent", [-37, -25, -20, 0, 15, 18, 22, 30, 37])
def test_what_single_precision_cannot_hold_is_not_passed_over(monkeypatch, exponent):
    for where in (sums_module, kernel_module):
        monkeypatch.setattr(where, "COMPILE_FROM", 1)
    rng = np.random.default_rng(6)
    scale, d = 10.0**exponent, 6
    X = (rng.standard_normal((160, d)) + rng.choice([0.0, 5.0], (160, 1))) * scale
    codes = rng.integers(0, 2, 160).astype(np.uint8)
    space = kernel_atoms(X, codes, gamma=0.1 / scale**2).space()
    assert space.how == "compiled"
    some, others = np.arange(100), np.arange(100, 160)
    far = rng.random(100) < 0.5
    found = space.take(some)._extremes(space.take(others), far)
    D = cdist(X[some], X[others], "sqeuclidean")
    np.testing.assert_allclose(found, np.where(far, D.max(axis=1), D.min(axis=1)), rtol=1e-12)


def test_distances_that_overflow_are_refused():
    codes = np.zeros(30, dtype=np.uint8)
    X = np.random.default_rng(7).standard_normal((30, 2)) * 1e90
    greedy = GreedyCenters(kernel_atoms(X, codes, kernel="poly").space(), np.arange(30))
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="not finite: their values are too large"),
    ):
        greedy.grow(5)
