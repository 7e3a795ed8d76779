"""The inner solvers of the corrective step, and which one serves which active set."""

from __future__ import annotations

from typing import Any, Protocol

from atomcast.active_set import ActiveSet
from atomcast.corral import Corral
from atomcast.domains import Domain, Simplex
from atomcast.face_descent import FaceDescent
from atomcast.gram import Gram
from atomcast.kernels.active_set import KernelActiveSet

#: Up to so many known atoms, a dense inverse of their Gram matrix is the fastest way.
MANY_ATOMS = 1_000


class InnerSolver(Protocol):
    """Finds the best weights over all known atoms, without communication."""

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put the best weights into the active set, to a gap within it of `tolerance`."""
        ...


class InnerSolvers:
    """Chooses the solver by the kind and the number of atoms, and keeps its workspace."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._solver: Any = None

    def minimise(self, active: ActiveSet, target: float, gap: float, left: float) -> None:
        """Let the right solver put the best weights into the active set.

        Parameters
        ----------
        active : ActiveSet
        target : float
            The gap over all atoms at which the run may stop.
        gap : float
            The gap over all atoms before the new ones came.
        left : float
            What atoms that did not get into the last batch promise at least; 0 if all got in.
        """
        if len(active) <= MANY_ATOMS:
            self._chosen(Corral, self._domain, Gram()).minimise(active, 1e-3 * target)
        elif isinstance(active, KernelActiveSet) and isinstance(self._domain, Simplex):
            from atomcast.kernels.projected_newton import ProjectedNewton

            # More digits than the next round can use would only cost time.
            enough = max(0.3 * target, 0.2 * gap)
            self._chosen(ProjectedNewton).minimise(active, enough)
        else:
            enough = max(1e-3 * target, 0.02 * left)
            self._chosen(FaceDescent, self._domain).minimise(active, enough)

    def _chosen(self, kind: Any, *arguments: Any) -> InnerSolver:
        """The solver of this kind, with the workspace that it had the last time."""
        if not isinstance(self._solver, kind):
            self._solver = kind(*arguments)
        solver: InnerSolver = self._solver
        return solver
