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

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.steps.batches import FREE_SHARE, LEAP, ROUND, FreeBatches
from atomcast.steps.inner.block_pivots import BOLD, solutions
from atomcast.steps.step import OwnAtoms

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Where a look takes more operations than so many rounds do beside their scores, what rounds take
#: beside them hardly matters.
ROUNDS = 4
#: So many atoms join first, later at least so many, and no more than these before the first round.
FIRST, LEAST, MANY = 24, 8, 512
#: Atoms with larger bends than this, and not larger than its inverse, are in scale at a glance.
PLAIN = 1e-100
#: Atoms whose merits differ by no more than this share of the largest are copies of each other.
EQUAL = 1e-10
#: Among so many times as many of the best, there are enough that are no copies.
SPARE = 4


def is_quick(free: FreeBatches) -> bool:
    """Whether a look at all atoms takes little time, and the best weights are found at once."""
    return free.quadratic and free.width == 1 and free.n * free.values <= ROUNDS * ROUND


def foresee(replica: Replica, own: OwnAtoms, free: FreeBatches) -> float | None:
    """Let atoms join until the gap is small enough, or they are many.

    Returns the gap before, if any has joined.
    """
    active, domain = replica.active, replica.domain
    assert isinstance(active, ExplicitActiveSet)
    places, first = np.zeros(0, dtype=np.int64), None
    while True:
        scores, target = own.look(replica), replica.target
        merit = domain.merit(scores)
        best, sum_ = float(merit.max()), active.inner()
        gap = domain.gap(sum_, best)
        if not gap > target:
            break
        if first is None:
            count = _first(active, domain, own, merit)
        else:
            merit[places], count = -np.inf, _next(free, active.weights, gap / replica.unit)
        joining = _violators(merit, (target - sum_) / domain.scale, count)
        if not 0 < len(joining) <= MANY - len(places):
            break
        ids = own.ids[joining].tolist()
        atoms = own.atoms_of(ids)
        active.append(atoms)
        places, first = np.concatenate([places, joining]), gap if first is None else first
        if not _easy(active, domain, scores[places], 1e-3 * target):
            winners = replica.joining(atoms, ids, scores[joining], best)
            replica.step.advance(replica, winners)
    return first


def _first(active: ExplicitActiveSet, domain: Domain, own: OwnAtoms, merit: Floats) -> int:
    """How many atoms may join first.

    Those that would still violate optimality if the best one had all the weight there is, and no
    other had anything to do with it.
    """
    best = int(merit.argmax())
    (atom,) = own.atoms_of([int(own.ids[best])])
    bend = active.objective.curvature(active.image).bend(atom.dense())
    return min(np.count_nonzero(merit > merit[best] - domain.scale * bend), FIRST)


def _next(free: FreeBatches, weights: Floats, distance: float) -> int:
    """How many atoms may join: twice as many as are in use, or as many if some are in vain.

    Where they are cheap, and none was in vain, more may if the gap is many times the objective.
    """
    known, used = len(weights), np.count_nonzero(weights)
    times = 2.0 if used > 0.75 * known else 1.0
    if free.cheap and used > 0.95 * known:
        times = min(max(distance, times), LEAP)
    return max(min(int(times * used), free.d // FREE_SHARE), LEAST)


def _violators(merit: Floats, level: float, count: int) -> Positions:
    """The best atoms above a level of merit, one for all that are equally good."""
    rows = (merit > level).nonzero()[0]
    if len(rows) > SPARE * count:
        rows = rows[np.argpartition(merit[rows], -SPARE * count)[-SPARE * count :]]
        rows.sort()
    rows = rows[(-merit[rows]).argsort(kind="stable")]
    best, new = merit[rows], np.ones(len(rows), dtype=bool)
    np.greater(best[:-1] - best[1:], EQUAL * best[:1], out=new[1:])
    return rows[new][:count]


def _easy(active: ExplicitActiveSet, domain: Domain, slopes: Floats, tolerance: float) -> bool:
    """Set the best weights of the known atoms, given the slopes along them, if that is easy."""
    if active.multipliable:
        return False  # there are faster ways
    active.kept_products.extend(active)
    products = active.kept_products.matrix
    if not _in_scale(products.diagonal(), domain.scale):
        return False
    weights, ids = active.weights, active.ids
    found = next(solutions(domain, ids, products, weights, slopes, tolerance, (BOLD,)), None)
    if found is not None:
        active.set_weights(found)
    return found is not None


def _in_scale(bends: Floats, scale: float) -> bool:
    """Whether bends say at a glance that no atom is too long or too short to compute with."""
    return bool(bends.min() > PLAIN and max(1.0, scale) ** 2 * bends.max() < 1.0 / PLAIN)
