"""Atoms that are handed out and received in one piece are those that come one by one."""

import numpy as np
import pytest

from atomcast.atoms.explicit import DenseAtoms
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import AtomBatch, same
from atomcast.objectives import SquaredError


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("names", [None, tuple("abcdef")])
def test_a_batch_is_its_atoms(dtype, order, names):
    X = np.asarray(np.random.default_rng(0).standard_normal((5, 6)), dtype=dtype, order=order)
    atoms, places = DenseAtoms(X, names), np.array([4, 0, 3])
    batch = atoms.batch(places, [14, 10, 13])
    one_by_one = [atoms.atom(j, 10 + j) for j in places.tolist()]
    assert len(batch) == 3
    assert all(map(same, batch, one_by_one))
    assert all(map(same, batch[1:], one_by_one[1:]))
    assert same(batch[-1], one_by_one[-1])
    assert all(atom.values.flags.c_contiguous for atom in batch)
    X[:] = 0.0  # what was sent stays what it was
    assert all(map(same, batch, one_by_one))


def test_an_active_set_takes_a_batch_as_it_takes_atoms():
    X, y = np.random.default_rng(1).standard_normal((5, 6)), np.ones(5)
    batch = DenseAtoms(X).batch(np.arange(6), list(range(6)))
    whole, single = ExplicitActiveSet(SquaredError(y)), ExplicitActiveSet(SquaredError(y))
    for part in (batch[:2], AtomBatch(batch.ids[2:], batch.values[2:])):
        whole.append(part)
    single.append(list(batch))
    assert whole.ids == single.ids
    assert whole.position == single.position
    np.testing.assert_array_equal(whole.products(0, 6), single.products(0, 6))
    with pytest.raises(ValueError, match="atom 3 was broadcast twice"):
        whole.append(AtomBatch([3], batch.values[3:4]))
