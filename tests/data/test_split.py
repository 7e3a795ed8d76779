"""Shards.split: every atom on exactly one node, and no more copying than needed."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast.data import Shard, Shards


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def of_axis(X, ids, axis):
    return X[:, ids] if axis == 1 else X[ids]


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csc": sparse.csc_array,
    "csr": sparse.csr_matrix,
    "coo": sparse.coo_array,
}


@st.composite
def splits(draw):
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    axis = draw(st.sampled_from([0, 1]))
    nodes = draw(st.integers(1, 15))
    n = (rows, columns)[axis]
    by = draw(st.sampled_from(["random", "contiguous", "sizes"]))
    if by == "sizes":
        marks = sorted(draw(st.lists(st.integers(0, n), min_size=nodes - 1, max_size=nodes - 1)))
        by = np.diff([0, *marks, n]).tolist()
    layout = draw(st.sampled_from(sorted(LAYOUTS)))
    seed = draw(st.integers(0, 2**32))
    return (rows, columns), axis, nodes, by, layout, seed


@settings(max_examples=150, deadline=None)
@given(splits())
def test_every_atom_is_on_exactly_one_node(split):
    shape, axis, nodes, by, layout, seed = split
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.7)
    shards = Shards.split(LAYOUTS[layout](X), nodes, by=by, random_state=seed)
    parts = [shards.shard(i, axis) for i in range(nodes)]

    assert shards.nodes == nodes
    assert shards.count(axis) == shape[axis]
    assert shards.rows(axis) == shape[1 - axis]
    np.testing.assert_array_equal(
        np.sort(np.concatenate([part.ids for part in parts])), np.arange(shape[axis])
    )
    for i, part in enumerate(parts):
        assert part.ids.dtype == np.int64
        assert np.all(np.diff(part.ids) > 0)
        np.testing.assert_array_equal(dense(part.matrix), of_axis(X, part.ids, axis))
        np.testing.assert_array_equal(shards.assignment(axis)[part.ids], i)
        if not isinstance(by, str):
            assert len(part.ids) == by[i]
    shards.validate(axis)


def test_contiguous_blocks_are_as_those_of_array_split():
    shards = Shards.split(np.zeros((2, 11)), 4, by="contiguous")
    expected = [len(block) for block in np.array_split(np.arange(11), 4)]
    assert [len(shards.shard(i).ids) for i in range(4)] == expected


def test_random_split_uses_all_nodes_about_equally():
    counts = np.bincount(Shards.split(np.zeros((1, 40_000)), 4).assignment(), minlength=4)
    assert np.all(np.abs(counts - 10_000) < 500)  # standard deviation: 87


def test_random_split_depends_on_the_seed_only():
    X = np.zeros((3, 50))
    first = Shards.split(X, 5, random_state=1).assignment()
    np.testing.assert_array_equal(first, Shards.split(X, 5, random_state=1).assignment())
    assert np.any(first != Shards.split(X, 5, random_state=2).assignment())


@pytest.mark.parametrize(
    "seed", [None, np.random.default_rng(3), np.random.RandomState(3), np.random.SeedSequence(3)]
)
def test_assignment_is_fixed_once_made_whatever_the_seed(seed):
    shards = Shards.split(np.zeros((3, 100)), 5, random_state=seed)
    copied = pickle.loads(pickle.dumps(shards))
    np.testing.assert_array_equal(copied.assignment(), shards.assignment())
    assert len(np.unique(shards.assignment())) > 1


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("by", ["contiguous", [0, 3, 4]])
def test_dense_blocks_are_views(axis, by):
    X = np.arange(49.0).reshape(7, 7)
    shards = Shards.split(X, 3, by=by)
    assert shards.matrix is X
    assert np.shares_memory(shards.shard(1, axis).matrix, X)
    assert np.shares_memory(shards.shard(2, axis).matrix, X)


def test_random_shard_copies_its_own_atoms_only():
    X = np.arange(700.0).reshape(7, 100)
    part = Shards.split(X, 3).shard(1)
    assert not np.shares_memory(part.matrix, X)
    assert part.matrix.size == 7 * len(part.ids) < X.size


def test_random_split_over_one_node_needs_no_copy():
    X = np.arange(70.0).reshape(7, 10)
    assert np.shares_memory(Shards.split(X, 1).shard(0).matrix, X)


def test_sparse_blocks_share_values_and_indices():
    X = sparse.random_array((20, 30), density=0.3, format="csc", rng=0)
    part = Shards.split(X, 4, by="contiguous").shard(2)
    assert np.shares_memory(part.matrix.data, X.data)
    assert np.shares_memory(part.matrix.indices, X.indices)


def test_other_sparse_layouts_are_converted_once():
    X = sparse.random_array((20, 30), density=0.3, format="csr", rng=0)
    shards = Shards.split(X, 4, by="contiguous")
    first, second = shards.shard(0).matrix, shards.shard(0).matrix
    assert first.format == "csc"
    assert np.shares_memory(first.data, second.data)
    assert shards.matrix is X
    assert np.shares_memory(shards.shard(0, axis=0).matrix.data, X.data)


def test_int64_indices_are_kept():
    X = sparse.csc_matrix(sparse.random_array((20, 30), density=0.3, format="csc", rng=0))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for by in ("random", "contiguous"):
        assert Shards.split(X, 4, by=by).shard(0).matrix.indices.dtype == np.int64


def test_dtype_of_shards():
    assert Shards.split(np.zeros((2, 2), np.float32), 1).shard(0).matrix.dtype == np.float32
    assert Shards.split(np.ones((2, 2), int), 1).shard(0).matrix.dtype == np.float64
    assert Shards.split(np.ones((2, 2), bool), 1).shard(0).matrix.dtype == np.float64


def test_memory_map_stays_one(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.arange(60.0).reshape(6, 10))
    X = np.load(path, mmap_mode="r")
    part = Shards.split(X, 3, by="contiguous").shard(1, axis=0)
    assert isinstance(part.matrix, np.memmap)
    assert np.shares_memory(part.matrix, X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_map_is_pickled_by_reference(tmp_path, order):
    path = tmp_path / "X.npy"
    np.save(path, np.asarray(np.arange(60_000.0).reshape(100, 600), order=order))
    shards = Shards.split(np.load(path, mmap_mode="r"), 3)
    content = pickle.dumps(shards)
    assert len(content) < 2_000
    copied = pickle.loads(content)
    assert isinstance(copied.matrix, np.memmap)
    np.testing.assert_array_equal(copied.shard(1).matrix, shards.shard(1).matrix)


@pytest.mark.parametrize("duplicate", [copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("layout", ["coo", "csr", "dia", "dok", "lil"])
def test_all_sparse_formats_can_be_copied(duplicate, layout):
    X = np.triu(np.arange(12.0).reshape(3, 4))
    again = duplicate(Shards.split(sparse.csr_array(X).asformat(layout), 2, by="contiguous"))
    np.testing.assert_array_equal(dense(again.shard(1).matrix), X[:, 2:])


def test_part_of_a_memory_map_and_changed_maps_are_pickled_by_value(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.arange(60.0).reshape(6, 10))
    part = np.load(path, mmap_mode="r")[2:, ::2]
    changed = np.load(path, mmap_mode="c")
    changed[0, 0] = -1.0
    for X in (part, changed):
        copied = pickle.loads(pickle.dumps(Shards.split(X, 2)))
        np.testing.assert_array_equal(copied.matrix, X)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_give_the_same_shards(layout, duplicate):
    X = LAYOUTS[layout](np.arange(42.0).reshape(6, 7) % 5)
    shards = Shards.split(X, 3, names=list("abcdefg"))
    shards.shard(0)  # fills the caches
    copied = duplicate(shards)
    for i in range(3):
        mine, theirs = shards.shard(i), copied.shard(i)
        np.testing.assert_array_equal(mine.ids, theirs.ids)
        np.testing.assert_array_equal(dense(mine.matrix), dense(theirs.matrix))
        assert mine.names == theirs.names


def test_converted_matrix_does_not_travel():
    X = sparse.random_array((200, 300), density=0.3, format="csr", rng=0)
    shards = Shards.split(X, 4)
    before = len(pickle.dumps(shards))
    shards.shard(0)
    assert len(pickle.dumps(shards)) == before


def test_names_follow_their_atoms():
    names = [f"x{j}" for j in range(10)]
    shards = Shards.split(np.zeros((3, 10)), 3, names=names)
    assert shards.names == tuple(names)
    for i in range(3):
        part = shards.shard(i)
        assert part.names == tuple(f"x{j}" for j in part.ids)
        assert part.source == f"shard {i}"
        assert shards.shard(i, axis=0).names is None


def test_repeated_names_are_named():
    shards = Shards.split(np.zeros((3, 4)), 2, names=["a", "b", "a", "c"])
    with pytest.raises(ValueError, match=r"column name 'a' occurs more than once"):
        shards.validate()


def test_assignment_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        Shards.split(np.zeros((3, 4)), 2).assignment()[0] = 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"nodes": 0}, ValueError, "nodes must be a whole number >= 1.*got 0"),
        ({"nodes": 2.5}, ValueError, "nodes must be .* got 2.5"),
        ({"nodes": True}, ValueError, "nodes must be .* got True"),
        ({"nodes": 2, "by": "rows"}, ValueError, "by='rows'.*\"contiguous\""),
        ({"nodes": 2, "by": 3}, TypeError, "by=3"),
        ({"nodes": 2, "by": [2.0, 3.0]}, TypeError, r"by=\[2.0, 3.0\]"),
        ({"nodes": 2, "by": [1, 2, 2]}, ValueError, "3 sizes, but nodes=2"),
        ({"nodes": 2, "by": [-1, 6]}, ValueError, "negative"),
        ({"nodes": 2, "by": [1, 1]}, ValueError, "adds up to 2, but X has 5 columns and 3 rows"),
        ({"nodes": 2, "names": ["a"]}, ValueError, "names has 1 entries, but X has 5 columns"),
        ({"nodes": 2, "names": "abcde"}, TypeError, "names='abcde'"),
        ({"nodes": 2, "party_names": ["n"]}, ValueError, "1 party names for 2 nodes"),
        ({"nodes": 2, "party_names": ["n", "n"]}, ValueError, "party name 'n' occurs twice"),
        ({"nodes": 2, "party_names": ["n", " "]}, ValueError, "party name ' ' is not accepted"),
        ({"nodes": 2, "party_names": ["n", 3]}, ValueError, "party name 3 is not accepted"),
        ({"nodes": 1, "party_names": ["coordinator"]}, ValueError, "'coordinator' is not accepted"),
        ({"nodes": 2, "party_names": "ns"}, TypeError, "party_names='ns'"),
        ({"nodes": 2, "random_state": "x"}, (TypeError, ValueError), "random_state='x'"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        Shards.split(np.zeros((3, 5)), **arguments)


def test_sizes_that_fit_the_other_axis_only():
    shards = Shards.split(np.zeros((3, 5)), 2, by=[1, 2])
    assert len(shards.shard(1, axis=0).ids) == 2
    with pytest.raises(ValueError, match=r"adds up to 3, but X has 5 columns.*axis=1"):
        shards.shard(0, axis=1)


def test_missing_shard():
    with pytest.raises(IndexError, match=r"no shard 2.*have 2"):
        Shards.split(np.zeros((3, 5)), 2).shard(2)


def test_shards_cannot_be_made_directly():
    with pytest.raises(TypeError, match="abstract"):
        Shards()


def test_shifted_shard():
    part = Shard(np.zeros((2, 3)), np.arange(3), None, "shard 0")
    moved = part.shifted(10, source="shard 4")
    np.testing.assert_array_equal(moved.ids, [10, 11, 12])
    assert (moved.origin, moved.source) == (10, "shard 4")
    np.testing.assert_array_equal(part.ids, [0, 1, 2])


def test_parties_keep_their_names_in_copies():
    shards = Shards.split(np.zeros((3, 5)), 2, party_names=("north", "south"))
    for same in (shards, copy.copy(shards), pickle.loads(pickle.dumps(shards))):
        assert same.party_names == ("north", "south")
    assert Shards.split(np.zeros((3, 5)), 2).party_names is None


def test_repr_says_what_it_is():
    assert "3 x 5" in repr(Shards.split(np.zeros((3, 5)), 2))
