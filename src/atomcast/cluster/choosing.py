"""What nodes propose where many signals choose an atom each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.signals import DictionaryAtoms, SignalsActiveSet
from atomcast.loop.replica import Replica
from atomcast.messages.proposals import TIE, Ids, Proposals, best_of_signals

Floats = NDArray[np.float64]
NOTHING = np.zeros(0)


def propose_to_signals(
    atoms: Any, ids: Ids, held: Mapping[int, Ids], nodes: int, replica: Replica, choose: bool
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
    choose : bool
        Whether signals may choose among the proposals at once, for all that else counts is how many
        there are: many nodes then take no more memory than one.
    """
    active = replica.active
    assert isinstance(atoms, DictionaryAtoms)
    assert isinstance(active, SignalsActiveSet)
    signals, holders = len(active.open), sorted(held)
    largest, counts = np.full(nodes, -np.inf), np.zeros(nodes, dtype=np.int64)
    room = 1 if choose else len(holders), int(np.count_nonzero(active.open))
    owner, pair, score = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room)
    ends = np.zeros(room[0], dtype=np.int64)
    for some, scores in atoms.pieces(replica):
        said = []
        for node, best, *best_ones in _best_of_nodes(scores, ids, held, replica, some):
            said.append((np.full(len(best), node), *best_ones))
            largest[node] = max(largest[node], best.max(initial=-np.inf))
            counts[node] += len(best)
        rows = [_chosen(said, len(some))] if choose else said
        for k, (node, id, place, found) in enumerate(rows):
            new = slice(ends[k], ends[k] + len(id))
            owner[k, new], pair[k, new], score[k, new] = node, id * signals + some[place], found
            ends[k] += len(id)
    scores = _without_gaps(score, ends)
    return Proposals(
        _without_gaps(owner, ends),
        _without_gaps(pair, ends),
        scores,
        scores if choose else replica.domain.merit(scores),  # those that win need no ranking
        largest,
        signals=signals,
        counts=counts if choose else None,
    )


def _best_of_nodes(
    scores: Floats, ids: Ids, held: Mapping[int, Ids], replica: Replica, some: Ids
) -> Iterator[tuple[int, Floats, Ids, Ids, Floats]]:
    """Of every node, the merits, ids, signals and scores of the atoms of use to some signals.

    Signals are told by their places among those.
    """
    active, merit = replica.active, replica.domain.merit(scores)
    assert isinstance(active, SignalsActiveSet)
    for node in sorted(held):
        columns = held[node]
        own = merit if len(held) == 1 else merit[:, columns]
        best = own.max(axis=1)
        use = np.flatnonzero(best > active.levels[some])
        # Of scores that tie with the best, the one with the smallest id wins.
        floor = (best - 2 * TIE * best)[use, np.newaxis]
        column = columns[np.argmax(own[use] >= floor, axis=1)]
        yield node, best[use], ids[column], use, scores[use, column]


def _chosen(said: list[tuple[Any, ...]], signals: int) -> tuple[Any, ...]:
    """Of what all nodes say of some signals, what these choose, by signal."""
    node, id, place, score = (np.concatenate(parts) for parts in zip(*said, strict=True))
    table = Proposals(node, id * signals + place, score, np.abs(score), NOTHING, signals=signals)
    rows = best_of_signals(table)
    return node[rows], id[rows], place[rows], score[rows]


def _without_gaps(table: NDArray[Any], counts: Ids) -> NDArray[Any]:
    """The first so many entries of each row, one row after the other; in the same memory."""
    flat, end = table.reshape(-1), 0
    for row, count in zip(table, counts.tolist(), strict=True):
        flat[end : end + count] = row[:count]
        end += count
    return flat[:end]
