"""Minimisation over the known atoms where the curvature changes: safeguarded Newton steps.

At the current point the objective is replaced by its quadratic model, the model is minimised
exactly over the hull of the known vertices, and the point moves to the model's minimiser, or, if
the objective does not follow the model that far, to the best point on the way there. There is no
step size to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import Domain
from atomcast.known import gram
from atomcast.known.active_set import ActiveSet, ExplicitActiveSet
from atomcast.known.columns import DenseColumns
from atomcast.messages.atom import Atom
from atomcast.steps.inner.block_pivots import solutions
from atomcast.steps.inner.column_model import ColumnModel, ProductModel, Products
from atomcast.steps.inner.coordinate_descent import CoordinateDescent

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: The model is bent by this share more than the objective, so that no direction of it is flat.
RIDGE = 1e-8
#: But not less than by this share, which rounding leaves.
FLAT = 1e-12
#: A full step is taken if the objective falls by at least this share of what the model promised.
ENOUGH = 0.25
#: Faces of a dense model are left at a gap of this share of the objective's. Where models may be
#: rough, it is larger as long as the gap is as large as the objective: models of points far from
#: the best one are soon made anew, those near it gain all that they promise.
EXACT, ROUGH = 0.01, 0.5
#: Up to so many weights, faces of the dense model are guessed.
MANY_PRODUCTS = 300
#: Sweeps over dense columns are given up after so many times, or for each so many weights once.
FEWEST, PER_PRODUCTS = 8, 40
#: Sweeps over columns end at a model's gap of this share of the objective's.
CLOSE = 0.2
#: As long as the gap says less than the objective does of what there may be to gain, models need
#: not be exact: sweeps end where they add less than this share, for the next model is another.
WORTH = 0.05
#: Weights from sweeps that were given up will do if they gain this share of what is at stake.
USEFUL = 0.1
#: Up to so many weights that keep sweeps from the solution of a face leave it one by one.
IN_THE_WAY = 10
#: Losses fall like exponentials where they have this share of what these would be; their products
#: are then worth finding for up to so many weights.
STEEP, MANY_STEEP = 0.8, 1000
#: A step that gains less than this share of what there may be to gain has not come far; after so
#: many of them, rounding must be what is left.
HARDLY, STALLED = 1e-3, 3
#: By this share, values may be off.
ROUNDING = 1e-14
TINY = float(np.finfo(np.float64).tiny)
#: Steps after which rounding must be what is left of the gap.
STEPS = 200


class Inner(Protocol):
    """Minimises the objective of an active set over the known part of a domain."""

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        ...


class _State(NamedTuple):
    """What the slopes along known atoms say: their merits, the level of those in use, the gap."""

    merit: Floats
    level: float
    gap: float


class QuadraticModel(ActiveSet):
    """A quadratic function of some weights, in the form that the inner solvers take.

    Parameters
    ----------
    ids : list of int
        The atom of each weight.
    weights, slopes : arrays of shape (m,)
        Where the model touches the objective, and its gradient there.
    hessian : array of shape (m, m)
    """

    quadratic = True

    def __init__(self, ids: list[int], weights: Floats, slopes: Floats, hessian: Floats) -> None:
        super().__init__()
        self.ids = ids
        self._weights = weights.copy()
        self._start, self._slopes, self._hessian = weights, slopes, hessian

    def _store(self, atoms: Sequence[Atom]) -> None:
        raise TypeError("a model takes no new atoms")

    def _bent(self) -> Floats:
        return self._hessian @ (self.weights - self._start)

    def value(self) -> float:
        """The change of the model from where it touches the objective."""
        return float((self.weights - self._start) @ (self._slopes + 0.5 * self._bent()))

    def inner(self) -> float:
        """The product of weights and gradient."""
        return float(self.weights @ self.scores())

    def scores(self) -> Floats:
        """The gradient of the model."""
        return self._slopes + self._bent()

    def set_weights(self, weights: Floats) -> None:
        """Replace all weights."""
        self._weights = np.array(weights, dtype=np.float64)

    def move(self, change: Floats, step: float) -> None:
        """Add `step` times a change to the weights."""
        self._weights = self._weights + step * change

    def search(self, change: Floats, max_step: float) -> float:
        """Move along a change by the best step in [0, max_step]; returns that step."""
        slope, bend = float(change @ self.scores()), float(change @ self._hessian @ change)
        step = 0.0 if slope >= 0.0 else max_step if bend <= 0.0 else min(-slope / bend, max_step)
        self.move(change, step)
        return step

    def products(self, start: int, stop: int) -> Floats:
        """Columns start to stop of the Hessian."""
        return self._hessian[:, start:stop]

    def by_products(self) -> ProductModel:
        """The same function in the form that coordinate descent takes."""
        return ProductModel.with_slopes(Products(self._hessian), self.weights, self.scores())


class Newton:
    """Newton steps, each of which hands a quadratic model to an inner solver.

    Parameters
    ----------
    domain : Domain
    make_inner : callable
        Makes a solver for a quadratic model over the domain.
    enough : float
        How far above its lower bound the objective may stay.
    rough : bool
        Whether models need not be exact far from the optimum: not where atoms are sent for what
        the weights ask for.
    """

    def __init__(
        self,
        domain: Domain,
        make_inner: Callable[[], Inner],
        enough: float = 0.0,
        rough: bool = False,
    ) -> None:
        self.domain = domain
        self.make_inner = make_inner
        self.enough = enough
        self.rough = rough

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put the best weights over all known atoms into the active set.

        On return no known vertex promises a decrease (a duality gap within the known atoms) of
        more than `tolerance`, unless rounding forbids.
        """
        if not self.domain.has_origin and not np.any(active.weights):
            start = int(np.argmax(self.domain.known_merit(active.ids, active.scores())))
            active.set_weights(np.eye(1, len(active), start)[0] * self.domain.scale)
        stalled = 0
        for _ in range(STEPS):
            scores = active.scores()
            state = self._state(active, scores)
            near = state.gap <= tolerance or active.value() - active.lower_bound <= self.enough
            if near or stalled == STALLED:
                return
            # Where hardly more than rounding is gained, a few more steps polish, then stop.
            far = self.improve(active, scores, stalled > 0, state=state)
            stalled = 0 if far else stalled + 1

    def improve(
        self,
        active: ActiveSet,
        scores: Floats,
        stalled: bool,
        chosen: Positions | None = None,
        state: _State | None = None,
    ) -> bool:
        """Take one step, given the slopes; whether it has come far.

        `stalled` is whether the last one has not. The model is about the chosen weights, or about
        all that are in use or should be.
        """
        state = self._state(active, scores) if state is None else state
        gap, before = state.gap, active.value()
        above = before - active.lower_bound
        at_stake = min(gap, above)
        if chosen is None:
            chosen = self._chosen(active, state.merit, state.level)
        polished = self._step(active, chosen, scores, at_stake, gap >= above and not stalled)
        gained = before - active.value()
        if gained <= 0.0 and not (polished and self._state(active, active.scores()).gap < gap):
            # The model was of no use, as where losses are all but zero: a plain step instead.
            best = int(np.argmax(state.merit))
            toward = active.vertex(self.domain, active.ids[best], float(scores[best]))
            active.search(toward - active.weights, 1.0)
            gained = before - active.value()
        return gained > HARDLY * at_stake

    def _state(self, active: ActiveSet, scores: Floats) -> _State:
        """Merits of the known atoms, the level of those in use, and the gap."""
        merit = self.domain.known_merit(active.ids, scores)
        inner = float(active.weights @ scores)
        gap = self.domain.gap(inner, float(merit.max(initial=-np.inf)))
        return _State(merit, -inner / self.domain.scale, gap)

    def _chosen(self, active: ActiveSet, merit: Floats, level: float) -> Positions:
        """The weights that the model is about: those in use, and those that should be.

        Of very many that should be, only the best: all the products would not fit in memory.
        """
        chosen = (active.weights != 0.0) | (merit > level)
        if len(chosen) > gram.MOST_WEIGHTS // 2:
            used = active.weights != 0.0
            violating = np.flatnonzero(chosen & ~used)
            room = max(gram.MOST_WEIGHTS // 2 - int(np.count_nonzero(used)), 0)
            chosen[violating[np.argsort(-merit[violating], kind="stable")[room:]]] = False
        if self.domain.polytope:
            return chosen.nonzero()[0]
        blocks = self.domain.blocks_of(active.ids)  # a block takes part as a whole, in one piece
        places = np.flatnonzero(np.isin(blocks, blocks[chosen]))
        return places[np.argsort(blocks[places], kind="stable")]

    def _step(
        self, active: ActiveSet, chosen: Positions, scores: Floats, gap: float, far: bool
    ) -> bool:
        """Go to the minimiser of the model, or as far towards it as the objective falls.

        Returns whether it is so near that values do not tell better from worse, but slopes do.
        """
        steepness = active.steepness() if far and len(chosen) <= MANY_STEEP else 0.0
        above = active.value() - active.lower_bound
        if steepness * above < STEEP:
            steepness = 0.0
        found = None if steepness else self._by_columns(active, scores, gap, far)
        if found is None and len(chosen) <= gram.MOST_WEIGHTS:
            found = self._by_products(active, chosen, scores, gap, steepness)
        if found is None:
            return False
        new, promise = found
        old, before = active.weights.copy(), active.value()
        if steepness:  # what is promised is a fall of the logarithm
            promise = -above * math.expm1(-promise / above)
        active.set_weights(new)
        allowed = ROUNDING * abs(before)
        near = promise <= allowed and abs(before - active.value()) <= allowed
        if not near and before - active.value() < ENOUGH * max(promise, 0.0):
            active.set_weights(old)
            active.search(new - old, 1.0)
        return near

    def _by_columns(
        self, active: ActiveSet, scores: Floats, gap: float, far: bool
    ) -> tuple[Floats, float] | None:
        """The minimiser of the model and what it promises, where sweeps are the fastest way.

        Far from the optimum, it need not be exact.
        """
        if not self.domain.polytope or not active.sweepable:
            return None
        assert isinstance(active, ExplicitActiveSet)
        model = ColumnModel.of(active, scores)
        least = RIDGE * gap / self.domain.scale**2
        if float(model.lengths.min()) <= least:  # hardly a bend: see the ridge of the products
            return None
        descent = CoordinateDescent(self.domain)
        if isinstance(active.columns, DenseColumns) and len(active) <= gram.MOST_WEIGHTS:
            # By then, the products of all columns would have been found.
            descent.alternations = max(len(active) // PER_PRODUCTS, FEWEST)
        descent.worth, descent.in_the_way = (WORTH if far else 0.0), IN_THE_WAY
        weights, found = descent.minimise(model, CLOSE * gap)
        if found and descent.gain <= 0.0:  # a smaller gap, but no lower: that would be refused
            descent.worth = 0.0
            weights, found = descent.minimise(model, EXACT * gap)
        return (weights, descent.gain) if descent.gain > (0.0 if found else USEFUL * gap) else None

    def _by_products(
        self, active: ActiveSet, chosen: Positions, scores: Floats, gap: float, steepness: float
    ) -> tuple[Floats, float]:
        """The same by a dense Hessian of the chosen weights.

        Losses that fall like exponentials have models of their logarithm: without, each would end
        at a third of where it begins. That is the same curvature but along the gradient.
        """
        hessian = active.hessian(chosen)
        diagonal = np.einsum("ii->i", hessian)  # as it lies in there
        least = gap / self.domain.scale**2  # where a move by a whole vertex would gain the gap
        ridge = np.maximum(RIDGE * np.maximum(_beside_common(hessian), least), FLAT * diagonal)
        old, slopes = active.weights[chosen], scores[chosen]
        if steepness:
            hessian -= np.outer(steepness * slopes, slopes)
        diagonal += ridge
        ids = self.domain.blocks_of(active.ids)[chosen].tolist()
        few = self.domain.polytope and len(chosen) <= MANY_PRODUCTS
        easy = few and (self.domain.has_origin or old.any())
        above = active.value() - active.lower_bound
        share = max(ROUGH * gap / above, EXACT) if easy and self.rough else EXACT
        tolerance = share * gap
        ways = solutions(self.domain, hessian, old, slopes, tolerance) if easy else ()
        found = next(iter(ways), None)
        if found is None:
            model = QuadraticModel(ids, old, slopes, hessian)
            self.make_inner().minimise(model, tolerance)
            found = model.weights
        change = found - old
        new = np.zeros(len(active))
        new[chosen] = found
        return new, -float(change @ (slopes + 0.5 * (hessian @ change)))


def _beside_common(matrix: Floats) -> Floats:
    """The squared lengths of columns without what all of them have in common, given products."""
    diagonal = matrix.diagonal()
    roots = np.sqrt(np.maximum(diagonal, TINY))
    along = matrix @ (np.where(matrix[0] < 0.0, -1.0, 1.0) / roots)
    total = float(np.abs(along / roots).sum())
    return diagonal - along**2 / max(total, TINY)
