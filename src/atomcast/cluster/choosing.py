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
    rows: list[tuple[NDArray[Any], ...]] = []
    for signals, scores in atoms.pieces(replica):
        merit = replica.domain.merit(scores)
        for node, columns in held.items():
            own = merit if len(held) == 1 else merit[:, columns]
            best = own.max(axis=1)
            use = np.flatnonzero(best > active.levels[signals])
            # Of scores that tie with the best, the one with the smallest id wins.
            floor = (best - 2 * TIE * best)[use, np.newaxis]
            column = columns[np.argmax(own[use] >= floor, axis=1)]
            pair = ids[column] * len(active.signals) + signals[use]
            rows.append((np.full(len(use), node), pair, scores[use, column], merit[use, column]))
    none = np.zeros(0, dtype=np.int64)
    rows.append((none, none, np.zeros(0), np.zeros(0)))
    owner, pair, score, merit = map(np.concatenate, zip(*rows, strict=True))
    order = np.argsort(owner, kind="stable")
    largest = np.full(nodes, -np.inf)
    np.maximum.at(largest, owner, merit)
    return Proposals(
        node=owner[order],
        id=pair[order],
        score=score[order],
        merit=merit[order],
        best=largest,
        signals=len(active.signals),
    )
