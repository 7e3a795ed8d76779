"""One contract for every kind of atoms: score them all, hand one out, copy nothing."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from atomcast.atoms.explicit import PIECE, DenseAtoms, SparseAtoms, explicit_atoms
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.columns import DenseColumns, SparseColumns, with_appended
from atomcast.loop.replica import Replica, Tolerance
from atomcast.messages.atom import Atom, same
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.steps import Classic
from problems import regression, solve


def messy(X):
    """The same matrix as CSC with unsorted rows, stored zeros and entries in two parts."""
    d, n = X.shape
    data, indices, starts = [], [], [0]
    for j in range(n):
        rows = np.arange(d)[::-1]
        data += [*(0.5 * X[rows, j]), *(0.5 * X[rows, j])]
        indices += [*rows, *rows]
        starts.append(len(data))
    return sparse.csc_matrix((data, indices, starts), shape=(d, n))


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "C single": lambda X: np.ascontiguousarray(X, dtype=np.float32),
    "F single": lambda X: np.asfortranarray(X, dtype=np.float32),
    "csc": sparse.csc_array,
    "csc single": lambda X: sparse.csc_array(X.astype(np.float32)),
    "csr": sparse.csr_matrix,
    "messy": messy,
    "falling": lambda X: sparse.csc_array(X) @ sparse.diags_array(np.ones(X.shape[1])),
}


@pytest.fixture
def data():
    X, y = regression(seed=1, d=17, n=23)
    X *= np.random.default_rng(2).random(X.shape) < 0.5
    X[:, 4] = 0.0
    return X.astype(np.float32).astype(np.float64), y  # exact in single precision too


def replica_of(y):
    return Replica(explicit_problem(SquaredError(y), L1Ball(1.0)), Classic(), Tolerance(1e-4))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_are_products_with_the_gradient(layout, data):
    X, y = data
    atoms = explicit_atoms(Shards.split(LAYOUTS[layout](X), 1).shard(0))
    assert (atoms.d, atoms.n) == X.shape
    scores = atoms.scores(replica_of(y))
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, -2 * X.T @ y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_atom_is_its_column(layout, data):
    X, _ = data
    names = [f"x{j}" for j in range(23)]
    shard = Shards.split(LAYOUTS[layout](X), 1, names=names).shard(0)
    atoms = explicit_atoms(shard)
    for j in (0, 4, 7, 22):
        atom = atoms.atom(j, 100 + j)
        assert (atom.id, atom.d, atom.name) == (100 + j, 17, f"x{j}")
        np.testing.assert_allclose(atom.dense(), X[:, j], atol=1e-15)
        assert atom.values.dtype == (np.float32 if "single" in layout else np.float64)
        if sparse.issparse(shard.matrix):
            assert atom.count == np.count_nonzero(X[:, j])  # stored zeros are not sent
            assert np.all(np.diff(atom.indices) > 0)
        else:
            assert atom.count == 17


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_fit(layout, data):
    X, y = data
    expected = solve(X, y, L1Ball(1.0), nodes=3, tol=1e-8)
    result = solve(LAYOUTS[layout](X), y, L1Ball(1.0), nodes=3, tol=1e-8)
    np.testing.assert_allclose(result.weights, expected.weights, atol=1e-9)
    assert result.rounds == expected.rounds


def test_only_columns_that_are_handed_out_are_turned_round(data):
    X, y = data
    falling = LAYOUTS["falling"](X)
    shards = Shards.split(falling, 1)
    shard = shards.shard(0, falling=True)
    assert shard.falls
    assert shard.matrix is falling
    assert not shards.shard(0).falls
    as_usual, atoms = explicit_atoms(shards.shard(0)), explicit_atoms(shard)
    replica, places = replica_of(y), np.array([7, 4, 0, 22])
    np.testing.assert_allclose(atoms.scores(replica), as_usual.scores(replica), atol=1e-12)
    for found, expected in ((atoms, as_usual), (atoms.take(places), as_usual.take(places))):
        ids = list(range(found.n))
        batches = found.batch(np.array(ids), ids), expected.batch(np.array(ids), ids)
        assert batches[0].values.flags.c_contiguous
        assert all(map(same, *batches))
        assert all(same(found.atom(j, j), expected.atom(j, j)) for j in ids)
        indices = [columns.space().parts[1] for columns in (found, expected)]
        np.testing.assert_array_equal(*indices)


def test_rising_columns_do_not_fall(data):
    assert not Shards.split(sparse.csc_array(data[0]), 1).shard(0, falling=True).falls
    assert not Shards.split(messy(data[0]), 1).shard(0, falling=True).falls


@pytest.mark.parametrize("order", ["C", "F"])
def test_single_precision_is_widened_piece_by_piece(order):
    """More than one piece, and accumulated in double precision."""
    rng = np.random.default_rng(3)
    X = np.asarray(rng.standard_normal((300, PIECE // 100)), dtype=np.float32, order=order)
    vector = rng.standard_normal(300)
    expected = vector @ X.astype(np.float64)
    np.testing.assert_allclose(DenseAtoms(X).products(vector), expected, rtol=1e-12, atol=1e-12)


def test_dense_data_in_one_piece_is_not_copied(data):
    X, y = data
    for matrix in (X, np.asfortranarray(X)):
        session = explicit_problem(SquaredError(y), L1Ball(1.0))
        atoms = session.make_atoms(Shards.split(matrix, 1, by="contiguous").shard(0))
        assert np.shares_memory(atoms.matrix, matrix)


def test_empty_shards(data):
    X, y = data
    for matrix in (X[:, :0], sparse.csc_array(X)[:, :0]):
        atoms = (SparseAtoms if sparse.issparse(matrix) else DenseAtoms)(matrix)
        assert atoms.scores(replica_of(y)).shape == (0,)


# -- the store of known atoms -------------------------------------------------------------------


def sparse_atom(id, column):
    rows = np.flatnonzero(column)
    return Atom(id, len(column), column[rows], rows.astype(np.int32))


@pytest.mark.parametrize("kind", ["dense", "sparse", "first sparse, then dense", "single"])
def test_stores_of_columns(kind, data):
    X, _ = data
    rng = np.random.default_rng(4)
    store = None
    for start, stop in ((0, 1), (1, 9), (9, 23)):
        batch = []
        for j in range(start, stop):
            if kind == "sparse" or (kind.startswith("first") and j < 9):
                batch.append(sparse_atom(j, X[:, j]))
            else:
                values = X[:, j].astype(np.float32 if kind == "single" else np.float64)
                batch.append(Atom(j, 17, values))
        store = with_appended(store, 17, batch)
        A, weights, vector = X[:, :stop], rng.standard_normal(stop), rng.standard_normal(17)
        block = rng.standard_normal((17, 4))
        assert store.count == stop
        np.testing.assert_allclose(store.combine(weights), A @ weights, atol=1e-12)
        np.testing.assert_allclose(store.scores(vector), A.T @ vector, atol=1e-12)
        np.testing.assert_allclose(store.products(block), A.T @ block, atol=1e-12)
        np.testing.assert_allclose(store.block(start, stop), X[:, start:stop], atol=1e-12)
    assert isinstance(store, SparseColumns if kind == "sparse" else DenseColumns)


def test_an_atom_that_comes_twice_is_an_error(data):
    X, y = data
    active = ExplicitActiveSet(SquaredError(y))
    active.append([Atom(3, 17, X[:, 3].copy())])
    assert 3 in active
    assert 4 not in active
    with pytest.raises(ValueError, match="atom 3 was broadcast twice"):
        active.append([Atom(3, 17, X[:, 3].copy())])


def test_an_active_set_follows_its_weights(data):
    X, y = data
    rng = np.random.default_rng(5)
    active = ExplicitActiveSet(SquaredError(y))
    assert active.value() == pytest.approx(float(y @ y))
    assert active.inner() == 0.0
    assert len(active.scores()) == 0
    active.append([Atom(j, 17, X[:, j].copy()) for j in range(20)])
    assert not active.weights.any()
    w = rng.standard_normal(20)
    active.set_weights(w)
    change = rng.standard_normal(20)
    active.move(change, 0.3)
    w = w + 0.3 * change
    gradient = 2 * X[:, :20].T @ (X[:, :20] @ w - y)
    np.testing.assert_allclose(active.weights, w)
    np.testing.assert_allclose(active.image, X[:, :20] @ w)
    np.testing.assert_allclose(active.scores(), gradient)
    assert active.inner() == pytest.approx(w @ gradient)
    step = active.search(-gradient, 10.0)
    direction = X[:, :20] @ -gradient
    best = direction @ (y - X[:, :20] @ w) / (direction @ direction)
    assert step == pytest.approx(min(best, 10.0))
    ids, weights = active.support()
    assert ids.tolist() == list(range(20))
    weights[:] = 0.0  # a copy
    assert active.weights.any()


def test_atoms_are_compared_bit_by_bit(data):
    X, _ = data
    a = Atom(1, 17, X[:, 1].copy())
    assert same(a, Atom(1, 17, X[:, 1].copy()))
    assert not same(a, Atom(2, 17, X[:, 1].copy()))
    assert not same(a, Atom(1, 17, X[:, 1].astype(np.float32)))
    assert not same(a, sparse_atom(1, X[:, 1]))


@pytest.mark.parametrize("watched", [False, True])
def test_dense_columns_grow_in_place_unless_somebody_looks_at_them(watched):
    store, values = DenseColumns(20_000), np.arange(20_000.0)
    tracemalloc.start()
    seen = []
    for j in range(300):
        store.append([Atom(j, 20_000, values + j)])
        if watched:
            seen.append(store.block(j, j + 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(store.block(0, 300), values[:, None] + np.arange(300))
    for j, column in enumerate(seen):
        np.testing.assert_array_equal(column[:, 0], values + j)
    assert watched or peak < 1.2 * 8 * store.stored
