"""The search for the best split of every feature: sort once, then one pass a round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.messages.proposals import TIE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: From so many entries on, a compiled loop is worth its start-up time.
LARGE = 1 << 18


@dataclass(frozen=True)
class SortedFeatures:
    """The rows of every feature in the order of its values, missing ones last.

    Parameters
    ----------
    d : int
        How many examples there are.
    starts : array of shape (n + 1,)
        Where the entries of each feature begin and end.
    present : array of shape (n,)
        Where its missing entries begin.
    rows : int32 array of shape (entries,)
        The example of each entry; d stands for all examples that a sparse feature does not list.
    last : bool array of shape (entries,)
        Whether the next entry has a larger value.
    """

    d: int
    starts: Ints
    present: Ints
    rows: NDArray[np.int32]
    last: NDArray[np.bool_]

    @property
    def any_missing(self) -> NDArray[np.bool_]:
        """Which features have missing values, shape (n,)."""
        return np.asarray(self.present < self.starts[1:])


@dataclass(frozen=True)
class Splits:
    """The best split of every feature.

    Parameters
    ----------
    rank : array of shape (n,)
        How many distinct values are below the threshold.
    contrast : array of shape (n,)
        The sum above the threshold minus the sum below.
    missing : array of shape (n,)
        The sum where the feature is missing.
    """

    rank: Ints
    contrast: Floats
    missing: Floats


def sort_dense(matrix: NDArray[Any]) -> SortedFeatures:
    """Sort the columns of an array of shape (d, n)."""
    d, n = matrix.shape
    rows = np.empty((n, d), dtype=np.int32)
    last = np.zeros((n, d), dtype=bool)
    present = np.empty(n, dtype=np.int64)
    for j in range(n):
        column = np.asarray(matrix[:, j])
        rows[j] = np.argsort(column, kind="stable")  # NaN goes to the end
        count = d - int(np.count_nonzero(np.isnan(column)))
        ordered = column[rows[j, :count]]
        last[j, : max(count - 1, 0)] = ordered[1:] > ordered[:-1]
        present[j] = j * d + count
    starts = d * np.arange(n + 1, dtype=np.int64)
    return SortedFeatures(d, starts, present, rows.ravel(), last.ravel())


def sort_sparse(matrix: sparse.csc_array) -> SortedFeatures:
    """Sort the nonzeros of each column of a CSC matrix; its zeros become one entry."""
    d, n = matrix.shape
    parts: list[NDArray[np.int32]] = []
    lasts: list[NDArray[np.bool_]] = []
    present, sizes = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for j in range(n):
        cut = slice(matrix.indptr[j], matrix.indptr[j + 1])
        values, rows = matrix.data[cut], matrix.indices[cut].astype(np.int32)
        listed = values != 0
        values, rows = values[listed], rows[listed]
        if len(rows) < d:
            values, rows = np.append(values, 0.0), np.append(rows, np.int32(d))
        order = np.argsort(values, kind="stable")
        values, count = values[order], len(values) - int(np.count_nonzero(np.isnan(values)))
        last = np.zeros(len(values), dtype=bool)
        last[: max(count - 1, 0)] = values[1:count] > values[: max(count - 1, 0)]
        parts.append(rows[order])
        lasts.append(last)
        present[j], sizes[j] = count, len(values)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    none = np.zeros(0, dtype=np.int32)
    return SortedFeatures(
        d,
        starts,
        starts[:-1] + present,
        np.concatenate([none, *parts]).astype(np.int32),
        np.concatenate([none.astype(bool), *lasts]),
    )


def best_splits(features: SortedFeatures, values: Floats) -> Splits:
    """For every feature the split of the examples with the largest contrast.

    Of splits that tie, the one with the lowest threshold wins.

    Parameters
    ----------
    features : SortedFeatures
    values : array of shape (d,)
        What to sum: label times weight of each example.
    """
    n, d = len(features.present), features.d
    if len(features.rows) == n * d < LARGE and not np.any(features.rows == d):
        return _best_splits_small(features, values)
    total = float(values.sum())
    return Splits(
        *_kernel()(
            features.starts, features.present, features.rows, features.last, values, total, TIE
        )
    )


def _best_splits_small(features: SortedFeatures, values: Floats) -> Splits:
    """The same by array operations, for features that list all examples."""
    n, d = len(features.present), features.d
    sums = values[features.rows].reshape(n, d)
    absent = np.arange(d) >= (features.present - features.starts[:-1])[:, None]
    missing = np.where(absent, sums, 0.0).sum(axis=1)
    below = np.zeros((n, d))
    below[:, 1:] = np.cumsum(np.where(absent, 0.0, sums), axis=1)[:, :-1]
    allowed = np.ones((n, d), dtype=bool)
    allowed[:, 1:] = features.last.reshape(n, d)[:, :-1]
    contrast = (float(values.sum()) - missing)[:, None] - 2.0 * below
    size = np.where(allowed, np.abs(contrast), -1.0)
    best = size.max(axis=1, keepdims=True, initial=-1.0)
    place = np.argmax(size >= best - 2.0 * TIE * best, axis=1) if d else np.zeros(n, dtype=int)
    rank = np.cumsum(allowed, axis=1) - 1
    each = np.arange(n)
    return Splits(rank[each, place], contrast[each, place], missing)


@cache
def _kernel() -> Any:
    """The compiled loop; compiled when it is first needed, and kept on disk."""
    from atomcast.atoms.stump_kernel import scan

    return scan
