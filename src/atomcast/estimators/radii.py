"""Radii along the penalised path, from an empty model to one that is hardly constrained.

A solution w of the penalised problem, min loss(w) + penalty * ||w||_1, is also the solution of the
ball of radius ||w||_1. The other way round, the solution of a ball tells its penalty: the slope of
the loss along the radius, -<w, gradient> / radius. So the path can be walked by radius, with warm
starts and without a message that an ordinary fit would not send, and its end points found where
users of penalties expect them: at the penalty that leaves no feature, and at a small share of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast._checks import check_count, check_numbers, check_positive
from atomcast.data.shards import Shards
from atomcast.loop.solver import Solver
from atomcast.network.ledger import Ledger
from atomcast.problems.problem import Problem

Floats = NDArray[np.float64]
#: The problem of a radius.
Make = Callable[[float], Problem]

#: A path ends where the penalty is this share of the one that leaves nothing in the model.
SHARE = 1e-3
#: The first step of a walk, as a share of the radius below which the loss cannot be all explained.
FIRST = 1e-2
#: Where the penalty falls by more than this factor in a step, the walk goes back and looks closer.
LEAP = 8.0
#: Walks end after so many steps; fifteen or so are usual.
LONGEST = 60


def checked_betas(betas: ArrayLike) -> Floats:
    """The radii in rising order, or an error if one of them is not a positive number."""
    radii = np.sort(np.atleast_1d(check_numbers("betas", betas, "a list of radii")))
    if radii.ndim != 1 or not len(radii):
        raise ValueError(f"betas must be a list of one or more radii, got {betas!r}")
    for beta in radii:
        check_positive("betas", float(beta), "each a radius of the l1 ball")
    return radii


def radius_names(betas: Iterable[float]) -> list[str]:
    """What disclosures call the runs of a path."""
    return [f"radius {beta:.4g}" for beta in betas]


class Walk:
    """A walk along the path on all rows.

    Parameters
    ----------
    make : callable
        The problem of a radius.
    gradient : callable
        The gradient of the loss at an image.
    ledgers : list of Ledger
        What the walk sends is added to it.

    Attributes
    ----------
    points : array of shape (k, 2)
        Radii, rising, and the penalties that go with them, falling; the first radius is zero.
    """

    def __init__(
        self,
        make: Make,
        gradient: Callable[[Any], Any],
        shards: Shards,
        cluster: Any,
        ledgers: list[Ledger],
        points: Floats | None = None,
    ) -> None:
        self._make, self._gradient = make, gradient
        self._shards, self._cluster, self._ledgers = shards, cluster, ledgers
        self._asked = 0.0 if points is None else float(points[-1, 0])
        self.points: Floats = self._start() if points is None else points

    def _start(self) -> Floats:
        """Where the path begins, and how far the first step goes."""
        steepest, loss = self._empty()
        if steepest > 0.0:  # else no feature is of any use
            self._asked = FIRST * loss / steepest
        return np.array([[0.0, steepest]])

    def _empty(self) -> tuple[float, float]:
        """Of the empty model, steepest slope and loss: one exchange of scores tells."""
        begin = Solver(max_rounds=0)
        empty = begin.solve(self._make(1.0), self._shards, self._cluster)
        self._ledgers.append(empty.ledger)
        return empty.gap, empty.objective

    def _to(self, share: float) -> None:
        """Walk on until the penalty is this share of the largest one."""
        goal = share * self.points[0, 1]
        if self._arrived(goal):
            return
        # Penalties are read off the solutions, which must be more exact than a model need be.
        for penalty, norm in islice(self._solutions(goal, 1e-4 * share), LONGEST):
            self._reach(penalty, norm, goal)
            if self._arrived(goal):
                break

    def _solutions(self, goal: float, tol: float) -> Iterator[tuple[float, float]]:
        """Penalty and norm of each solution on the way to the goal; penalties are best scores."""
        balls = self._balls(goal)
        path = Solver(tol=tol).solve_path(balls, self._shards, self._cluster, straight=True)
        for k, result in enumerate(path):
            if k == 0:  # they all have the same
                self._ledgers.append(result.ledger)
            inner = float(np.vdot(result.image, self._gradient(result.image)))
            norm = float(np.abs(result.atom_weights).sum())
            yield max(result.gap - inner, 0.0) / self._asked, norm

    def _arrived(self, goal: float) -> bool:
        """Whether the points lead to the goal without a leap."""
        return bool(self.points[-1, 1] <= goal) and self._leap(goal) is None

    def _leap(self, goal: float) -> int | None:
        """The first point after which the penalty falls too far for a line to do, or None."""
        radius, penalty = self.points.T
        apart = np.diff(radius) > 1e-3 * radius[1:]
        leaps = np.flatnonzero(apart & (penalty[:-1] > goal) & (penalty[1:] < penalty[:-1] / LEAP))
        return int(leaps[0]) if len(leaps) else None

    def _balls(self, goal: float) -> Iterator[Problem]:
        """Balls to go to, each chosen when the one before it is solved."""
        while True:
            if len(self.points) > 1:
                self._asked = self._next(goal)
            yield self._make(self._asked)

    def _next(self, goal: float) -> float:
        """Where the penalty would be half of what it is, if the last piece of the path went on.

        The path of the lasso is piecewise linear in the penalty, and mostly steeper from piece to
        piece: so this goes less far rather than further, and sends no feature before its time.
        """
        leap = self._leap(goal)
        if leap is not None:
            return float(self.points[leap : leap + 2, 0].mean())
        (before, high), (radius, low) = self.points[-2:].tolist()
        if high - low <= 1e-9 * high:
            return 2.0 * self._asked
        return float(radius + (radius - before) / (high - low) * (low - max(low / 2, 0.8 * goal)))

    def _reach(self, penalty: float, norm: float, goal: float) -> None:
        """Add a solution to the points."""
        radius = self._asked
        after = self.points[self.points[:, 0] > radius]
        if penalty <= goal and norm < radius:  # the ball hardly binds: the path ends about there
            radius, after = norm, after[:0]
        before = self.points[self.points[:, 0] < radius]
        self.points = np.vstack([before, [[radius, penalty]], after])
        self.points[:, 1] = np.minimum.accumulate(self.points[:, 1])

    def radii(self, count: int, more: int = 0) -> Floats:
        """Walk as far as it takes, and return radii whose penalties fall by a constant factor.

        Parameters
        ----------
        count : int
            How many from the largest penalty to `SHARE` of it, or, if it is one, at the latter.
        more : int
            How many beyond that, by the same factor.
        """
        check_count("n_betas", count, "radii to try")
        steps = np.arange(count + more) / (count - 1) if count > 1 else np.ones(1)
        self._to(float(SHARE ** steps[-1]))
        if len(self.points) == 1:  # no feature is of any use: neither is any radius
            return np.geomspace(1e-3, 1.0, count)
        penalties = self.points[0, 1] * SHARE**steps
        radii: Floats = np.interp(-penalties, -self.points[:, 1], self.points[:, 0])
        radii = np.unique(radii)
        if radii[0] == 0.0:  # the empty model, for which a ball must have some radius
            radii[0] = 1e-3 * radii[1]
        return radii
