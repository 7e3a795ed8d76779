"""Foresight where the curvature changes: a Newton model for each look at all atoms.

The first look also tells how many atoms will be in use, about: as if none had to do with another,
each takes the weight that is best for it alone beside a penalty, and the penalty is the one with
which they fill the domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import ExplicitActiveSet
from atomcast.steps.batches import FreeBatches
from atomcast.steps.foresight import violators
from atomcast.steps.inner.newton import Newton
from atomcast.steps.step import OwnAtoms

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

LOOKS = 50
LEAST = 16
GROW = 1


def foresee_bent(replica: Replica, own: OwnAtoms, newton: Newton, free: FreeBatches) -> float | None:
    active, domain = replica.active, replica.domain
    assert isinstance(active, ExplicitActiveSet)
    places, first, count = np.zeros(0, dtype=np.int64), None, 0
    stalled = 0
    for _ in range(LOOKS):
        scores, target = own.look(replica), replica.target
        merit = domain.merit(scores)
        best = float(merit.max())
        inner = active.inner()
        gap = domain.gap(inner, best)
        if not gap > target or active.value() - active.lower_bound <= target:
            break
        merit[places] = -np.inf
        joining = violators(merit, (target - inner) / domain.scale, count or free.size(0, 0.0, gap / replica.unit))
        if len(joining):
            ids = own.ids[joining].tolist()
            atoms = own.atoms_of(ids)
            active.append(atoms)
            replica.joining(atoms, ids, scores[joining], best)
            places = np.concatenate([places, joining])
        chosen = None
        if first is None:
            first, chosen = gap, _likely(active, domain.scale, merit[joining])
        stalled = 0 if newton.improve(active, scores[places], stalled > 0, chosen) else stalled + 1
        if stalled == 3:
            break
        count = max(GROW * np.count_nonzero(active.weights), LEAST)
    return first


def _likely(active: ExplicitActiveSet, scale: float, merit: Floats) -> Positions:
    """The atoms that would be in use if none had to do with another, the best of them first."""
    diagonal = np.zeros(len(active.image)) + active.objective.curvature(active.image).diagonal
    bend = 1.0 / np.maximum(active.lengths(diagonal), 1e-300)
    # With the first k in use, the norm is sum(merit / length) - penalty * sum(1 / length).
    levels = ((merit * bend).cumsum() - scale) / bend.cumsum()
    return (merit > levels.max()).nonzero()[0]
