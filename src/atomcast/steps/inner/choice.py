"""Which solver finds the best weights over the known atoms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.base import Domain
from atomcast.known.active_set import ActiveSet, ExplicitActiveSet
from atomcast.known.gram import Gram
from atomcast.steps.inner.column_model import ColumnModel
from atomcast.steps.inner.coordinate_descent import CoordinateDescent, many
from atomcast.steps.inner.corral import Corral
from atomcast.steps.inner.group_solver import GroupSolver
from atomcast.steps.inner.newton import Inner, Newton, QuadraticModel
from atomcast.steps.inner.projected_newton import ProjectedNewton

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Memory = Mapping[str, NDArray[Any]]

NOTHING: Memory = MappingProxyType({})
#: How the names begin under which inner solvers remember something.
CARRIED = ("low_rank.", "corral.")
#: Up to so many known weights, a dense inverse of their Gram matrix is the fastest way.
MANY_WEIGHTS = 1000
#: The same where the inverse would begin anew for each model of the objective.
MANY_PRODUCTS = 300


class Quadratic:
    """Minimises a quadratic over the hull of the known vertices, by the method for their number."""

    def __init__(self, domain: Domain) -> None:
        self.corral = Corral(domain, Gram())
        self.descent = CoordinateDescent(domain)

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        model = self._model(active)
        if model is not None:
            weights, found = self.descent.minimise(model, tolerance)
            active.set_weights(weights)
            if found:
                return
        # Where atoms are so much alike that coordinate descent gives up, slow is better.
        self.corral.minimise(active, tolerance)

    def _model(self, active: ActiveSet) -> ColumnModel | None:
        """What coordinate descent should minimise; None if the exact method is faster."""
        if isinstance(active, ExplicitActiveSet) and many(active):
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
        self.corral = Corral(domain, Gram())
        self.newton = Newton(domain, partial(Quadratic, domain))

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        self.corral.minimise(active, tolerance)
        self.newton.minimise(active, tolerance)


class KernelQuadratic:
    """The same for points in a kernel space, where many of them carry weight."""

    def __init__(self, domain: Domain, memory: Memory) -> None:
        self.corral = Corral(domain, Gram())
        self.newton = ProjectedNewton(memory)
        if "corral.inverse" in memory:
            self.corral.remember(memory)

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        solver: Inner = self.corral if len(active) <= MANY_WEIGHTS else self.newton
        solver.minimise(active, tolerance)

    def memory(self) -> Memory:
        """What the method in use has gathered: its rounding decides where inexact weights end."""
        return self.newton.memory() or self.corral.memory()


#: The solvers of quadratics, by what active sets say suits them.
KINDS: dict[str, Callable[[Any, Memory], Inner]] = {
    "vertices": lambda domain, _: Quadratic(domain),
    "points": KernelQuadratic,
    "groups": lambda domain, _: GroupSolver(domain),
    "sums": lambda domain, _: SemiQuadratic(domain),
}


def inner_solver(replica: Replica, memory: Memory) -> Inner:
    """Exact for quadratic objectives; a sequence of quadratic models for the others.

    `memory` is what the inner solver of the same run, in another process, had gathered.
    """
    domain = replica.domain

    def exact(memory: Memory = NOTHING) -> Inner:
        return KINDS[replica.active.inner_kind](domain, memory)

    if replica.active.quadratic:
        return exact(memory)
    return Newton(domain, exact, replica.smallest_target)
