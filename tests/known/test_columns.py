"""Products of known columns with each other, however they are stored."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.known import columns as stores
from atomcast.known import sign_columns
from atomcast.known.columns import LONG, DenseColumns, bends_of, with_appended
from atomcast.known.sign_columns import SignColumns
from atomcast.messages.atom import Atom, AtomBatch, same


def stored(matrix, dense):
    """The columns of a matrix as atoms that everybody knows."""
    atoms = []
    for j, column in enumerate(matrix.T):
        places = np.flatnonzero(column).astype(np.int32)
        own = (column, None) if dense else (column[places], places)
        atoms.append(Atom(j, len(column), *own))
    return with_appended(None, len(matrix), atoms)


@pytest.mark.parametrize("share", [0.05, 0.5])  # multiplied by their nonzeros, and as dense ones
@pytest.mark.parametrize("dense", [False, True])
def test_products_of_columns_with_themselves_and_with_others(share, dense):
    matrix = sparse.random(2_500, 20, share, random_state=0).toarray()
    rng = np.random.default_rng(0)
    bends, chosen, many = rng.random(2_500), np.array([7, 2, 9]), rng.permutation(20)[:18]
    columns = stored(matrix, dense)
    bent = matrix.T @ (bends[:, None] * matrix)
    for left in (chosen, many):
        np.testing.assert_allclose(columns.cross(left, left, bends), bent[np.ix_(left, left)])
        for right in (np.array([0, 2]), rng.permutation(20)[:15]):
            products = columns.cross(left, right, bends)
            np.testing.assert_allclose(products, bent[np.ix_(left, right)])
    np.testing.assert_allclose(columns.cross(slice(None), slice(3, 5), bends), bent[:, 3:5])
    for left, right in ((chosen, chosen), (many, chosen)):  # a diagonal of one number
        products = columns.cross(left, right, np.array(3.0))
        np.testing.assert_allclose(products, 3.0 * (matrix.T @ matrix)[np.ix_(left, right)])
    for start in (0, 7):
        np.testing.assert_allclose(columns.among(start), matrix.T @ matrix[:, start:], atol=1e-12)
    np.testing.assert_allclose(columns.lengths(bends), bent.diagonal())
    np.testing.assert_allclose(columns.lengths(bends, 2), bent.diagonal()[2:])
    scales, which = rng.random((2, 2_500)), np.array([0, 1, 1])
    scaled = matrix[:, chosen] * scales[which].T
    products = columns.scaled_products(chosen, scales, which)
    np.testing.assert_allclose(products, scaled.T @ scaled)


def signs(count, d=LONG + 77):
    return np.where(np.random.default_rng(3).random((d, count)) < 0.3, 1.0, -1.0)


@pytest.mark.parametrize("as_batch", [False, True])
def test_columns_of_signs_take_a_byte_a_value_and_are_like_others(as_batch, monkeypatch):
    monkeypatch.setattr(sign_columns, "PIECE", 1 << 12)
    matrix, rng = signs(11), np.random.default_rng(0)
    if as_batch:
        values = np.ascontiguousarray(matrix.T.astype(np.int8))
        batch = AtomBatch(list(range(11)), len(matrix), values, extras=np.ones((11, 1)))
        assert batch[3].values.dtype == np.float64
        columns = with_appended(None, len(matrix), batch)
    else:
        columns = stored(matrix, dense=True)
    assert isinstance(columns, SignColumns)
    assert columns.compiled.itemsize == 1
    dense = DenseColumns(len(matrix))
    dense.append([Atom(j, len(matrix), column) for j, column in enumerate(matrix.T)])
    vector, block = rng.standard_normal(len(matrix)), rng.standard_normal((len(matrix), 2))
    bends, some, others = rng.random(len(matrix)), np.array([7, 2, 9]), np.array([0, 2])
    for name, given in {
        "combine": (rng.standard_normal(11),),
        "scores": (vector,),
        "measured": (2, 7, vector),
        "measured_one": (4, vector),
        "products": (block,),
        "among": (4,),
        "block": (1, 4),
        "column": (5,),
        "lengths": (bends, 3),
        "scaled_products": (some, rng.random((2, len(matrix))), np.array([0, 1, 1])),
    }.items():
        own, expected = getattr(columns, name)(*given), getattr(dense, name)(*given)
        for mine, known in zip(np.atleast_1d(own), np.atleast_1d(expected), strict=True):
            np.testing.assert_allclose(mine, known, rtol=1e-10, atol=1e-10, err_msg=name)
    twice = rng.standard_normal((2, 11))
    np.testing.assert_allclose(columns.combine(twice), dense.combine(twice), atol=1e-10)
    for pair in ((some, some), (some, others), (slice(None), slice(3, 5))):
        for diagonal in (bends, np.array(2.0)):
            products = columns.cross(*pair, diagonal)
            np.testing.assert_allclose(products, dense.cross(*pair, diagonal), atol=1e-8)


@pytest.mark.parametrize("odd", [0.5, 0.0])
def test_columns_of_signs_become_dense_with_the_first_that_is_not(odd):
    matrix = signs(3)
    columns = stored(matrix, dense=True)
    other = matrix[:, 0].copy()
    other[5] = odd
    columns = with_appended(columns, len(matrix), [Atom(3, len(matrix), other)])
    assert type(columns) is DenseColumns
    np.testing.assert_array_equal(columns.block(0, 4), np.column_stack([matrix, other]))
    assert type(stored(matrix[: LONG - 1], dense=True)) is DenseColumns


def batch(matrix, dense):
    """The columns of a matrix in one piece."""
    ids, names = list(range(matrix.shape[1])), [f"column {j}" for j in range(matrix.shape[1])]
    if dense:
        return AtomBatch(ids, len(matrix), np.ascontiguousarray(matrix.T), names=names)
    parts = sparse.csc_array(matrix)
    return AtomBatch(ids, len(matrix), parts.data, parts.indices, parts.indptr, names)


@pytest.mark.parametrize("diagonal", [np.array(2.0), np.linspace(0.5, 3.0, 40)])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_bends_are_those_of_the_curvature(diagonal, centred, dense):
    matrix = sparse.random(40, 9, 0.2, random_state=0).toarray()
    matrix[:, [0, 4, 8]] = 0.0  # also the last one
    along = np.linspace(0.0, 0.3, 40) if centred else None
    hessian = np.diag(np.broadcast_to(diagonal, 40))
    expected = hessian - (np.outer(along, along) if centred else 0.0)
    found = bends_of(batch(matrix, dense), diagonal, along)
    np.testing.assert_allclose(found, np.einsum("ij,ik,kj->j", matrix, expected, matrix))


@pytest.mark.parametrize("dense", [False, True])
def test_the_first_of_a_batch_are_the_atoms_that_they_were(dense):
    all_ = batch(sparse.random(30, 8, 0.3, random_state=1).toarray(), dense)
    for count in (1, 5, 8):
        first = all_.first(count)
        assert isinstance(first, AtomBatch)
        assert all(same(one, other) for one, other in zip(first, all_[:count], strict=True))


def test_room_for_many_takes_no_copy_of_those_that_are_there(monkeypatch):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((100, 60))
    monkeypatch.setattr(stores, "LARGE", 1_000)
    monkeypatch.setattr(stores, "ROOM", 4_000)
    columns = DenseColumns(100)
    for start in range(0, 60, 6):  # beyond what there is room for, too
        columns.append([Atom(j, 100, matrix[:, j]) for j in range(start, start + 6)])
        buffer = columns.compiled
        assert len(buffer) == 40 if 12 <= columns.count <= 40 else len(buffer) >= columns.count
        np.testing.assert_array_equal(columns.block(0, columns.count), matrix[:, : start + 6])
