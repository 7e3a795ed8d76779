"""What nodes propose where many signals choose an atom each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.signals import DictionaryAtoms, SignalsActiveSet
from atomcast.loop.replica import Replica
from atomcast.messages.proposals import TIE, Ids, Proposals


def propose_to_signals(
    atoms: Any, ids: Ids, held: Mapping[int, Ids], nodes: int, replica: Replica
) -> Proposals:
    """Of every node, the best atom for each signal that it has something of use for.

    Parameters
    ----------
    atoms : DictionaryAtoms
        Of all nodes of this process.
    ids : array of shape (n,)
        Their global ids, increasing.
    held : mapping from nodes to arrays
        Which of the atoms each node holds, by position.
    nodes : int
        How many nodes there are in the whole network.
    replica : Replica
    """
    active = replica.active
    assert isinstance(atoms, DictionaryAtoms)
    assert isinstance(active, SignalsActiveSet)
    signals, holders = len(active.open), sorted(held)
    room = len(holders), int(np.count_nonzero(active.open))
    pair, score = np.empty(room, dtype=np.int64), np.empty(room)
    counts = np.zeros(len(holders), dtype=np.int64)
    for some, scores in atoms.pieces(replica):
        merit = replica.domain.merit(scores)
        for k, node in enumerate(holders):
            columns = held[node]
            own = merit if len(held) == 1 else merit[:, columns]
            best = own.max(axis=1)
            use = np.flatnonzero(best > active.levels[some])
            # Of scores that tie with the best, the one with the smallest id wins.
            floor = (best - 2 * TIE * best)[use, np.newaxis]
            column = columns[np.argmax(own[use] >= floor, axis=1)]
            new = slice(counts[k], counts[k] + len(use))
            pair[k, new], score[k, new] = ids[column] * signals + some[use], scores[use, column]
            counts[k] += len(use)
    pair, score = _without_gaps(pair, counts), _without_gaps(score, counts)
    owner, merit = np.repeat(np.array(holders, dtype=np.int64), counts), replica.domain.merit(score)
    largest = np.full(nodes, -np.inf)
    ends = np.cumsum(counts)
    for node, first, last in zip(holders, ends - counts, ends, strict=True):
        largest[node] = merit[first:last].max(initial=-np.inf)
    return Proposals(owner, pair, score, merit, largest, signals=signals)


def _without_gaps(table: NDArray[Any], counts: Ids) -> NDArray[Any]:
    """The first so many entries of each row, one row after the other; in the same memory."""
    flat, end = table.reshape(-1), 0
    for row, count in zip(table, counts.tolist(), strict=True):
        flat[end : end + count] = row[:count]
        end += count
    return flat[:end]
