"""The inner solvers of the corrective step, and which one serves which active set."""

from __future__ import annotations

from typing import Protocol

from atomcast.active_set import ActiveSet
from atomcast.corral import Corral
from atomcast.domains import Domain, Simplex
from atomcast.gram import Gram
from atomcast.kernels.active_set import KernelActiveSet

#: Up to so many known atoms, an inverse that is kept up to date is the fastest and most exact.
CORRAL_UP_TO = 1000


class InnerSolver(Protocol):
    """Finds the best weights over all known atoms, without communication."""

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put the best weights into the active set, to a gap within it of `tolerance`."""
        ...


class InnerSolvers:
    """Chooses the solver by the kind and the number of atoms, and keeps its workspace."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._solver: InnerSolver | None = None

    def minimise(self, active: ActiveSet, target: float, gap: float) -> None:
        """Let the right solver put the best weights into the active set.

        Parameters
        ----------
        active : ActiveSet
        target : float
            The gap over all atoms at which the run may stop.
        gap : float
            The gap over all atoms before the new ones came.
        """
        many = len(active) > CORRAL_UP_TO and isinstance(self._domain, Simplex)
        if many and isinstance(active, KernelActiveSet):
            from atomcast.kernels.projected_newton import ProjectedNewton

            if not isinstance(self._solver, ProjectedNewton):
                self._solver = ProjectedNewton()
            # More digits than the next round can use would only cost time.
            self._solver.minimise(active, max(0.3 * target, 0.2 * gap))
            return
        if self._solver is None:
            self._solver = Corral(self._domain, Gram())
        self._solver.minimise(active, 1e-3 * target)
