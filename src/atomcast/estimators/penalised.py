"""The penalised form of a problem over balls: the radius that goes with C, found by the way.

The minimiser of ``||w||^2 / 2 + C loss(w)`` is that of the loss over the ball of radius beta, where
beta is C times the slope of the loss along the radius. The slope falls as the radius grows, so that
the radius is a root, and the loop finds it along a path of balls, of which each knows all that was
broadcast for those before it. The gap of the penalised form follows from what a ball's run leaves
behind: with N = ||w||, the gradient's product <w, gradient> and the best merit m of any atom, it is
``N^2 / 2 + C <w, gradient> + (C m)^2 / 2`` (Fenchel duality).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import one_blas_thread
from atomcast.data.shards import Shards
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.messages.status import Status
from atomcast.objectives import Objective
from atomcast.problems.problem import Problem
from atomcast.storage.checkpoint import Checkpoint

Floats = NDArray[np.float64]
#: The problem of a radius, of a value that is as good as zero, and of whether a fit that leaves
#: less than a share of that is good enough, whatever its duality gap.
Make = Callable[[float, float, bool], Problem]
#: The norm of the weights of a result.
Norm = Callable[[Result], float]

#: The first radius, as a share of what the radius is at most.
FIRST = 1e-2
#: Balls that are not the last need not be solved to a smaller relative gap than this.
ROUGH = 1e-2
#: The radius is nearly right where N and C m differ by less than this share.
NEAR = 0.5
#: By how many times the relative gap of its ball, at most, a radius that was tried is another.
DOUBT = 2.0
#: So many balls are tried; five or so are usual.
MOST = 40


@dataclass(frozen=True)
class Penalised:
    """A solution of the penalised form, as far as it is known how good it is.

    Parameters
    ----------
    result : Result
        Of the ball with radius `beta`.
    beta, C, norm : float
    slope : float
        The best merit of any atom: what a longer radius promises at most.
    objective, gap : float
        Of the penalised form.
    """

    result: Result
    beta: float
    C: float
    norm: float
    slope: float
    objective: float
    gap: float

    @staticmethod
    def of(result: Result, beta: float, C: float, norm: float, objective: Objective) -> Penalised:
        """What the result of a ball says of the penalised form."""
        slope, inner = slopes(result, beta, objective)
        value = 0.5 * norm**2 + C * result.objective
        gap = 0.5 * norm**2 + C * inner + 0.5 * (C * slope) ** 2
        if result.gap >= result.objective and value > 0.0:  # a fit that leaves as good as no loss
            slope, gap = -inner / max(norm, 1e-300), np.inf
        return Penalised(result, beta, C, norm, slope, value, max(gap, 0.0))

    @property
    def relative_gap(self) -> float:
        """The gap divided by the objective."""
        return self.gap / max(self.objective, 1e-300)

    @property
    def excess(self) -> float:
        """How much longer the radius is than it should be; negative where it is too short."""
        return self.norm - self.C * self.slope

    @property
    def guessed(self) -> bool:
        """Whether nothing but a guess says that the radius is too short."""
        return bool(np.isinf(self.gap)) and self.excess < 0.0


def slopes(result: Result, beta: float, objective: Objective) -> tuple[float, float]:
    """The best merit of any atom, and <w, gradient>, at the solution of a ball."""
    assert result.image is not None
    inner = float(np.vdot(result.image, objective.gradient(result.image)))
    return max(result.gap - inner, 0.0) / beta, inner


def as_penalised(result: Result, objective: float, gap: float, rounds: int, done: bool) -> Result:
    """The result of a ball as one of the penalised form; `done` if its gap is small enough."""
    status: Status = "stopped" if result.status == "optimal" else result.status
    return replace(
        result,
        objective=objective,
        gap=gap,
        relative_gap=gap / max(objective, 1e-300),
        rounds=rounds,
        status="optimal" if done else status,
    )


def refuse_checkpoints(solver: Solver, where: str, remedy: str) -> None:
    """Refuse to write or resume what could not be gone on with."""
    writes = any(isinstance(callback, Checkpoint) for callback in solver.callbacks)
    if writes or solver.resume is not None:
        raise ValueError(
            f"checkpoints are neither written nor resumed where {where}: give {remedy}"
        )


class RadiusSearch:
    """The search for the radius that goes with C.

    Parameters
    ----------
    make : callable
        The problem of a radius.
    norm : callable
        The norm of the weights of a result.
    objective : Objective
    C, tol : float
        The relative gap of the penalised form to reach is `tol`.
    """

    def __init__(self, make: Make, norm: Norm, objective: Objective, C: float, tol: float) -> None:
        self._make, self._norm, self._objective = make, norm, objective
        self._C, self._tol = C, tol
        at_zero = objective.value(np.zeros(objective.d))
        # Convexity: the slope is at most at_zero / beta, and beta is C times the slope.
        self._longest = float(np.sqrt(C * at_zero)) or 1.0
        self._low, self._high = 0.0, self._longest
        self._tried: list[Penalised] = []

    def solve(self, solver: Solver, shards: Shards, cluster: Any) -> tuple[Penalised, Result]:
        """The solution, and what its run and those before it come to for the penalised form."""
        # Half of the gap is left to the ball, half to its radius.
        halved = solver.but(tol=0.5 * self._tol)
        path = halved.solve_path(self._balls(), shards, cluster)
        with one_blas_thread(), closing(path) as results:
            for result in results:
                norm = self._norm(result)
                tried = Penalised.of(result, self._beta, self._C, norm, self._objective)
                self._tried.append(tried)
                ended = result.status not in ("optimal", "stopped")
                if ended or tried.relative_gap <= self._tol or len(self._tried) == MOST:
                    break
        rounds = sum(each.result.rounds for each in self._tried)
        done = tried.relative_gap <= self._tol
        return tried, as_penalised(result, tried.objective, tried.gap, rounds, done)

    def _balls(self) -> Iterator[Problem]:
        """Balls to try, each chosen when the one before it is solved."""
        self._beta, norm, lossless = FIRST * self._longest, 0.0, True
        rough = max(ROUGH / self._tol, 1.0)
        while True:
            yield self._make(self._beta, rough * 0.5 * self._beta**2 / self._C, lossless)
            last = self._tried[-1]
            near = abs(last.excess) <= NEAR * last.norm
            right = abs(last.excess) <= self._tol**0.5 * last.norm
            doubt = DOUBT * rough * self._tol
            unknown = bool(np.isinf(last.gap))  # so hard a margin that only duality tells
            if last.excess >= 0.0:
                self._high = min(self._high, (1.0 + doubt) * last.norm)
            elif not last.guessed:
                self._low = max(self._low, (1.0 - doubt) * last.norm)
            if unknown and lossless and (near or last.excess < 0.0):
                lossless = False
            elif rough <= 1.0 or not right:  # else it is the ball that is not solved well enough
                self._beta = self._next(last)
            # Where nothing moved, as all was good enough, good enough must be better.
            rough = 0.1 * rough if last.norm == norm else min(rough, 1.0) if near else rough
            norm = last.norm

    def _next(self, last: Penalised) -> float:
        """Where the radius would be right if the logarithm of the slope went on as a line."""
        low, high = self._low, self._high
        guess = _crossing(self._C, last.beta, self._clipped(last), self._fall(last))
        margin = 1e-3 * (high - low)
        if low + margin < guess < high - margin:
            return guess
        return 0.5 * (low + high) if low else 0.25 * high

    def _fall(self, last: Penalised) -> float:
        """How fast the logarithm of the slope falls with the radius."""
        before = [t for t in self._tried if t.norm != last.norm and not t.guessed]
        if not before:  # as if the loss fell by a constant factor
            return last.slope / max(last.result.objective, 1e-300)
        # From the nearest on the other side of the root, if there is one.
        across = [t for t in before if (t.excess < 0.0) != (last.excess < 0.0)]
        other = min(across or before, key=lambda t: abs(t.norm - last.norm))
        ratio = self._clipped(other) / self._clipped(last)
        return float(np.log(ratio) / (last.norm - other.norm))

    def _clipped(self, tried: Penalised) -> float:
        """The slope; far beyond the root, where it may be zero, its logarithm means nothing."""
        return max(tried.slope, 0.1 * tried.norm / self._C)


def _crossing(C: float, beta: float, slope: float, fall: float) -> float:
    """The radius b = C slope exp(-fall (b - beta)), by bisection on logarithms; 0 if none."""
    if not slope > 0.0:
        return 0.0
    if not fall > 0.0:
        return C * slope if fall == 0.0 else 0.0
    low, high = -700.0, 700.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        too_long = middle + fall * (np.exp(middle) - beta) > np.log(C * slope)
        low, high = (low, middle) if too_long else (middle, high)
    return float(np.exp(low))
