"""Products of sparse columns with vectors: those of SciPy's matrices, with its loops or without."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.known import sparse_products
from atomcast.known.sparse_products import crossed, dots, mixed, some


@pytest.fixture(params=["loops", "matrices"])
def way(request, monkeypatch):
    if request.param == "matrices":
        monkeypatch.setattr(sparse_products, "scipys", None)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(13, 7), (4, 30), (5, 1), (6, 0)])
def test_they_are_those_of_the_matrix(shape, index):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array(shape, density=0.3, format="csc", rng=rng)
    parts = matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)
    vector, weights = rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
    np.testing.assert_allclose(dots(*parts, vector), matrix.toarray().T @ vector, atol=1e-14)
    np.testing.assert_allclose(
        mixed(*parts, weights, shape[0]), matrix.toarray() @ weights, atol=1e-14
    )


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(13, 7), (4, 30), (5, 1), (6, 0)])
def test_some_columns_and_their_products_with_others_are_those_of_the_matrix(shape, index):
    rng = np.random.default_rng(1)
    matrix = sparse.random_array(shape, density=0.3, format="csc", rng=rng)
    parts = matrix.data, matrix.indices.astype(index), matrix.indptr.astype(index)
    dense = matrix.toarray()
    for count in (0, 1, shape[1]):
        chosen = rng.permutation(shape[1])[:count]
        few = some(parts, chosen)
        assert [part.dtype for part in few] == [np.float64, index, index]
        picked = sparse.csc_array(few, shape=(shape[0], len(chosen)))
        np.testing.assert_array_equal(picked.toarray(), dense[:, chosen])
        expected = dense.T @ dense[:, chosen]
        np.testing.assert_allclose(crossed(parts, few, shape[0]), expected, atol=1e-14)
        np.testing.assert_allclose(crossed(few, parts, shape[0]), expected.T, atol=1e-14)
