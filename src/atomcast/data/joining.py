"""Putting parts of the data, and the target, into one order of rows by the ids of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.data.alignment import checked_ids, explain_difference, misaligned, shown
from atomcast.data.matrices import IntArray


@dataclass(frozen=True, eq=False)
class Alignment:
    """How parts are put into one order.

    Attributes
    ----------
    ids : array of shape (rows,)
        The ids that all parts have, in the order of the first part.
    orders : tuple of int64 arrays of shape (rows,)
        For each part, which of its rows has each of these ids.
    dropped : dict of str to array
        For each part that has others too, by its name in messages, the ids that were dropped.
    """

    ids: NDArray[Any]
    orders: tuple[IntArray, ...]
    dropped: Mapping[str, NDArray[Any]]

    def only(self, i: int) -> Alignment:
        """The order of one part alone."""
        return Alignment(self.ids, (self.orders[i],), {})


def inner_join(ids: Sequence[NDArray[Any]], sources: Sequence[str]) -> Alignment:
    """Find the rows that all parts have, and warn of those that have to be dropped.

    Parameters
    ----------
    ids : sequence of arrays of shape (rows of the part,)
        The row ids of each part.
    sources : sequence of str
        How messages call each part.

    Raises
    ------
    ValueError
        If an id is missing or repeated within a part, or no id is in all parts.
    """
    plain = _one_kind([checked_ids(own, source) for own, source in zip(ids, sources, strict=True)])
    common = reduce(np.intersect1d, plain)
    if not len(common):
        examples = "; ".join(
            f"{source}: {shown(own)}" for own, source in zip(plain, sources, strict=True)
        )
        raise ValueError(
            f"no row id is in all parts, so that no row is left ({examples}): is the column of "
            "row ids the same in all of them?"
        )
    kept = plain[0][np.isin(plain[0], common)]
    dropped = {
        source: np.setdiff1d(own, common)
        for own, source in zip(plain, sources, strict=True)
        if len(own) > len(common)
    }
    if dropped:
        sizes = dict(zip(sources, map(len, plain), strict=True))
        warnings.warn(_dropped_message(dropped, sizes, len(kept)), stacklevel=3)
    return Alignment(kept, tuple(_places(own, kept) for own in plain), dropped)


def check_same_ids(
    ids: NDArray[Any], source: str, reference: NDArray[Any], reference_source: str
) -> None:
    """Raise ValueError, naming both parts, unless they have the same ids in the same order."""
    mine, theirs = checked_ids(ids, source), checked_ids(reference, reference_source)
    if mine.dtype.kind != theirs.dtype.kind or not np.array_equal(mine, theirs):
        raise ValueError(misaligned(source, reference_source, explain_difference(ids, reference)))


def _one_kind(parts: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Ids that can be compared: texts throughout if one part has texts."""
    if len({part.dtype.kind for part in parts}) == 1:
        return parts
    return [part.astype(np.str_) for part in parts]


def _places(ids: NDArray[Any], wanted: NDArray[Any]) -> IntArray:
    """Where each of the wanted ids is."""
    sorter = np.argsort(ids, kind="stable")
    return np.asarray(sorter[np.searchsorted(ids, wanted, sorter=sorter)], dtype=np.int64)


def _dropped_message(
    dropped: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], kept: int
) -> str:
    parts = "; ".join(
        f"{source}: {len(ids)} of {sizes[source]} (id {shown(ids)})"
        for source, ids in dropped.items()
    )
    return f"rows that are not in all parts were dropped, {kept} are left. {parts}"
