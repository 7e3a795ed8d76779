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
    entries : uint16 or uint32 array
        Twice the example of each entry, plus one if the next entry has a larger value. The example
        d stands for all that a sparse feature does not list. It is nearly all that stumps keep
        beside the data, and read in every round: 2 bytes a value up to 32,767 examples, 4 beyond.
    """

    d: int
    starts: Ints
    present: Ints
    entries: NDArray[np.unsignedinteger[Any]]

    @property
    def rows(self) -> NDArray[np.unsignedinteger[Any]]:
        """The example of each entry."""
        return self.entries >> np.uint8(1)

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
    entries = np.empty((n, d), dtype=_entry_type(d))
    present = np.empty(n, dtype=np.int64)
    for j in range(n):
        present[j] = j * d + _sort(np.asarray(matrix[:, j]), np.arange(d), entries[j])
    starts = d * np.arange(n + 1, dtype=np.int64)
    return SortedFeatures(d, starts, present, entries.ravel())


def sort_sparse(matrix: sparse.csc_array) -> SortedFeatures:
    """Sort the nonzeros of each column of a CSC matrix; its zeros become one entry."""
    d, n = matrix.shape
    entries = np.empty(len(matrix.data) + n, dtype=_entry_type(d))
    starts, present = np.zeros(n + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    for j in range(n):
        cut = slice(matrix.indptr[j], matrix.indptr[j + 1])
        values, rows = matrix.data[cut], matrix.indices[cut]
        listed = values != 0
        values, rows = values[listed], rows[listed]
        if len(rows) < d:
            values, rows = np.append(values, 0.0), np.append(rows, d)
        starts[j + 1] = starts[j] + len(rows)
        present[j] = starts[j] + _sort(values, rows, entries[starts[j] : starts[j + 1]])
    return SortedFeatures(d, starts, present, entries[: starts[-1]])


def _entry_type(d: int) -> Any:
    return np.uint16 if 2 * d + 1 < 1 << 16 else np.uint32


def _sort(values: NDArray[Any], rows: NDArray[Any], out: NDArray[Any]) -> int:
    """Put the entries of a feature into `out`, in order; returns how many are not missing."""
    order = np.argsort(values, kind="stable")  # NaN goes to the end
    count = len(values) - int(np.count_nonzero(np.isnan(values)))
    ordered = values[order[:count]]
    out[:] = rows[order]
    out <<= 1
    out[: max(count - 1, 0)] += ordered[1:] > ordered[:-1]
    return count


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
    if len(features.entries) == n * d < LARGE and not np.any(features.rows == d):
        return _best_splits_small(features, values)
    total = float(values.sum())
    arrays = features.starts, features.present, features.entries
    return Splits(*_kernel()(*arrays, values, total, TIE))


def _best_splits_small(features: SortedFeatures, values: Floats) -> Splits:
    """The same by array operations, for features that list all examples."""
    n, d = len(features.present), features.d
    sums = values[features.rows].reshape(n, d)
    absent = np.arange(d) >= (features.present - features.starts[:-1])[:, None]
    missing = np.where(absent, sums, 0.0).sum(axis=1)
    below = np.zeros((n, d))
    below[:, 1:] = np.cumsum(np.where(absent, 0.0, sums), axis=1)[:, :-1]
    allowed = np.ones((n, d), dtype=bool)
    allowed[:, 1:] = (features.entries & 1).reshape(n, d)[:, :-1]
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
