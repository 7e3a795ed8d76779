"""Rows that are replaced in parts are those of the same matrix made at once."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.known.rows_in_order import RowsInOrder


@pytest.mark.parametrize("seed", range(20))
def test_some_rows_are_replaced_and_the_others_stay(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 40)), int(rng.integers(1, 9))
    old = sparse.random_array((m, n), density=rng.random(), rng=rng, format="csr")
    rows = np.flatnonzero(rng.random(m) < rng.choice([0.0, 0.3, 1.0]))
    new = rng.standard_normal((len(rows), n)) * (rng.random((len(rows), n)) < rng.random())
    expected = old.toarray()
    expected[rows] = new
    before = old.copy()
    made, cuts = RowsInOrder(old), np.sort(rng.integers(0, len(rows) + 1, 3))
    for part in np.split(np.arange(len(rows)), cuts):
        made.replace(rows[part], sparse.csr_array(new[part]))
    found = sparse.csr_array(made.finished(), shape=(m, n))
    np.testing.assert_array_equal(found.toarray(), expected)
    np.testing.assert_array_equal(old.toarray(), before.toarray())
