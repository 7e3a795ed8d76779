"""Which solver finds the best weights over the known atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.active_set import ActiveSet
from atomcast.corral import Corral
from atomcast.domains import Domain
from atomcast.face_descent import FaceDescent
from atomcast.gram import Gram
from atomcast.group_solver import GroupSolver
from atomcast.groups import GroupBall
from atomcast.kernels.active_set import KernelActiveSet
from atomcast.newton import Inner, Newton

if TYPE_CHECKING:
    from atomcast.replica import Replica

Floats = NDArray[np.float64]

#: Up to so many known weights, a dense inverse of their Gram matrix is the fastest way.
MANY_WEIGHTS = 1_000


class Quadratic:
    """Minimises a quadratic over the hull of the known vertices, by the method for their number."""

    def __init__(self, domain: Domain, direction: Floats | None = None) -> None:
        self.corral = Corral(domain, Gram())
        self.descent = FaceDescent(domain, direction)

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        # Where atoms are so badly scaled that the first-order method gives up, slow is better.
        if len(active) <= MANY_WEIGHTS or not self.descent.minimise(active, tolerance):
            self.corral.minimise(active, tolerance)


class KernelQuadratic:
    """The same for points in a kernel space, where many of them carry weight."""

    def __init__(self, domain: Domain) -> None:
        from atomcast.kernels.projected_newton import ProjectedNewton

        self.corral = Corral(domain, Gram())
        self.newton = ProjectedNewton()

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known atoms."""
        solver: Inner = self.corral if len(active) <= MANY_WEIGHTS else self.newton
        solver.minimise(active, tolerance)


def inner_solver(replica: Replica, direction: Floats | None = None) -> Inner:
    """Exact for quadratic objectives; a sequence of quadratic models for the others.

    `direction` is where the face descent of the same run, in another process, had come to.
    """
    domain = replica.domain

    def exact(direction: Floats | None = None) -> Inner:
        if isinstance(domain, GroupBall):
            return GroupSolver(domain, Gram())
        if isinstance(replica.active, KernelActiveSet):
            return KernelQuadratic(domain)
        return Quadratic(domain, direction)

    if replica.active.quadratic:
        return exact(direction)
    return Newton(domain, exact, replica.smallest_target)
