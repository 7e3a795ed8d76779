"""What one who is alone does before the first round: look at its own atoms, without a question.

To ask, rank, agree, cast and write down takes longer than all arithmetic of a small fit. Who has
all atoms at hand can do without: score them, let the best violators join, find the best weights of
those that have joined, look again. What was found is where the loop begins, which certifies it, and
goes on where it is not yet good enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import FEW
from atomcast.steps.batches import ROUND
from atomcast.steps.inner.block_pivots import solutions
from atomcast.steps.inner.newton import Inner
from atomcast.steps.step import OwnAtoms

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Where a look takes more operations than so many rounds do beside their scores, what rounds take
#: beside them hardly matters.
ROUNDS = 4
#: So many atoms join first, and later at least so many.
FIRST, LEAST = 16, 8
#: Atoms whose merits differ by no more than this share of the largest are copies of each other.
EQUAL = 1e-10
#: Among so many times as many of the best, there are enough that are no copies.
SPARE = 4


def is_quick(atoms: int, values: float) -> bool:
    """Whether to look at all of so many atoms, of so many values each, takes little time."""
    return atoms * values <= ROUNDS * ROUND


def foresee(replica: Replica, own: OwnAtoms, inner: Inner) -> float | None:
    """Let atoms join until the gap is small enough, or they are no longer few.

    Returns the gap before, if any has joined.
    """
    active, domain = replica.active, replica.domain
    places, first = np.zeros(0, dtype=np.int64), None
    while len(active) <= FEW:
        scores, target = own.look(replica), replica.target
        merit = domain.merit(scores)
        best = float(merit.max())
        gap = domain.gap(active.inner(), best)
        if not gap > target:
            break
        merit[places] = -np.inf
        level = (target - active.inner()) / domain.scale
        joining = _violators(merit, level, _batch(active.weights))
        if not len(joining):
            break
        ids = own.ids[joining].tolist()
        atoms = own.atoms_of(ids)
        active.append(atoms)
        replica.joining(atoms, ids, scores[joining], best)
        places = np.concatenate([places, joining])
        first = gap if first is None else first
        _minimise(replica, inner, scores[places], 1e-3 * target)
    return first


def _batch(weights: Floats) -> int:
    """How many atoms may join: twice as many as are in use, or as many if some are in vain."""
    used = np.count_nonzero(weights)
    return max((2 if used > 0.75 * len(weights) else 1) * used, LEAST) if used else FIRST


def _violators(merit: Floats, level: float, count: int) -> Positions:
    """The best atoms above a level of merit, one for all that are equally good."""
    rows = (merit > level).nonzero()[0]
    if len(rows) > SPARE * count:
        rows = rows[np.argpartition(merit[rows], -SPARE * count)[-SPARE * count :]]
    rows = rows[np.lexsort((rows, -merit[rows]))]
    best = merit[rows]
    new = np.abs(np.diff(best, prepend=np.inf)) > EQUAL * best.max(initial=0.0)
    return rows[new][:count]


def _minimise(replica: Replica, inner: Inner, slopes: Floats, tolerance: float) -> None:
    """Set the best weights of the known atoms, given the slopes along them."""
    active = replica.active
    if len(active) <= FEW:
        gram = active.kept_products
        gram.extend(active)
        way = solutions(replica.domain, active.ids, gram.matrix, active.weights, slopes, tolerance)
        found = next(way, None)
        if found is not None:
            active.set_weights(found)
            return
    inner.minimise(active, tolerance)
