"""The log of points received: any mix of dense and sparse, one at a time or many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast.known.kernels.points import PointLog, dense_rows, is_binary, moved_to_front
from atomcast.messages.atom import Atom


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=9), min_size=1, max_size=9))
def test_points_come_back_as_they_were_sent(batches):
    rng = np.random.default_rng(len(batches))
    log, sent = PointLog(), []
    for batch in batches:
        atoms = []
        for is_sparse in batch:
            x = rng.standard_normal(40) * (rng.random(40) < 0.5)
            indices = np.flatnonzero(x).astype(np.int32)
            sent.append(x)
            values = x[indices] if is_sparse else x
            atoms.append(Atom(len(sent), 40, values, indices if is_sparse else None))
        log.append(atoms)
        np.testing.assert_array_equal(dense_rows(log.points), np.array(sent))
        assert log.points.shape == (len(sent), 40)
    all_sparse = all(all(batch) for batch in batches)
    assert sparse.issparse(log.points) == all_sparse


def test_binary_or_not():
    ones = sparse.csr_array(np.eye(5))
    assert is_binary(ones)
    assert is_binary(np.eye(5)[::2])
    assert not is_binary(2 * ones)
    late = np.zeros((9000, 2))
    late[-1, -1] = 0.5
    assert not is_binary(late)


@pytest.mark.parametrize("rows", [[4, 0, 3, 1], [2, 0], [3, 1, 2], []])
def test_points_move_to_the_front_of_their_own_memory(rows, monkeypatch):
    monkeypatch.setattr("atomcast.known.kernels.points.MOVED", 6)
    points = np.arange(20.0).reshape(5, 4)
    expected, at = points[rows], np.array(rows, dtype=np.int64)
    moved = moved_to_front(points.copy(), at)
    np.testing.assert_array_equal(moved, expected)
    np.testing.assert_array_equal(
        moved_to_front(sparse.csr_array(points), at).toarray(), expected.reshape(-1, 4)
    )
    assert np.shares_memory(moved_to_front(points, at), points) == (len(rows) > 2)
