"""Atoms that are handed out and received in one piece are those that come one by one."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import same
from atomcast.objectives import SquaredError


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "sparse", "zeros"])
@pytest.mark.parametrize("names", [None, tuple("abcdef")])
def test_a_batch_is_its_atoms(dtype, order, names):
    X = np.asarray(np.random.default_rng(0).standard_normal((5, 6)), dtype=dtype)
    X[np.abs(X) < 0.5] = 0.0
    X[:, 3] = 0.0
    if order in "CF":
        atoms = DenseAtoms(np.asarray(X, order=order), names)
    else:
        stored = sparse.csc_array(X)
        if order == "zeros":  # as scipy may store them
            stored.data[::3] = 0.0
        atoms = SparseAtoms(stored, names)
    places = np.array([4, 0, 3])
    batch = atoms.batch(places, [14, 10, 13])
    one_by_one = [atoms.atom(j, 10 + j) for j in places.tolist()]
    assert len(batch) == 3
    assert all(map(same, batch, one_by_one))
    assert all(map(same, batch[1:], one_by_one[1:]))
    assert same(batch[-1], one_by_one[-1])
    assert all(atom.values.flags.c_contiguous for atom in batch)
    (atoms.matrix if order in "CF" else atoms.matrix.data)[:] = 0.0  # what was sent stays
    assert all(map(same, batch, one_by_one))


@pytest.mark.parametrize("make", [DenseAtoms, lambda X: SparseAtoms(sparse.csc_array(X))])
def test_an_active_set_takes_a_batch_as_it_takes_atoms(make):
    X, y = np.random.default_rng(1).standard_normal((5, 6)), np.ones(5)
    X[::2, ::3] = 0.0
    held = make(X)
    batch = held.batch(np.arange(6), list(range(6)))
    whole, single = ExplicitActiveSet(SquaredError(y)), ExplicitActiveSet(SquaredError(y))
    for part in (batch[:2], held.batch(np.arange(2, 6), batch.ids[2:])):
        whole.append(part)
    single.append(list(batch))
    assert whole.ids == single.ids
    assert whole.position == single.position
    np.testing.assert_array_equal(whole.products(0, 6), single.products(0, 6))
    with pytest.raises(ValueError, match="atom 3 was broadcast twice"):
        whole.append(held.batch(np.array([3]), [3]))


def test_sparse_atoms_in_one_piece_join_dense_ones():
    X, y = np.random.default_rng(2).standard_normal((5, 6)), np.ones(5)
    active = ExplicitActiveSet(SquaredError(y))
    active.append(SparseAtoms(sparse.csc_array(X)).batch(np.arange(2), [0, 1]))
    active.append(DenseAtoms(X).batch(np.arange(2, 4), [2, 3]))
    active.append(SparseAtoms(sparse.csc_array(X)).batch(np.arange(4, 6), [4, 5]))
    dense = ExplicitActiveSet(SquaredError(y))
    dense.append(DenseAtoms(X).batch(np.arange(6), list(range(6))))
    np.testing.assert_allclose(active.products(0, 6), dense.products(0, 6))
