"""Sparse matrices that contradict themselves are refused where they come in, by name."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from atomcast import KernelSVC, L1AdaBoost, Lasso, LassoCV, SparseLogisticRegression, lasso_path
from atomcast.data import Shards, read_part
from atomcast.data.sparse_format import check_sparse

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def good(form, index_type=np.int32):
    rng = np.random.default_rng(0)
    X = sparse.random_array((12, 8), density=0.4, rng=rng, format="csr")
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    return X.asformat(form)


def damaged(form, attribute, position, value, index_type=np.int32):
    X = good(form, index_type)
    if X.format in ("csr", "csc"):  # the flags of a conversion would hide nothing here
        X = type(X)(X)
    getattr(X, attribute)[position] = value
    return X


BAD = {
    "-1": ("indices", 3, -1),
    "11": ("indices", 3, 12),
    "huge": ("indices", -1, 10**9),
    "down": ("indptr", 2, 40),
    "first": ("indptr", 0, 1),
    "last": ("indptr", -1, 10**6),
    "negative": ("indptr", 1, -5),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_what_is_right_is_left_alone(form, kind):
    X = getattr(sparse, f"{form}_{kind}")(good(form))
    before = X.toarray()
    check_sparse(X)
    np.testing.assert_array_equal(X.toarray(), before)
    check_sparse(getattr(sparse, f"{form}_{kind}")((0, 5)))


def test_unsorted_and_duplicate_entries_and_spare_room_are_right():
    X = sparse.csr_array(([1.0, 2.0, 3.0], [4, 1, 1], [0, 1, 3]), shape=(2, 5))
    check_sparse(X)
    X.indices, X.data = np.array([4, 1, 1, -7], dtype=np.int32), np.ones(4)
    check_sparse(X)  # what stands behind indptr[-1] belongs to nobody
    check_sparse(np.eye(3))
    check_sparse("no matrix")


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("bad", BAD)
def test_compressed_formats(form, bad, index_type):
    X = damaged(form, *BAD[bad], index_type)
    with pytest.raises(ValueError, match=rf"X is a {form.upper()} matrix.*contradicts itself"):
        check_sparse(X)


def test_messages_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"indices holds -1 at position 3, outside 0 \.\.\. 7"):
        check_sparse(damaged("csr", "indices", 3, -1))
    with pytest.raises(ValueError, match=r"indptr goes down from 40 to \d+ at position 3"):
        check_sparse(damaged("csr", "indptr", 2, 40))
    with pytest.raises(ValueError, match=r"indptr ends with 1000000, but .* entries are there"):
        check_sparse(damaged("csc", "indptr", -1, 10**6))


def change(form, attribute, new):
    X = good(form)
    setattr(X, attribute, new(X))
    return X


def row_without_values():
    X = good("lil")
    X.rows[2] = [*X.rows[2], 5, 6]
    return X


def lil_with(column):
    X = good("lil")
    X.rows[3], X.data[3] = [column], [1.0]
    return X


def dok_with(key):
    X = good("dok")
    X._dict[key] = 1.0
    return X


OTHERS = {
    "coo row": lambda: damaged("coo", "row", 0, -1),
    "coo col": lambda: damaged("coo", "col", 5, 8),
    "coo lengths": lambda: change("coo", "data", lambda X: X.data[:-3]),
    "csr short indptr": lambda: change("csr", "indptr", lambda X: X.indptr[:-2]),
    "csr short data": lambda: change("csr", "data", lambda X: X.data[:-2]),
    "csc short indices": lambda: change("csc", "indices", lambda X: X.indices[:-2]),
    "csr float indices": lambda: change("csr", "indices", lambda X: X.indices.astype(float)),
    "csr matrix of data": lambda: change("csr", "data", lambda X: X.data[:, None]),
    "bsr flat data": lambda: change("bsr", "data", lambda X: X.data.ravel()),
    "dia offsets": lambda: change("dia", "offsets", lambda X: np.arange(len(X.offsets) + 3)),
    "lil lengths": row_without_values,
    "lil column": lambda: lil_with(8),
    "lil text": lambda: lil_with("x"),
    "dok key": lambda: dok_with((12, 0)),
    "dok negative": lambda: dok_with((0, -1)),
}


@pytest.mark.parametrize("bad", OTHERS)
def test_other_damage(bad):
    with pytest.raises(ValueError, match=f"{bad[:3].upper()} matrix.*contradicts itself"):
        check_sparse(OTHERS[bad]())


# -- everywhere data comes in ------------------------------------------------------------------

y = np.linspace(-1.0, 1.0, 12)
labels = np.arange(12) % 2
ESTIMATORS = {
    "Lasso": (lambda: Lasso(1.0), y),
    "Lasso, three nodes": (lambda: Lasso(1.0, cluster=3), y),
    "LassoCV": (lambda: LassoCV(betas=[0.1], cv=2), y),
    "logistic": (lambda: SparseLogisticRegression(1.0), labels),
    "KernelSVC": (lambda: KernelSVC(), labels),
    "L1AdaBoost": (lambda: L1AdaBoost(), labels),
}


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_and_predict_refuse(name, form):
    make, target = ESTIMATORS[name]
    X = damaged(form, "indices", 3, 10**6)
    with pytest.raises(ValueError, match=r"X is a .* matrix.*contradicts itself"):
        make().fit(X, target)
    model = make().fit(good(form), target)
    with pytest.raises(ValueError, match=r"X is a .* matrix.*contradicts itself"):
        model.predict(X)


def test_paths_and_shards_refuse():
    X = damaged("csc", "indptr", 2, 10**6)
    with pytest.raises(ValueError, match="contradicts itself"):
        lasso_path(X, y)
    with pytest.raises(ValueError, match="X is a CSC"):
        Shards.split(X, 2)
    with pytest.raises(ValueError, match="X_local is a CSC"):
        Shards.mine(X)


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("bad", BAD)
def test_files_refuse(tmp_path, form, bad):
    attribute, position, value = BAD[bad]
    X = good(form)
    arrays = {name: getattr(X, name).copy() for name in ("data", "indices", "indptr")}
    arrays[attribute][position] = value
    np.savez(tmp_path / "part.npz", format=form.encode(), shape=X.shape, **arrays)
    with pytest.raises(ValueError, match=r"part\.npz cannot be read as a \.npz file"):
        read_part(tmp_path / "part.npz")
    with pytest.raises(ValueError, match=r"part\.npz"):
        Lasso(1.0).fit(Shards.files([tmp_path / "part.npz"]), y)
