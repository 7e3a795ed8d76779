"""Cutting matrices: what is shared, what is copied, what is kept."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from atomcast.data import matrices
from atomcast.data.matrices import as_matrix, check_axis, cut, file_map, oriented, ready, take

CLASSES = [sparse.csc_matrix, sparse.csc_array, sparse.csr_matrix, sparse.csr_array]


def small(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(6, 9)).astype(dtype)
    X[:, 4] = 0
    return X


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1])
def test_sparse_cut_and_take_keep_class_index_type_and_dtype(cls, index_type, dtype, axis):
    dense = small(dtype)
    X = oriented(cls(dense), axis)
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    ids = np.array([5, 0, 4])
    for block, expected in [
        (cut(X, 2, 5, axis), dense[:, 2:5] if axis == 1 else dense[2:5]),
        (take(X, ids, axis), dense[:, ids] if axis == 1 else dense[ids]),
    ]:
        np.testing.assert_array_equal(block.toarray(), expected)
        assert isinstance(block, sparse.sparray) == issubclass(cls, sparse.sparray)
        assert block.format == ("csc" if axis == 1 else "csr")
        assert block.dtype == dtype
        assert block.indices.dtype == index_type
        assert block.indptr.dtype == index_type


def test_sparse_cut_shares_values_and_indices():
    X = sparse.csc_array(small())
    block = cut(X, 1, 7, axis=1)
    assert np.shares_memory(block.data, X.data)
    assert np.shares_memory(block.indices, X.indices)


def test_oriented_copies_only_when_the_layout_differs():
    X = sparse.csc_array(small())
    assert oriented(X, 1) is X
    assert oriented(X, 0).format == "csr"
    dense = small()
    assert oriented(dense, 0) is dense


def test_ready_block_is_not_copied():
    for X in (small(), small(np.float32), sparse.csc_array(small())):
        assert ready(X) is X


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.longdouble, ">f8"])
def test_other_numbers_become_native_float64(dtype):
    dense = np.abs(small()).astype(dtype)
    for X in (dense, sparse.csr_array(np.abs(small()))):
        if sparse.issparse(X):
            X.data = X.data.astype(dtype)
        out = ready(X)
        values = out.toarray() if sparse.issparse(out) else out
        assert values.dtype == np.float64
        assert values.dtype.isnative
        np.testing.assert_array_equal(values, np.abs(small()) != 0 if dtype is bool else dense)


def test_half_precision_becomes_single():
    assert ready(small(np.float16)).dtype == np.float32


def test_duplicate_and_unsorted_indices_are_repaired_in_a_copy():
    X = sparse.csc_array((3, 2), dtype=np.float64)
    X.data = np.array([1.0, 2.0, 4.0])
    X.indices = np.array([2, 0, 2], dtype=np.int32)
    X.indptr = np.array([0, 3, 3], dtype=np.int32)
    block = ready(X)
    np.testing.assert_array_equal(block.indices, [0, 2])
    np.testing.assert_array_equal(block.data, [2.0, 5.0])
    np.testing.assert_array_equal(X.data, [1.0, 2.0, 4.0])


@pytest.mark.parametrize("cls", CLASSES)
def test_lines_that_fall_are_turned_round(cls):
    X = cls(small())
    turned = (X @ sparse.diags(np.arange(1.0, 10.0))).asformat(X.format)  # as scipy leaves them
    assert not turned.has_sorted_indices
    indices = turned.indices.copy()
    block = ready(turned)
    assert type(block) is type(turned)
    assert block.has_canonical_format
    np.testing.assert_array_equal(block.toarray(), small() * np.arange(1.0, 10.0))
    np.testing.assert_array_equal(turned.indices, indices)  # the user's own is left alone


def test_as_matrix_takes_lists_and_keeps_memory_maps(tmp_path):
    assert as_matrix([[1, 2], [3, 4]]).shape == (2, 2)
    np.save(tmp_path / "X.npy", small())
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert as_matrix(X) is X


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_as_matrix_makes_plain_arrays_of_numpy_matrices():
    assert type(as_matrix(np.matrix([[1.0, 2.0]]))) is np.ndarray


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ValueError, r"shape \(3,\).*reshape"),
        (np.zeros((2, 2, 2)), ValueError, "3 dimension"),
        (np.array([["a"]]), ValueError, "dtype <U1.*encode"),
        (np.zeros((2, 2), complex), ValueError, "complex128"),
        (np.ma.masked_array(np.zeros((2, 2))), TypeError, "masked array.*filled"),
    ],
)
def test_as_matrix_refuses(X, error, message):
    with pytest.raises(error, match=message):
        as_matrix(X)


def test_axis_is_checked():
    with pytest.raises(ValueError, match=r"axis=2.*axis=1.*axis=0"):
        check_axis(2)


def resident_bytes(path):
    """How much of a file this process has in memory by way of maps."""
    text = Path("/proc/self/smaps").read_text()
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.MULTILINE)
    mapped = [part for part in parts if part.partition("\n")[0].endswith(str(path))]
    assert mapped
    return 1024 * sum(int(re.search(r"^Rss: +(\d+)", part, re.MULTILINE)[1]) for part in mapped)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axis", [0, 1])
def test_atoms_taken_from_a_mapped_file_do_not_keep_the_file_in_memory(
    order, axis, tmp_path, monkeypatch
):
    monkeypatch.setattr(matrices, "BLOCK_BYTES", 1 << 14)
    path, X = tmp_path / "X.npy", np.random.default_rng(0).standard_normal((400, 500))
    np.save(path, np.asarray(X, order=order))
    ids = np.flatnonzero(np.random.default_rng(1).integers(2, size=X.shape[axis]))
    block = take(np.asarray(np.load(path, mmap_mode="r")), ids, axis)
    expected = take(X, ids, axis)
    assert block.flags.f_contiguous == expected.flags.f_contiguous
    np.testing.assert_array_equal(block, expected)
    mapped = np.load(path, mmap_mode="r")
    take(mapped, ids, axis)
    assert resident_bytes(path) < X.nbytes / 10


def test_what_was_changed_in_a_map_is_not_forgotten(tmp_path):
    np.save(tmp_path / "X.npy", small())
    X = np.load(tmp_path / "X.npy", mmap_mode="c")
    X[:] = 7.0
    assert file_map(X) is file_map(X[1:]) is None
    take(X, np.array([0, 2]), 0)
    assert (X == 7.0).all()
