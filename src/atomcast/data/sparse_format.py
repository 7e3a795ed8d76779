"""Whether a sparse matrix is what it says: scipy and our own kernels take its indices on trust.

scipy looks at the indices of a compressed matrix only if it is asked to (and then may change the
matrix), so that an index out of range reads or writes foreign memory. Here every index is looked
at once, before the matrix is converted, cut or multiplied; that is a fraction of one product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def is_sparse(X: Any) -> bool:
    """As scipy says, which takes several times as long for arrays."""
    return not isinstance(X, np.ndarray) and sparse.issparse(X)


def check_sparse(X: Any, *, parameter: str = "X") -> None:
    """Raise ValueError unless all that a sparse matrix refers to is there.

    Parameters
    ----------
    X : any
        Left alone unless it is a scipy sparse matrix or array with two dimensions. Unsorted and
        duplicate entries are accepted; nothing is changed.
    parameter : str
        How messages call `X`.
    """
    if not is_sparse(X) or X.ndim != 2:
        return
    wrong = _CHECKS[X.format](X) if X.format in _CHECKS else None
    if wrong is not None:
        raise ValueError(
            f"{parameter} is a {X.format.upper()} matrix of shape {X.shape} that contradicts "
            f"itself: {wrong}. Make it again from its entries, which scipy.sparse.coo_array checks"
        )


def _compressed(X: Any) -> str | None:
    """CSR, CSC, and BSR, whose entries are blocks."""
    height, width = X.data.shape[1:] if X.format == "bsr" and X.data.ndim == 3 else (1, 1)
    if X.data.ndim != (3 if X.format == "bsr" else 1) or not height or not width:
        return f"its values have shape {X.data.shape}"
    lines, length = X.shape[0] // height, X.shape[1] // width
    if X.format == "csc":
        lines, length = length, lines
    for name in ("indptr", "indices"):
        if (wrong := _not_integers(name, getattr(X, name))) is not None:
            return wrong
    indptr = X.indptr
    if len(indptr) != lines + 1:
        return f"indptr has {len(indptr)} entries, but {lines + 1} are needed"
    if indptr[0] != 0:
        return f"indptr starts with {indptr[0]}, not with 0"
    if (indptr[1:] < indptr[:-1]).any():
        k = int(np.argmax(indptr[1:] < indptr[:-1]))
        return f"indptr goes down from {indptr[k]} to {indptr[k + 1]} at position {k + 1}"
    stored = int(indptr[-1])
    if stored > min(len(X.indices), len(X.data)):
        return (
            f"indptr ends with {stored}, but {min(len(X.indices), len(X.data))} entries are there"
        )
    return _out_of_range("indices", X.indices[:stored], length)


def _coordinates(X: Any) -> str | None:
    for axis, (name, indices) in enumerate((("row", X.row), ("col", X.col))):
        if (wrong := _not_integers(name, indices)) is not None:
            return wrong
        if X.data.ndim != 1 or len(indices) != len(X.data):
            return f"{name} has {len(indices)} entries, but there are {X.data.size} values"
        if (wrong := _out_of_range(name, indices, X.shape[axis])) is not None:
            return wrong
    return None


def _diagonals(X: Any) -> str | None:
    if (wrong := _not_integers("offsets", X.offsets)) is not None:
        return wrong
    if X.data.ndim != 2 or len(X.data) != len(X.offsets):
        return f"there are {len(X.offsets)} offsets for values of shape {X.data.shape}"
    return None


def _lists(X: Any) -> str | None:
    if X.rows.shape != (X.shape[0],) or X.data.shape != (X.shape[0],):
        return f"it has {len(X.rows)} lists of columns and {len(X.data)} lists of values"
    for row, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            return f"row {row} has {len(columns)} columns and {len(values)} values"
    return _listed("rows", list(chain.from_iterable(X.rows)), X.shape[1])


def _keys(X: Any) -> str | None:
    keys = list(X.keys())
    rows, columns = [row for row, _ in keys], [column for _, column in keys]
    return _listed("the rows", rows, X.shape[0]) or _listed("the columns", columns, X.shape[1])


def _listed(name: str, indices: Sequence[Any], length: int) -> str | None:
    try:
        return _out_of_range(name, np.fromiter(indices, np.int64, len(indices)), length)
    except (TypeError, ValueError, OverflowError) as error:
        return f"{name}: {error}"


def _not_integers(name: str, array: NDArray[Any]) -> str | None:
    if array.ndim == 1 and array.dtype in (np.dtype(np.int32), np.dtype(np.int64)):
        return None
    return f"{name} has shape {array.shape} and type {array.dtype}, not (n,) and int32 or int64"


def _out_of_range(name: str, indices: NDArray[Any], length: int) -> str | None:
    # Read without its sign, a negative number is a huge one: a single pass finds both.
    if not indices.size or indices.view(f"u{indices.itemsize}").max() < length:
        return None
    k = int(np.argmax((indices < 0) | (indices >= length)))
    return f"{name} holds {indices[k]} at position {k}, outside 0 ... {length - 1}"


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _compressed,
    "coo": _coordinates,
    "dia": _diagonals,
    "lil": _lists,
    "dok": _keys,
}
