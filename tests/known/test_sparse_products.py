"""Products of sparse columns with vectors: those of SciPy's matrices, with its loops or without."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.known import sparse_products
from atomcast.known.sparse_products import dots, mixed


@pytest.fixture(params=["loops", "matrices"])
def way(request, monkeypatch):
    if request.param == "matrices":
        monkeypatch.setattr(sparse_products, "csr_matvec", None)
        monkeypatch.setattr(sparse_products, "csc_matvec", None)


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
