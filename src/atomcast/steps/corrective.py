"""The corrective step: after each round, the best weights over all atoms known so far.

How many atoms may join in a round is in `batches.py`, and which solver finds the best weights in
`inner/choice.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import FEW
from atomcast.known.kernels.kernel_matrix import DEAR
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Ids, Request, random_order, ranking
from atomcast.selection.rules import EXACT
from atomcast.steps.batches import ALL_POINTS, FreeBatches, FreePoints, GrowingBatches
from atomcast.steps.bent_foresight import foresee_bent, foresee_bent_at
from atomcast.steps.foresight import foresee, foresee_penalised, is_quick, take_all
from atomcast.steps.inner import choice
from atomcast.steps.inner.choice import KernelQuadratic, Memory, inner_solver, newton_solver
from atomcast.steps.inner.machine_solver import FIRST_GAP, MachineSolver
from atomcast.steps.inner.newton import Inner
from atomcast.steps.inner.tube_descent import TubeDescent
from atomcast.steps.pool import CANDIDATES_MORE, WEIGHTY, Pool
from atomcast.steps.step import Floats, OwnAtoms, Step
from atomcast.steps.thinning import Thinning, cheapest_batch, dearness

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

#: How the names begin under which inner solvers remember something.
CARRIED = ("low_rank.", "corral.")
#: So few points that there is room for are not worth a round.
FEW_POINTS = 64
#: Where the curvature changes, the first scores say little of what is of use in the end: so few
#: atoms join at first where they are sent, and later no more than are known.
FIRST = 4
#: Winners whose scores differ by no more than this share of the largest are copies of each other.
EQUAL = 1e-10
#: Where the gap is no larger a share of the objective, the next round is probably the last.
NEAR = 1.0


class Corrective(Step):
    """Re-optimise over the whole active set, which costs no communication.

    Several atoms may join in a round, but only violators: atoms that would lower the objective by
    more than the tolerance. Atoms that were broadcast are known for ever, so none is sent twice.

    Parameters
    ----------
    atoms_per_round : int or "auto"
        How many atoms may join in a round. "auto" lets the batches grow with the active set, so
        that rounds are few and yet hardly an atom is sent that the solution does not need. Where
        the network knows how many atoms take as long as a round, they follow from that.
    thin : bool
        Whether candidates that better ones would make superfluous are left out.
    """

    name: ClassVar[str] = "corrective"
    any_order: ClassVar[bool] = True
    one_atom: ClassVar[bool] = False
    patience: ClassVar[float] = 2

    def __init__(self, atoms_per_round: int | Literal["auto"] = "auto", thin: bool = False) -> None:
        self.atoms_per_round = atoms_per_round
        self.thin = thin
        self._last_violation = 0.0
        self._alike = 1.0  # of so many winners in the mean, all but one were copies
        self._thinning: Thinning | None = None
        self._pool: Pool | None = None
        self.inner: Inner | None = None
        self._carried: Memory = {}
        self._rule: FreeBatches | FreePoints | Literal["unknown"] | None = "unknown"

    def _batch(self, replica: Replica, atoms: int, weights: int, distance: float = np.inf) -> int:
        """How many atoms may join where so many atoms, with so many weights, are known.

        The distance is the gap in units of the objective, as far as that is known by now.
        """
        if self.atoms_per_round != "auto":
            return int(self.atoms_per_round)
        used = np.count_nonzero(replica.active.weights) / max(weights, 1)
        batches, free = replica.problem.batches, self._free(replica)
        size = batches.size(atoms, used)
        if free is None and isinstance(batches, GrowingBatches) and self._bends(replica):
            size = min(size, max(atoms, FIRST))
        if free is not None:
            size = max(size, free.size(atoms, used, distance))
        size = self._fitting(replica, atoms, size)
        if replica.round_in_atoms is None:
            return size
        most = max(size, 4 * atoms) if atoms else np.inf
        return cheapest_batch(replica.round_in_atoms(), used, most)

    def _bends(self, replica: Replica) -> bool:
        """Whether the objective is a loss in a ball whose curvature changes on the way."""
        return replica.domain.has_origin and not replica.active.quadratic

    def _free(self, replica: Replica) -> FreeBatches | FreePoints | None:
        """The rule for batches where nobody has to be sent them; the same in the whole run."""
        if self._rule == "unknown":
            self._rule = self._free_rule(replica) if self.alone else None
        return self._rule

    def _free_rule(self, replica: Replica) -> FreeBatches | FreePoints | None:
        active, d = replica.active, replica.problem.d or 0
        if self._quick(replica):
            return FreePoints()
        # Boosting, on a simplex, has many solutions: all find that of small batches.
        quick = active.quadratic or replica.domain.has_origin
        if not (quick and active.inner_kind == "vertices"):
            return None
        width = active.total(self.alone) // self.alone
        return FreeBatches(self.alone, d, self.usual_size, width, active.quadratic)

    def _fitting(self, replica: Replica, atoms: int, size: int) -> int:
        """So many points, or half of those that there is room for, as long as these are not few.

        Without the matrix of all known points a round takes many times as long, and the worst
        violators among the last thousands may be all that is missing.
        """
        if not (self.alone and isinstance(replica.active, KernelActiveSet)):
            return size
        active = replica.active
        if self.alone <= active.storage.points or self._pass(active):
            return size
        half = (active.storage.points - atoms) // 2
        return min(size, half) if half >= FEW_POINTS else size

    def _pass(self, active: KernelActiveSet) -> bool:
        """Whether rows of points that do not fit can be computed as quickly as they are needed."""
        if active.atoms:
            return active.gram.passing is not None
        cheap = not active.code.weighted and float(active.code.costs.max()) <= DEAR
        return cheap and active.spec.kernel == "rbf"

    def wanted(self, replica: Replica, agreement: Agreement) -> Agreement:
        """All of it; where nothing is sent, the more of it the farther the optimum is."""
        free, active = self._free(replica), replica.active
        if free is None:
            return agreement
        if isinstance(free, FreeBatches) and free.width == 1 and active.atoms:
            agreement = self._without_copies(agreement)
        gap = replica.domain.gap(active.inner(), agreement.best)
        most = self._batch(replica, active.atoms, len(active), gap / replica.unit)
        return agreement if len(agreement.id) <= most else agreement.first(most)

    def _without_copies(self, agreement: Agreement) -> Agreement:
        """The first of those that are equally good: the others are copies of it, or come later.

        The next time, so many more are asked for that as many are left.
        """
        merit = np.abs(agreement.score)
        new = np.abs(np.diff(merit, prepend=np.inf)) > EQUAL * merit.max(initial=0.0)
        self._alike = len(new) / int(new.sum()) if len(new) else 1.0
        return agreement if new.all() else agreement.of(new.nonzero()[0])

    def first(self, replica: Replica) -> int:
        """All there are, if they are few and nobody has to be sent them."""
        many = self.alone if self._quick(replica) and self.atoms_per_round == "auto" else 0
        return max(replica.problem.sample, many)

    def _quick(self, replica: Replica) -> bool:
        """Whether many points at once are no trouble: they fit, and no inverse is kept of them."""
        active, n = replica.active, self.alone
        if not isinstance(active, KernelActiveSet):
            return False
        least = choice.MANY_POINTS + 1 if active.inner_kind == "points" else 1
        fit = n <= active.storage.points or self._pass(active)
        return least <= n <= ALL_POINTS and fit

    def request(self, replica: Replica) -> Request:
        """As many new atoms as the batch holds, of those that violate optimality."""
        if replica.has_all:
            return Request()  # none is left to join
        count = self._batch(replica, replica.active.atoms, len(replica.active))
        if self._alike > 1.0:  # only where nothing is sent
            count = min(int(self._alike * count), self.alone)
        if not replica.feasible:
            return Request(count=count, known_too=False)
        # Below this merit an atom's share of the gap is within the tolerance: it is not needed.
        needed = replica.target / replica.domain.scale
        free, kept = self._free(replica), replica.problem.batches.kept
        likely = 0.0 if free is not None and free.cheap else kept * self._last_violation
        level = _multiplier(replica) + max(needed, likely)
        if free is not None and count == self.alone and self._bends(replica):
            level = -np.inf  # those that are no violators yet would cost a round later
        candidates = 2 * count + CANDIDATES_MORE if self._compares(replica) else 0
        return Request(count=count, threshold=level, known_too=False, candidates=candidates)

    def _compares(self, replica: Replica) -> bool:
        """Whether candidates are compared: sums, and directions of today, cannot be."""
        return self.thin and replica.active.lasting

    def thinned(self, replica: Replica, atoms: Sequence[Atom], scores: Floats) -> Ids:
        """Those that still violate optimality once the better ones have joined."""
        if self._thinning is None:
            self._thinning = Thinning(replica.active, replica.domain)
        most = self._batch(replica, replica.active.atoms, len(replica.active))
        return self._thinning.of_use(atoms, scores, self._dearness(replica), most)

    def picked(self, replica: Replica, atoms: Sequence[Atom], agreement: Agreement) -> Ids:
        """Those with the largest weights over all that the root has seen.

        At first it has seen little: few are picked, and hardly more than half of what is known.
        """
        if not atoms:
            return np.arange(0)
        active, dear = replica.active, self._dearness(replica)
        if self._pool is None or not self._pool.holds(active):
            self._pool = Pool(active, inner_solver(replica, {}))
        gap = replica.domain.gap(active.inner(), agreement.best)
        few = max(3 * self._batch(replica, 0, 0) // 5, active.atoms // 2, 1)
        most = min(few, self._batch(replica, active.atoms, len(active)))
        tolerance = max(0.1 * replica.target, 0.01 * gap)
        return self._pool.pick(atoms, tolerance, WEIGHTY / dear, most)

    def _dearness(self, replica: Replica) -> float:
        """What a round costs, where batches follow from that."""
        priced = replica.round_in_atoms if self.atoms_per_round == "auto" else None
        return 1.0 if priced is None else dearness(priced())

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Minimise over the hull of all known atoms."""
        self._last_violation, self._thinning = 0.0, None
        full = not replica.has_all and self._full(replica, agreement)
        # Where some node was not heard, its violators may be larger than the last winner.
        if full and replica.feasible and agreement.complete:
            merit = replica.domain.merit(agreement.score)
            self._last_violation = max(float(merit.min()) - _multiplier(replica), 0.0)
        if not len(replica.active):
            return  # the gap is above the tolerance by rounding alone: no atom violates anything
        if self.inner is None:
            self.inner = inner_solver(replica, self._carried)
        self.inner.minimise(replica.active, self._tolerance(replica, agreement))
        if self._last(replica):  # no round will follow, and the target has fallen since
            self.inner.minimise(replica.active, self._tolerance(replica, agreement))

    def foresee(
        self, replica: Replica, own: OwnAtoms, penalty: float | None = None
    ) -> float | None:
        """Let all of few atoms join, or those that it does not take long to find.

        A round of questions would take longer than either.
        """
        usual = self.atoms_per_round == "auto" and not self.thin and replica.selection == EXACT
        active = replica.active
        if usual and isinstance(active, KernelActiveSet):
            few = self.alone <= min(choice.MANY_POINTS, active.storage.points)
            all_ = few or self.first(replica) >= self.alone
            return self._take_drawn(replica, own) if all_ else None
        free = self._free(replica) if usual and replica.domain.has_origin else None
        if not isinstance(free, FreeBatches):
            return None
        if free.size(0, 0.0, np.inf) == self.alone:
            if replica.has_all:
                return None
            if free.quadratic and is_quick(free):
                return take_all(replica, own)
            return replica.take(own.atoms_of(own.ids.tolist()))
        if not is_quick(free):
            return None
        if free.quadratic:
            if penalty is None:
                return foresee(replica, own, free)
            foresee_penalised(replica, own, free, penalty)
            return None
        if penalty is not None:
            return foresee_bent_at(replica, own, penalty)
        self.inner = newton = newton_solver(replica)
        return foresee_bent(replica, own, free, newton)

    def _take_drawn(self, replica: Replica, own: OwnAtoms) -> float | None:
        """Let all atoms join, as they would be drawn in the first round."""
        ids = own.ids
        if replica.problem.sample:
            ids = ids[ranking(random_order(ids, 0), ids)]
        return replica.take(own.atoms_of(ids.tolist()))

    def settle(self, replica: Replica) -> None:
        """Minimise over the atoms of the problem before, lest a round go by for weights alone.

        Of many, only go on as the path has.
        """
        active = replica.active
        active.kept_products.lasting = True
        _go_straight_on(replica)
        alike = active.quadratic and active.inner_kind == "vertices" and active.point is None
        if alike and 0 < len(active) <= FEW:  # many would first make the most of too few
            self.inner = inner_solver(replica, self._carried)
            self.inner.minimise(active, 1e-3 * replica.target)

    def _full(self, replica: Replica, agreement: Agreement) -> bool:
        """Whether as many atoms have just joined as might; their weights are still zero."""
        active, new = replica.active, 0 if self._compares(replica) else len(agreement.id)
        weights = active.position.get(int(agreement.id[0]), len(active)) if new else 0
        distance = replica.domain.gap(active.inner(), agreement.best) / replica.unit
        return new > 0 and new == self._batch(replica, active.atoms - new, weights, distance)

    def _tolerance(self, replica: Replica, agreement: Agreement) -> float:
        """How exact the weights must be: far from the optimum, no better than is of use."""
        active, inner = replica.active, self.inner
        gap, final = replica.domain.gap(active.inner(), agreement.best), active.atoms == self.alone
        if isinstance(inner, MachineSolver | KernelQuadratic) and not (final or active.value()):
            return FIRST_GAP * replica.unit  # others will change all that
        if isinstance(inner, MachineSolver):
            share = 0.0 if final else min(0.05, 0.2 * gap / replica.unit)
            return max((0.9 if final else 0.7) * replica.target, share * gap)
        kernel = isinstance(inner, KernelQuadratic | TubeDescent)
        most = inner.few if isinstance(inner, KernelQuadratic) else choice.MANY_POINTS
        few = len(active) <= most if kernel else not active.sweepable
        if active.quadratic and few and active.inner_kind != "groups":  # exact, at no extra cost
            return 1e-3 * replica.target
        if kernel:
            # The smaller the gap, the more exact: else rounds go by in which only weights change.
            share = 0.0 if final else min(0.2, 0.5 * gap / replica.unit)
            return max((0.9 if final else 0.3) * replica.target, share * gap)
        if active.quadratic and gap <= NEAR * replica.unit:  # lest a round go by for weights alone
            return 0.3 * replica.target
        # Each model of a changing curvature costs more, and where nothing is sent, a round less.
        share = 0.05 if active.quadratic else 0.2
        if self._bends(replica):
            final = self._last(replica)
            share = min(0.2, 0.1 * gap / replica.unit)
            if self.alone:
                share = 0.0 if final else 0.4
        enough = (0.7 if final else 0.1) * replica.target
        return max(enough, share * gap if replica.feasible else 0.0)

    def _last(self, replica: Replica) -> bool:
        """Whether all atoms are known where the curvature changes, and models are not too dear."""
        active = replica.active  # those of several classes are
        few = replica.has_all or len(active) == active.atoms == self.alone
        return few and self._bends(replica)

    def memory(self) -> dict[str, NDArray[Any]]:
        """The last violation, and what the inner solver carries from round to round."""
        if isinstance(self.inner, KernelQuadratic | TubeDescent):
            self._carried = self.inner.memory()
        return {"last_violation": np.array([self._last_violation, self._alike]), **self._carried}

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over the memory; the corral and the Gram matrix follow from the weights."""
        violation = memory["last_violation"]
        self._last_violation = float(violation[0])
        self._alike = float(violation[1]) if len(violation) > 1 else 1.0  # older files have none
        self._carried = {name: array for name, array in memory.items() if name.startswith(CARRIED)}


def _go_straight_on(replica: Replica) -> None:
    """Begin where the path would lead without corners, if that is better than where it was.

    Of few weights, or where the inverse of a face is kept, the way from there is exact.
    """
    active = replica.active
    exact = active.kept_products.face is not None or not active.sweepable
    there = None if active.quadratic and exact else replica.straight_on()
    if there is None:
        return
    here, value = active.weights.copy(), active.value()
    active.set_weights(there)
    if not active.value() < value:
        active.set_weights(here)


def _multiplier(replica: Replica) -> float:
    """The merit that every atom of the solution has at the optimum over the known atoms."""
    return -replica.active.inner() / replica.domain.scale
