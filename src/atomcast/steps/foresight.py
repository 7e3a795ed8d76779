"""What one who is alone does before the first round: look at its own atoms, without a question.

To ask, rank, agree, cast and write down takes longer than all arithmetic of a small fit. Who has
all atoms at hand can do without: score them, let the best violators join, find the best weights of
those that have joined, look again. What was found is where the loop begins, which certifies it, and
goes on where it is not yet good enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import FEW, ExplicitActiveSet
from atomcast.messages.atom import Atom, AtomBatch
from atomcast.messages.proposals import Agreement
from atomcast.steps.batches import FREE_SHARE, LEAP, ROUND, FreeBatches
from atomcast.steps.inner.block_pivots import BOLD, RIDGE, penalised_solution, solutions
from atomcast.steps.step import OwnAtoms

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Where a look takes more operations than so many rounds do beside their scores, what rounds take
#: beside them hardly matters; an atom takes as many as so many values beside its own.
ROUNDS, EACH = 2, 8
#: So many atoms join first, or up to so many if no others are likely to be of use. Later it is at
#: least so many, and no more than these before the first round, or than these where nothing but
#: their products tells the best weights.
FIRST, LIKELY, LEAST, MANY, SOME = 24, 40, 8, 1024, 512
#: Atoms with so many values take less time than a look.
LIGHT = 1 << 13
#: Atoms with larger bends than this, and not larger than its inverse, are in scale at a glance.
PLAIN = 1e-100
#: Atoms whose merits differ by no more than this share of the largest are copies of each other.
EQUAL = 1e-10
#: Among so many times as many of the best, there are enough that are no copies.
SPARE = 4
#: Of so many times as many atoms, they are looked for above some levels, each half as high.
MANY_MORE, LEVELS = 8, 8


def is_quick(free: FreeBatches) -> bool:
    """Whether a look at all atoms takes little time."""
    return free.width == 1 and free.n * (free.values + EACH) <= ROUNDS * ROUND


def foresee(replica: Replica, own: OwnAtoms, free: FreeBatches) -> float | None:
    """Let atoms join until the gap is small enough, or they are many.

    Returns the gap before, if any has joined.
    """
    view, domain, first = View(replica, own), replica.domain, None
    while True:
        best, target, inner = view.look(), replica.target, view.active.inner()
        gap = domain.gap(inner, best)
        if not gap > target:
            return first
        level, count = (target - inner) / domain.scale, LIKELY
        if first is not None:
            count = _next(free, view.active.weights, gap / replica.unit)
        if not view.join(level, count, MANY, of_use=first is None):
            return first
        first = gap if first is None else first
        view.minimise(best, 1e-3 * target)


def take_all(replica: Replica, own: OwnAtoms) -> float | None:
    """Let all atoms there are join; returns the gap before, if any of them is of use."""
    view, replica.has_all = View(replica, own), True
    view.enter(np.arange(len(own.ids)))
    best, target = view.look_at_known(), replica.target
    gap = replica.domain.gap(view.active.inner(), best)
    if gap > target:
        view.minimise(best, 1e-3 * target)
    return gap if gap > target else None


def foresee_penalised(replica: Replica, own: OwnAtoms, free: FreeBatches, penalty: float) -> None:
    """The same where a unit of the norm of the weights costs so much, instead of being bounded.

    Weights may then be longer than the domain lets them be.
    """
    view = View(replica, own)
    while True:
        best, target = view.look(), replica.target
        norm = float(np.abs(view.active.weights).sum())
        # What the gap over the ball of this radius is, once the weights are the best.
        gap, level = norm * (best - penalty), penalty + (target / norm if norm else 0.0)
        count = _next(free, view.active.weights, gap / replica.unit) if norm else FIRST
        if not (best > level and view.join(level, count, SOME)):
            return
        if not (view.in_scale() and view.pivot_at(penalty)):
            view.agreement(best)  # or what is wrong with them
            return


class View:
    """What one who is alone sees: all its atoms, and which of them have joined.

    Parameters
    ----------
    replica : Replica
    own : OwnAtoms
    """

    def __init__(self, replica: Replica, own: OwnAtoms) -> None:
        assert isinstance(replica.active, ExplicitActiveSet)
        self._replica, self._own = replica, own
        self.active, self._domain = replica.active, replica.domain
        self._places = own.ids.searchsorted(np.array(self.active.ids, dtype=np.int64))
        self._scores = self._merit = np.zeros(0)
        self._new: tuple[list[int], Sequence[Atom]] = [], ()

    def look(self) -> float:
        """Score all atoms; returns the best merit."""
        best = self._seen(self._own.look(self._replica))
        self._replica.looked = self.active.image, best
        return best

    def look_at_known(self) -> float:
        """The same where all are known: scores of our copies, whatever the layout of the data."""
        return self._seen(self.active.scores())

    def _seen(self, scores: Floats) -> float:
        self._scores, self._merit = scores, self._domain.merit(scores)
        return float(self._merit.max())

    def join(self, level: float, count: int, most: int, of_use: bool = False) -> bool:
        """Let the best new atoms above a level of merit join; whether any has.

        None does if more than the most would be known then. Of the first of all, those do that are
        likely to be of use.
        """
        self._merit[self._places] = -np.inf
        places = _violators(self._merit, level, count)
        if not 0 < len(places) <= most - len(self._places):
            return False
        self.enter(places, of_use)
        return True

    def enter(self, places: Positions, of_use: bool = False) -> None:
        """Let the atoms at these places join, or the first of them that are likely to be of use."""
        ids = self._own.ids[places].tolist()
        atoms = self._own.atoms_of(ids)
        if of_use and (count := self._likely(atoms, self._merit[places])) < len(ids):
            ids, places = ids[:count], places[:count]
            atoms = atoms.first(count) if isinstance(atoms, AtomBatch) else atoms[:count]
        self._new = ids, atoms
        self.active.append(atoms)
        self._places = np.concatenate([self._places, places])

    def _likely(self, atoms: Sequence[Atom], merit: Floats) -> int:
        """How many of the first atoms, with falling merits, are likely to be of use.

        If no atom had to do with any other, each would have the weight (merit - penalty) / bend at
        a penalty, and those before the first without weight would fill the domain.
        """
        scale, bends = self._domain.scale, np.maximum(self.active.bends(atoms), PLAIN)
        norms = (merit / bends).cumsum() - merit * (1.0 / bends).cumsum()
        count = int(norms.searchsorted(scale))
        if count == len(norms):  # they are many
            return FIRST
        # Those that come a little later may be of use, too, and short ones cost less than a look.
        values = atoms.values.size if isinstance(atoms, AtomBatch) else len(atoms) * atoms[0].d
        count = max(3 * count // 2, min(LIGHT * len(atoms) // values, FIRST), LEAST)
        # But none does if the best leaves nothing to it even with all the weight there is.
        left = int(np.count_nonzero(merit > merit[0] - scale * bends[0]))
        return min(count, max(left, 1))

    def minimise(self, best: float, tolerance: float) -> None:
        """Set the best weights of all that have joined, in the quick way or by the step."""
        # Where they are many, there are faster ways than by their products.
        if self.active.multipliable or not (self.in_scale() and self.pivot(tolerance)):
            self._replica.step.advance(self._replica, self.agreement(best))

    @property
    def slopes(self) -> Floats:
        """The scores of those that have joined, as they were when all were looked at."""
        return self._scores[self._places]

    def in_scale(self) -> bool:
        """Whether a glance at the bends of the known atoms tells that they can be computed with."""
        self.active.kept_products.extend(self.active)
        bends = self.active.kept_products.matrix.diagonal()
        longest = max(1.0, self._domain.scale) ** 2 * bends.max()
        return bool(bends.min() > PLAIN and longest < 1.0 / PLAIN)

    def agreement(self, best: float) -> Agreement:
        """What would have been agreed on, had anybody been asked for those that have just joined.

        Raises an error if they are not what their scores say, or out of all scales.
        """
        ids, atoms = self._new
        scores = self._scores[self._places[-len(ids) :]]
        return self._replica.joining(atoms, ids, scores, best)

    def pivot(self, tolerance: float) -> bool:
        """Set the best weights of all that have joined, if that is easy."""
        active = self.active
        way = (self._domain, active.kept_products.matrix, active.weights, self.slopes)
        return self._set(next(solutions(*way, tolerance, (BOLD,), RIDGE), None))

    def pivot_at(self, penalty: float) -> bool:
        """The same at a penalty."""
        active = self.active
        way = (self._domain, active.kept_products.matrix, active.weights, self.slopes)
        return self._set(penalised_solution(*way, penalty, RIDGE))

    def _set(self, found: Floats | None) -> bool:
        if found is not None:
            self.active.set_weights(found)
        return found is not None


def _next(free: FreeBatches, weights: Floats, distance: float) -> int:
    """How many atoms may join: twice as many as are in use, or as many if some are in vain.

    Where they are cheap and few, and none was in vain, more may if the gap is many times the
    objective.
    """
    known, used = len(weights), np.count_nonzero(weights)
    times = 2.0 if used > 0.75 * known else 1.0
    few = known <= FEW - LEAST  # there is room for more of them
    if free.cheap and few and used > 0.95 * known:
        times = min(max(distance, times), LEAP)
    # Of more than a few, the best weights may take a compiler: not before these are not enough.
    most = min(free.d // FREE_SHARE, FEW - known if few else free.n)
    return max(min(int(times * used), most), LEAST)


def _violators(merit: Floats, level: float, count: int) -> Positions:
    """The best atoms above a level of merit, one for all that are equally good."""
    many = SPARE * count
    rows = _among_best(merit, level, many)
    best = merit[rows]
    if len(rows) > many:
        near = (best >= np.partition(best, -many)[-many]).nonzero()[0]
        rows, best = rows[near], best[near]
    order = (-best).argsort(kind="stable")
    rows, best, new = rows[order], best[order], np.ones(len(rows), dtype=bool)
    np.greater(best[:-1] - best[1:], EQUAL * best[:1], out=new[1:])
    return rows[new][:count]


def _among_best(merit: Floats, level: float, many: int) -> Positions:
    """Atoms above a level, and of more than so many at least as many of the best.

    To compare all with a number a few times takes less than to find a number that so many exceed.
    """
    floor = float(merit.max())
    for _ in range(LEVELS if len(merit) > MANY_MORE * many else 0):
        floor *= 0.5
        if not floor > level:
            break
        rows: Positions = (merit > floor).nonzero()[0]
        if len(rows) >= many:
            return rows
    return (merit > level).nonzero()[0]
