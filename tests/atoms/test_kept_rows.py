"""Some rows of columns where they are give the same atoms as a copy of these rows."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
from atomcast.atoms.kept_rows import KeptRows
from atomcast.data.matrices import rows_product
from atomcast.messages.atom import same


def columns(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 7)) * (rng.random((40, 7)) < 0.4)
    if kind == "sparse":
        return X, SparseAtoms(sparse.csc_array(X))
    return X, DenseAtoms(np.asfortranarray(X) if kind == "by columns" else X)


@pytest.mark.parametrize("kind", ["dense", "by columns", "sparse"])
@pytest.mark.parametrize("rows", ["consecutive", "scattered", "one"])
def test_as_a_copy_of_the_rows(kind, rows):
    _, atoms = columns(kind)
    some = {
        "consecutive": np.r_[0:10, 20:40],
        "scattered": np.arange(1, 40, 2),
        "one": np.array([39]),
    }[rows]
    kept, copied = KeptRows(atoms, some), type(atoms)(atoms.matrix[some])
    assert (kept.d, kept.n) == (copied.d, copied.n)
    rng = np.random.default_rng(1)
    for vector in (rng.standard_normal(len(some)), rng.standard_normal((len(some), 3))):
        np.testing.assert_allclose(kept.products(vector), copied.products(vector), atol=1e-13)
    places = np.array([5, 0, 3])
    batches = [atoms.batch(places, [5, 0, 3]) for atoms in (kept, copied)]
    for one, other in zip(*batches, strict=True):
        assert same(one, other)
    assert same(kept.atom(2, 2), copied.atom(2, 2))
    part = np.array([1, 4])
    assert same(kept.take(part).atom(1, 4), copied.take(part).atom(1, 4))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("shape", [(7,), (7, 2)])
def test_products_of_rows_with_few_coefficients(kind, shape):
    X, atoms = columns(kind)
    coef = np.zeros(shape)
    coef[[2, 5]] = 1.5
    rows = np.array([3, 1, 30])
    np.testing.assert_allclose(rows_product(atoms.matrix, rows, coef), X[rows] @ coef, atol=1e-13)
    assert not rows_product(atoms.matrix, rows, np.zeros(shape)).any()
