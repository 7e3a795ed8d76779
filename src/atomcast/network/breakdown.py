"""Breakdowns of traffic: sums of messages by node, edge or direction, and a table of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from atomcast.network.wave import Count, Counts, Kind, Wave

if TYPE_CHECKING:
    import pandas

Ends = tuple[int, int]

#: Messages that are added up together; bounds the memory that long runs need.
PIECE = 1_000_000


def senders(wave: Wave) -> tuple[Counts, Counts]:
    """Who sends each message, twice."""
    return wave.source, wave.source


def links(wave: Wave) -> tuple[Counts, Counts]:
    """From where to where each message goes."""
    return wave.source, wave.target


def edges(wave: Wave) -> tuple[Counts, Counts]:
    """The ends of the edge that each message crosses, the smaller number first."""
    return np.minimum(wave.source, wave.target), np.maximum(wave.source, wave.target)


def sums(
    waves: Iterable[Wave],
    nodes: int,
    ends_of: Callable[[Wave], tuple[Counts, Counts]],
    kind: Kind | None = None,
) -> dict[Ends, Count]:
    """Add up messages by the two numbers that `ends_of` gives for each of them.

    Parameters
    ----------
    waves : iterable of Wave
    nodes : int
        Numbers run from -1, the coordinator, to nodes - 1.
    ends_of : callable
        `senders`, `links` or `edges`.
    kind : str, optional
        Count what is of this kind only.
    """
    width = nodes + 1
    totals: dict[int, Counts] = {}
    keys: list[Counts] = []
    amounts: list[Counts] = []
    gathered = 0
    for wave in waves:
        parts = [part for of, part in wave.parts.items() if kind in (None, of)]
        if not parts:
            continue
        low, high = ends_of(wave)
        amount = np.zeros((3, len(low)), dtype=np.int64)
        for part in parts:
            amount[0] += part.values
            amount[1] += part.bytes
        amount[2] = kind in (None, wave.main)
        keys.append((low.astype(np.int64) + 1) * width + high + 1)
        amounts.append(amount)
        gathered += len(low)
        if gathered > PIECE:
            _add_up(totals, keys, amounts)
            keys, amounts, gathered = [], [], 0
    _add_up(totals, keys, amounts)
    return {
        (key // width - 1, key % width - 1): Count(*totals[key].tolist()) for key in sorted(totals)
    }


def _add_up(totals: dict[int, Counts], keys: list[Counts], amounts: list[Counts]) -> None:
    """Add the amounts of each key to its sum."""
    if not keys:
        return
    unique, which = np.unique(np.concatenate(keys), return_inverse=True)
    amount = np.concatenate(amounts, axis=1)
    # Sums of float64 are exact up to 2^53.
    each = [np.bincount(which, column, len(unique)).astype(np.int64) for column in amount]
    for key, total in zip(unique.tolist(), np.stack(each, axis=1), strict=True):
        totals[key] = totals[key] + total if key in totals else total


def table(waves: Iterable[Wave]) -> pandas.DataFrame:
    """A row for each round, direction of an edge and kind that had traffic."""
    from atomcast.data.table_files import load_pandas

    pandas = load_pandas("ledger.to_pandas")

    keys, amounts = ["round", "source", "target", "kind"], ["values", "bytes", "messages"]
    tables = [
        pandas.DataFrame(
            {
                "round": wave.round,
                "source": wave.source,
                "target": wave.target,
                "kind": kind,
                "values": np.broadcast_to(part.values, len(wave.links)).astype(np.int64),
                "bytes": np.broadcast_to(part.bytes, len(wave.links)).astype(np.int64),
                "messages": int(kind == wave.main),
            }
        )
        for wave in waves
        for kind, part in wave.parts.items()
    ]
    if not tables:
        return pandas.DataFrame(columns=keys + amounts)
    return pandas.concat(tables).groupby(keys, as_index=False)[amounts].sum()
