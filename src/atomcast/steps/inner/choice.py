"""Which method finds the best weights over the known atoms: by what they are, and how many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from atomcast.domains.balls import Domain
from atomcast.known import gram
from atomcast.known.active_set import ActiveSet, ExplicitActiveSet
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.steps.inner.block_pivots import minimise_by_pivots
from atomcast.steps.inner.column_model import ColumnModel
from atomcast.steps.inner.coordinate_descent import CoordinateDescent
from atomcast.steps.inner.corral import Corral
from atomcast.steps.inner.group_solver import GroupSolver
from atomcast.steps.inner.homotopy import is_near, minimise_by_homotopy
from atomcast.steps.inner.machine_pivots import machine_weights
from atomcast.steps.inner.machine_solver import GreedyDescent, MachineSolver, relative
from atomcast.steps.inner.newton import (
    FEWEST,
    MANY_PRODUCTS,
    PER_PRODUCTS,
    Inner,
    Newton,
    QuadraticModel,
)
from atomcast.steps.inner.projected_newton import ProjectedNewton
from atomcast.steps.inner.tube_descent import TubeDescent

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Memory = Mapping[str, NDArray[Any]]

NOTHING: Memory = MappingProxyType({})
#: Up to so many points in a kernel space, the exact way is the fastest that needs no compiler;
#: descent by rows of their matrix is the other way.
MANY_POINTS = 500
#: Weights that begin by this share of the ball or more inside it say little of its multiplier.
INSIDE = 0.1


class Quadratic:
    """Minimises a quadratic over the hull of the known vertices, by the method for their number."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    @cached_property
    def corral(self) -> Corral:
        """For atoms that are so much alike that the quick way gives up."""
        return Corral(self.domain)

    @cached_property
    def descent(self) -> CoordinateDescent:
        """For many atoms."""
        return CoordinateDescent(self.domain)

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        way = self._way(active)
        near = way is not None and is_near(self.domain, way, tolerance)
        if way and near and minimise_by_homotopy(self.domain, way, tolerance):
            return
        model = self._model(active)
        if model is not None:
            self.descent.inside = INSIDE
            if isinstance(active, QuadraticModel):
                # It begins at weights of the objective, and most of its atoms are in use. By then,
                # the exact method would have found the best ones.
                self.descent.inside = 1.0
                self.descent.alternations = max(len(active) // PER_PRODUCTS, FEWEST)
            weights, found = self.descent.minimise(model, tolerance)
            active.set_weights(weights)
            if found:
                return
        # Where atoms are so much alike that faster ways give up, slow is better.
        if len(active) > gram.MOST_WEIGHTS:  # models of those that matter, one after the other
            Newton(self.domain, partial(Quadratic, self.domain)).minimise(active, tolerance)
            return
        # A model comes here if it was not easy.
        easy = model is None and not isinstance(active, QuadraticModel)
        if easy and minimise_by_pivots(self.domain, active, tolerance):
            return
        if not (way and not near and minimise_by_homotopy(self.domain, way, tolerance)):
            self.corral.minimise(active, tolerance)

    def _way(self, active: ActiveSet) -> ExplicitActiveSet | None:
        """The same atoms, if there is a way from face to face for them that is worth its price."""
        if not (isinstance(active, ExplicitActiveSet) and self.domain.has_origin):
            return None
        return active if active.multipliable else None

    def _model(self, active: ActiveSet) -> ColumnModel | None:
        """What coordinate descent should minimise; None if the exact method is faster."""
        if isinstance(active, ExplicitActiveSet) and active.sweepable:
            return ColumnModel.of(active)
        if isinstance(active, QuadraticModel) and len(active) > MANY_PRODUCTS:
            return active.by_products()
        return None


class SemiQuadratic:
    """The same where the objective is linear in some directions.

    Vertices that differ in these alone look the same to the method for quadratics. Where that keeps
    it from the best weights, models with a ridge, which tells them apart, go the rest of the way.
    """

    def __init__(self, domain: Domain) -> None:
        self.corral = Corral(domain)
        self.newton = Newton(domain, partial(Quadratic, domain))

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        self.corral.minimise(active, tolerance)
        self.newton.minimise(active, tolerance)


class KernelQuadratic:
    """The same for points in a kernel space, where many of them carry weight."""

    def __init__(self, domain: Domain, memory: Memory) -> None:
        self.corral = Corral(domain)
        self.newton = ProjectedNewton(memory)
        self.greedy = GreedyDescent(self.newton)
        self.few = MANY_POINTS
        #: Whether all points there are came at once.
        self.at_once = False
        if "corral.inverse" in memory:
            self.corral.remember(memory)

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        assert isinstance(active, KernelActiveSet)
        few = len(active) <= self.few and active.gram.kept
        if few and self.at_once and self._pivots(active, tolerance):
            return
        (self.corral if few else self.greedy).minimise(active, tolerance)

    def _pivots(self, active: KernelActiveSet, tolerance: float) -> bool:
        """Set the best weights face by face, if that is easy; whether it was."""
        n, whole, aim = len(active), active.gram.matrix, relative(active, tolerance)
        if whole is None or not active.precise:
            return False
        found = machine_weights(whole[:n, :n], 0.4 * aim)
        if found is None:
            return False
        total = float(found[0].sum())
        active.install(found[0] / total, found[1] / total)
        return active.known_gap() <= aim

    def memory(self) -> Memory:
        """What the method in use has gathered: its rounding decides where inexact weights end."""
        return self.newton.memory() or self.corral.memory()


#: The solvers of quadratics, by what active sets say suits them.
KINDS: dict[str, Callable[[Any, Memory], Inner]] = {
    "vertices": lambda domain, _: Quadratic(domain),
    "points": KernelQuadratic,
    "machines": lambda *_: MachineSolver(),
    "targets": lambda domain, memory: TubeDescent(domain.scale, memory),
    "groups": lambda domain, _: GroupSolver(domain),
    "sums": lambda domain, _: SemiQuadratic(domain),
}


def inner_solver(replica: Replica, memory: Memory) -> Inner:
    """Exact for quadratic objectives; a sequence of quadratic models for the others.

    `memory` is what the inner solver of the same run, in another process, had gathered.
    """
    if replica.active.quadratic:
        solver = KINDS[replica.active.inner_kind](replica.domain, memory)
        if isinstance(solver, KernelQuadratic) and replica.step.alone > MANY_POINTS:
            solver.few = 0  # they will soon be many
        elif isinstance(solver, KernelQuadratic | MachineSolver):
            solver.at_once = replica.has_all
        return solver
    return newton_solver(replica)


def newton_solver(replica: Replica) -> Newton:
    """A sequence of quadratic models."""
    domain, kind, alone = replica.domain, replica.active.inner_kind, replica.step.alone
    # Models of several classes are dear: each should bring all it can.
    rough = alone > 0 and replica.active.total(alone) == alone and domain.has_origin
    return Newton(domain, partial(KINDS[kind], domain, NOTHING), replica.smallest_target, rough)
