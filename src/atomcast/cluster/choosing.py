"""What nodes propose where many signals choose an atom each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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
    signals, none = len(active.open), (np.zeros(0, dtype=np.int64), np.zeros(0))
    rows = {node: [none] for node in sorted(held)}
    for some, scores in atoms.pieces(replica):
        merit = replica.domain.merit(scores)
        for node, found in rows.items():
            columns = held[node]
            own = merit if len(held) == 1 else merit[:, columns]
            best = own.max(axis=1)
            use = np.flatnonzero(best > active.levels[some])
            # Of scores that tie with the best, the one with the smallest id wins.
            floor = (best - 2 * TIE * best)[use, np.newaxis]
            column = columns[np.argmax(own[use] >= floor, axis=1)]
            found.append((ids[column] * signals + some[use], scores[use, column]))
    lengths = [sum(len(score) for _, score in found) for found in rows.values()]
    every = [one for found in rows.values() for one in found] or [none]
    pair, score = map(np.concatenate, zip(*every, strict=True))
    owner, merit = np.repeat(list(rows), lengths), replica.domain.merit(score)
    largest = np.full(nodes, -np.inf)
    np.maximum.at(largest, owner, merit)
    return Proposals(owner, pair, score, merit, largest, signals=signals)
