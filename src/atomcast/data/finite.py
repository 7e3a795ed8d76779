"""Finding NaN and infinity before they spoil every node's gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.matrices import check_axis
from atomcast.data.shards import Shard
from atomcast.data.tables import MUST_BE_FINITE

#: Says of each value whether it may not be there.
IsBad = Callable[[NDArray[Any]], NDArray[np.bool_]]
_BLOCK_VALUES = 1 << 20
"""Values looked at in one go: small beside any matrix for which memory matters."""
_FEW = 10_000
"""So few are looked at one by one: that takes no longer than a sum, and leaves no doubt."""


def check_finite(shard: Shard, axis: int = 1, missing: bool = False) -> None:
    """Raise ValueError, naming shard and column, if a shard contains NaN or infinity.

    Parameters
    ----------
    shard : Shard
    axis : {0, 1}
        1 if the shard's atoms are columns, 0 if they are rows (then the row is named).
    missing : bool, default=False
        Whether values may be missing: then NaN is nothing to complain of.

    Notes
    -----
    Works block by block, so a memory-map is read once and no temporary of its size is made. Of a
    sparse matrix only the stored values are looked at.
    """
    check_axis(axis)
    first = _first_sparse if sparse.issparse(shard.matrix) else _first_dense
    found = first(shard.matrix, np.isinf if missing else _not_finite)
    if found is None:
        return
    row, column, value = found
    local, entry = (column, f"row {row}") if axis == 1 else (row, f"column {column}")
    if axis == 0 and shard.entry_names is not None:
        entry += f" ({shard.entry_names[column]!r})"
    position = int(shard.ids[local]) - shard.origin
    name = "" if shard.names is None else f" ({shard.names[local]!r})"
    what = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"{shard.source}: {'column' if axis == 1 else 'row'} {position}{name} contains {what}, "
        f"first in {entry}; {MUST_BE_FINITE}"
    )


def _not_finite(block: NDArray[Any]) -> NDArray[np.bool_]:
    return ~np.isfinite(block)


def _first_dense(X: NDArray[Any], is_bad: IsBad) -> tuple[int, int, float] | None:
    """Return (row, column, value) of the first value that is bad, in memory order."""
    by_rows = X.strides[0] >= X.strides[1]
    lines = X if by_rows else X.T
    step = max(1, _BLOCK_VALUES // max(1, lines.shape[1]))
    for start in range(0, lines.shape[0], step):
        block = lines[start : start + step]
        if surely_finite(block):
            continue
        bad = np.argwhere(is_bad(block))
        if len(bad):
            line, place = (int(k) for k in bad[0])
            value = float(block[line, place])
            return (start + line, place, value) if by_rows else (place, start + line, value)
    return None


def _first_sparse(X: Any, is_bad: IsBad) -> tuple[int, int, float] | None:
    for start in range(0, X.indptr[-1], _BLOCK_VALUES):
        block = X.data[start : min(start + _BLOCK_VALUES, X.indptr[-1])]
        if surely_finite(block):
            continue
        bad = np.flatnonzero(is_bad(block))
        if len(bad):
            k = start + int(bad[0])
            major = int(np.searchsorted(X.indptr, k, side="right")) - 1
            minor = int(X.indices[k])
            row, column = (minor, major) if X.format == "csc" else (major, minor)
            return row, column, float(X.data[k])
    return None


def surely_finite(block: NDArray[Any]) -> bool:
    """Tell by one sum, which needs no temporary; it may overflow, so False is only a suspicion.

    In the precision of the data, it takes no longer than reading them.
    """
    if block.size <= _FEW:
        return bool(np.isfinite(block).all())
    if block.dtype in (np.float32, np.float64):  # `einsum` never warns
        return math.isfinite(np.einsum(block, list(range(block.ndim)), []))
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(block.sum(dtype=np.float64))
