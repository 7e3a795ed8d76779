"""Shards.mine: the share of one process."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from atomcast.data import Shards, check_same_length, check_same_rows, row_digest


def test_one_node_with_local_ids():
    X = np.arange(12.0).reshape(3, 4)
    shards = Shards.mine(X, names=list("abcd"))
    assert (shards.kind, shards.nodes, shards.count(), shards.rows()) == ("mine", 1, 4, 3)
    assert (shards.count(axis=0), shards.rows(axis=0)) == (3, 4)
    assert shards.matrix is None
    part = shards.shard(0)
    assert np.shares_memory(part.matrix, X)
    assert part.names == ("a", "b", "c", "d")
    assert part.row_digest is None
    assert shards.shard(0, axis=0).names is None
    assert shards.column_names(axis=0) == ("a", "b", "c", "d")
    np.testing.assert_array_equal(part.ids, np.arange(4))
    np.testing.assert_array_equal(shards.assignment(axis=0), np.zeros(3))
    shards.validate()


def test_sparse_share_gets_the_layout_of_its_axis():
    X = sparse.random_array((5, 6), density=0.5, format="csr", rng=0)
    for axis, layout in ((0, "csr"), (1, "csc")):
        part = Shards.mine(X).shard(0, axis)
        assert part.matrix.format == layout
        np.testing.assert_array_equal(part.matrix.toarray(), X.toarray())


def test_empty_share():
    part = Shards.mine(np.zeros((5, 0))).shard(0)
    assert part.matrix.shape == (5, 0)
    assert len(part.ids) == 0


def test_row_ids_become_a_digest():
    X = np.zeros((3, 2))
    digest = Shards.mine(X, row_ids=[7, 8, 9]).shard(0).row_digest
    assert digest == row_digest(np.array([7, 8, 9], dtype=np.int32))
    assert digest != Shards.mine(X, row_ids=[8, 7, 9]).shard(0).row_digest


def test_bad_row_ids():
    with pytest.raises(ValueError, match="row_ids has 2 entries, but X_local has 3 rows"):
        Shards.mine(np.zeros((3, 2)), row_ids=[1, 2])
    with pytest.raises(TypeError, match="row_ids='row_id' is one text"):
        Shards.mine(np.zeros((3, 2)), row_ids="row_id")


def test_bad_matrix_is_called_by_its_parameter():
    with pytest.raises(ValueError, match="X_local has 1 dimension"):
        Shards.mine(np.zeros(3))


def test_repeated_names():
    with pytest.raises(ValueError, match="'a' occurs more than once"):
        Shards.mine(np.zeros((3, 2)), names=["a", "a"]).validate()


def test_only_one_shard():
    with pytest.raises(IndexError, match="no shard 1"):
        Shards.mine(np.zeros((3, 2))).shard(1)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(duplicate):
    copied = duplicate(Shards.mine(np.eye(3), row_ids=list("ABC")))
    np.testing.assert_array_equal(copied.shard(0).matrix, np.eye(3))
    assert copied.shard(0).row_digest == row_digest(list("ABC"))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 2], [2, 1]),
        ([1, 2], [1, 2, 3]),
        (["1", "2"], [1, 2]),
        (["ab", "c"], ["a", "bc"]),
        (["a:1", "b"], ["a", "1:b"]),
        ([1.5, 2.0], [1, 2]),
    ],
)
def test_digests_tell_ids_apart(a, b):
    assert row_digest(a) != row_digest(b)


def test_digests_of_equal_ids_agree():
    assert row_digest([1, 2]) == row_digest(np.array([1.0, 2.0])) == row_digest(iter([1, 2]))
    assert row_digest(["é", "b"]) == row_digest(np.array(["é", "b"], dtype=object))


def test_digest_needs_one_id_per_row():
    with pytest.raises(ValueError, match=r"row_ids has shape \(2, 1\)"):
        row_digest([[1], [2]])


def test_checks_for_clusters_name_the_shard():
    sources = ["shard 0", "shard 1", "shard 2"]
    check_same_length([5, 5, 5], sources, axis=1)
    with pytest.raises(ValueError, match="shard 2 has 4 rows, but shard 0 has 5"):
        check_same_length([5, 5, 4], sources, axis=1)
    with pytest.raises(ValueError, match="shard 1 has 6 columns, but shard 0 has 5"):
        check_same_length([5, 6, 5], sources, axis=0)
    check_same_rows(["x", None, "x"], sources)
    with pytest.raises(ValueError, match="shard 2: its row ids differ from those of shard 1"):
        check_same_rows([None, "x", "y"], sources)
