"""Paths of small tables, all radii at once: exact, and certified as any solution of the loop is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import one_blas_thread
from atomcast.domains.balls import Domain, L1Ball
from atomcast.estimators.condensed import Condensed
from atomcast.estimators.radii import Walk
from atomcast.loop.solver import Solver
from atomcast.steps.inner.least_angles import LeastAngles

Floats = NDArray[np.float64]

#: As a share of the loss without features, a loss that is as good as none; and no norm at all.
NEGLIGIBLE, TINY = 1e-10, 1e-300


class WholePath:
    """The path of a condensed table.

    Parameters
    ----------
    few : Condensed
    ball : Domain
        Of any radius.
    tol : float
        The relative gap that coefficients must have.
    """

    def __init__(self, few: Condensed, ball: Domain, tol: float) -> None:
        self._few, self._signed, self._tol = few, isinstance(ball, L1Ball), tol
        self.loss = float(few.objective.y @ few.objective.y)
        self._angles = LeastAngles(few.columns, few.objective.y, self._signed, few.products)

    def models(self, radii: Sequence[float], tol: float | None = None) -> list[Floats] | None:
        """The coefficients of each radius, or None if one of them misses the tolerance."""
        few, radius = self._few, np.asarray(radii)
        with one_blas_thread():
            found = self._angles.weights(radii)
            if self._angles.lost:
                return None
            found *= np.minimum(radius / np.maximum(np.abs(found).sum(axis=1), TINY), 1.0)[:, None]
            residual = few.objective.y[:, None] - few.columns @ found.T
            slopes = 2.0 * (few.columns.T @ residual)
        steepest = (np.abs(slopes) if self._signed else slopes).max(axis=0, initial=0.0)
        gaps = radius * steepest - np.sum(slopes * found.T, axis=0)
        losses = np.sum(residual * residual, axis=0)
        enough = (tol or self._tol) * np.maximum(losses, NEGLIGIBLE * self.loss)
        return list(found) if np.all(np.minimum(gaps, losses) <= enough) else None

    def penalty(self, radius: float) -> float:
        """What the loss falls by, for each unit that the radius grows."""
        return self._angles.penalty(radius)

    def norm(self, radius: float) -> float:
        """The norm of the best coefficients."""
        return self._angles.norm(radius)


class KnownWalk(Walk):
    """A walk along a path that is known: there is nothing to solve, nor to send.

    Where the path is lost, it is walked as any other.
    """

    def __init__(self, path: WholePath, *walk: Any) -> None:
        self._path, self._exact = path, 0.0
        #: The radii asked for, until the path is lost.
        self._walked: list[float] | None = []
        super().__init__(*walk)

    def _empty(self) -> tuple[float, float]:
        return self._path.penalty(0.0), self._path.loss

    def _to(self, share: float) -> None:
        start = self.points, self._asked
        super()._to(share)
        # All together, certificates take a fraction of the time that they take one by one.
        if self._walked and self._path.models(self._walked, self._exact) is None:
            (self.points, self._asked), self._walked = start, None
            super()._to(share)

    def _solutions(self, goal: float, tol: float) -> Iterator[tuple[float, float]]:
        if self._walked is None:
            yield from super()._solutions(goal, tol)
            return
        self._walked, self._exact = [], tol
        for _ in self._balls(goal):
            self._walked.append(self._asked)
            yield self._path.penalty(self._asked), self._path.norm(self._asked)


def whole_path(few: Condensed | None, ball: Domain, solver: Solver) -> WholePath | None:
    """The path of a table, if it is condensed, and nobody asks for another way to go it."""
    usual = replace(solver, tol=Solver.tol) == Solver()
    return WholePath(few, ball, solver.tol) if usual and few is not None else None
