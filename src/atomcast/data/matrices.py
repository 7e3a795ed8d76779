"""Cutting dense and sparse matrices along either axis without copying more than is needed."""

from __future__ import annotations

import mmap
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from atomcast.data.sparse_format import is_sparse

try:
    from scipy.sparse import _sparsetools as scipys
except ImportError:  # they are not part of what SciPy promises
    scipys = None

Matrix: TypeAlias = Any
"""A 2-D numpy array (memory-maps included) or a scipy sparse matrix or array.

scipy ships no type hints, so a type checker cannot be told more than this.
"""

IntArray: TypeAlias = NDArray[np.int64]

#: How much of a mapped file is looked at before the system may have its pages back.
BLOCK_BYTES = 1 << 23


def check_axis(axis: int) -> None:
    """Refuse anything but 0 (atoms are rows) and 1 (atoms are columns)."""
    if axis not in (0, 1):
        raise ValueError(
            f"axis={axis!r} is not accepted: use axis=1 if the atoms are the columns (features) "
            "or axis=0 if they are the rows (examples)"
        )


def as_matrix(X: Any, *, parameter: str = "X") -> Matrix:
    """Return `X` as a 2-D numeric array or sparse matrix, uncopied where that is possible.

    Parameters
    ----------
    X : array-like or scipy sparse of shape (rows, columns)
    parameter : str
        How messages call `X`.

    Returns
    -------
    Matrix
        `X` itself if it is a numpy array (memory-maps stay memory-maps) or sparse.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            f"{parameter} is a masked array, whose mask would be ignored: "
            f"fill the masked entries first, e.g. {parameter}.filled(0.0)"
        )
    if not is_sparse(X) and (not isinstance(X, np.ndarray) or isinstance(X, np.matrix)):
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"{parameter} has {X.ndim} dimension(s), shape {X.shape}, but a matrix with 2 is "
            f"needed: reshape a single column with {parameter}.reshape(-1, 1)"
        )
    if X.dtype.kind not in "biuf":
        raise ValueError(
            f"{parameter} has dtype {X.dtype}, but real numbers are needed "
            "(float32 and float64 are kept; booleans and integers become float64): "
            "encode other values as numbers first"
        )
    return X


def oriented(X: Matrix, axis: int) -> Matrix:
    """Return `X` in the layout whose atoms can be cut out: CSC for columns, CSR for rows.

    A dense matrix, or a sparse one in that layout, is returned as it is; any other sparse layout
    costs one converted copy (in which scipy may make int32 of int64 indices).
    """
    if not is_sparse(X):
        return X
    return X.asformat("csc" if axis == 1 else "csr")


def cut(X: Matrix, start: int, stop: int, axis: int) -> Matrix:
    """Return atoms `start` to `stop - 1` of an `oriented` matrix, sharing its memory."""
    if not is_sparse(X):
        return X[:, start:stop] if axis == 1 else X[start:stop]
    if stop - start == X.shape[axis] and len(X.data) == len(X.indices) == X.indptr[-1]:
        return X
    first, last = X.indptr[start], X.indptr[stop]
    indptr = X.indptr[start : stop + 1] - first
    return _like(X, X.data[first:last], X.indices[first:last], indptr, stop - start, axis)


def take(X: Matrix, ids: IntArray, axis: int) -> Matrix:
    """Return a copy of the atoms `ids` of an `oriented` matrix, in that order."""
    if not is_sparse(X):
        mapping = file_map(X)
        if mapping is not None:
            return _take_from_file(X, ids, axis, mapping)
        return X[:, ids] if axis == 1 else X[ids]
    # Written out because scipy's own fancy indexing may change the integer type of the indices.
    starts = X.indptr[ids].astype(np.int64)
    lengths = X.indptr[ids + 1] - starts
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    positions = np.repeat(starts - bounds[:-1], lengths) + np.arange(bounds[-1])
    indptr = bounds.astype(X.indptr.dtype)
    return _like(X, X.data[positions], X.indices[positions], indptr, len(ids), axis)


def rows_product(X: Matrix, rows: IntArray, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the product of some rows of an `oriented` matrix with coefficients of all columns.

    Most of them are zero: only the others' columns are looked at, and no more copied at a time
    than stays in cache.
    """
    used = np.flatnonzero(coef if coef.ndim == 1 else coef.any(axis=1))
    if is_sparse(X):
        product: NDArray[np.float64] = (X[:, used] @ coef[used])[rows]
        return product
    out = np.empty((len(rows), *coef.shape[1:]))
    step = max((1 << 18) // max(len(used), 1), 1)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        out[part] = X[np.ix_(rows[part], used)] @ coef[used]
    return out


def file_map(X: Any) -> mmap.mmap | None:
    """Return the map of the file that an array shows read-only; None if there is none."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and X.mode != "r":
            return None  # pages that were written to must not be forgotten
        X = X.base
    # Windows has maps, but no way to give pages back.
    return X if isinstance(X, mmap.mmap) and hasattr(X, "madvise") else None


def _take_from_file(X: Matrix, ids: IntArray, axis: int, mapping: mmap.mmap) -> Matrix:
    """As `take`, without keeping the file in memory beside the copy.

    Atoms that are drawn at random touch nearly every page of a file, also those of other nodes.
    """
    atoms = X.T if axis == 1 else X
    out = np.empty((len(ids), atoms.shape[1]), dtype=X.dtype)
    one_by_one = atoms.strides[0] >= atoms.strides[1]
    lines = len(ids) if one_by_one else atoms.shape[1]
    step = max(BLOCK_BYTES * lines // max(X.nbytes, 1), 1)
    for start in range(0, lines, step):
        part = slice(start, start + step)
        if one_by_one:
            out[part] = atoms[ids[part]]
        else:  # a piece of every atom
            out[:, part] = atoms[:, part][ids]
        mapping.madvise(mmap.MADV_DONTNEED)
    return out.T if axis == 1 else out


def ready(block: Matrix) -> Matrix:
    """Return a block in the form every node may rely on.

    float32 and float64 in native byte order are kept, all other numbers become float64 (float16:
    float32). Sparse blocks have sorted, unique indices. A block that is so already is not copied.
    """
    block, falls = ready_or_falling(block)
    return _turned(block) if falls else block


def ready_or_falling(block: Matrix) -> tuple[Matrix, bool]:
    """As `ready`, but for a sparse block whose lines all fall: that is left so. Whether it is one.

    They do in products of scipy's; to turn them round takes as long as a few products.
    """
    dtype = _float_type(block.dtype)
    if not is_sparse(block):
        return (block if block.dtype == dtype else block.astype(dtype)), False
    axis = 1 if block.format == "csc" else 0
    if block.dtype != dtype:
        values = block.data.astype(dtype)
        block = _like(block, values, block.indices, block.indptr, block.shape[axis], axis)
    indices = block.indices[: block.indptr[-1]]
    if _within_lines(block, indices[1:] > indices[:-1]):
        return block, False
    if _within_lines(block, indices[1:] < indices[:-1]):
        return block, True
    block = block.copy()  # because sorting in place would change the user's own matrix
    block.sum_duplicates()
    return block, False


def _within_lines(block: Matrix, holds: NDArray[np.bool_]) -> bool:
    """Whether something holds between all neighbours in a line of a compressed matrix."""
    starts = block.indptr[1:-1]
    if np.count_nonzero(holds) + len(starts) < len(holds):
        return False  # it does not between more of them than there are lines
    if len(starts) and not 0 < starts[0] <= starts[-1] <= len(holds):  # some of these are empty
        starts = starts[(starts > 0) & (starts <= len(holds))]
    holds[starts - 1] = True
    return bool(holds.all())


def _turned(block: Matrix) -> Matrix:
    """A compressed matrix with each line the other way round: scipy's products have them so."""
    stored, lines = int(block.indptr[-1]), len(block.indptr) - 1
    if scipys is None or block.indices.dtype != block.indptr.dtype:
        starts, stops = block.indptr[:-1].astype(np.int64), block.indptr[1:]
        places = np.repeat(starts + stops - 1, stops - starts)
        places -= np.arange(stored)
        new = block.indices.take(places), block.data.take(places)
    else:  # all from the end to the beginning, and then the lines in order again: half the time
        old = block.indices[:stored][::-1].copy(), block.data[:stored][::-1].copy()
        new = np.empty_like(old[0]), np.empty_like(old[1])
        scipys.csr_row_slice(lines - 1, -1, -1, stored - block.indptr[::-1], *old, *new)
    turned = _like(block, new[1], new[0], block.indptr, lines, 1 if block.format == "csc" else 0)
    turned.has_canonical_format = True
    return turned


def _float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "f" and dtype.itemsize <= 4:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def _like(
    X: Matrix,
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    atoms: int,
    axis: int,
) -> Matrix:
    """Build a compressed matrix of the class of `X` around the given arrays themselves."""
    shape = (X.shape[0], atoms) if axis == 1 else (atoms, X.shape[1])
    out = type(X)(shape, dtype=data.dtype)
    # Set afterwards: the constructor would check, and perhaps narrow and copy, the index arrays.
    out.data, out.indices, out.indptr = data, indices, indptr
    return out
