"""Which weights of a run are the ones to return: those that are certified best."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from atomcast.loop.replica import Replica
from atomcast.loop.result import Result
from atomcast.loop.session import Session
from atomcast.loop.trace import Trace
from atomcast.messages.status import Status


class Best:
    """The weights with the smallest gap so far: the ones that are certified best.

    Weights whose relative gap is within the tolerance end the run, and are the ones to return:
    others with a smaller gap may have so small an objective that theirs is not.
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.gap = self.lowest = math.inf
        self.objective = self.relative_gap = math.nan
        self.ids: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.weights: NDArray[np.float64] = np.zeros(0)
        self.all_weights: NDArray[np.float64] = np.zeros(0)
        self.image: NDArray[np.float64] | None = None
        self.idle = 0
        self.round = -1

    def consider(self, replica: Replica, gap: float, grew: bool = False) -> None:
        """Keep the current weights if no earlier ones have as small a gap.

        Also count the rounds without progress: no atom was new, the gap did not shrink and the
        objective did not fall; for with most steps the gap may rise for a long time while the
        objective falls.
        """
        value, relative_gap = replica.objective, gap / replica.unit
        first, resumed = self.round < 0, self.round == replica.round
        progress = first or grew or gap < self.gap or value < self.lowest
        if not resumed:  # else this round was counted before the interruption
            self.idle = 0 if progress else self.idle + 1
        self.round = replica.round
        self.lowest = min(self.lowest, value)
        if first or gap <= self.gap or relative_gap <= self.tol:
            self.gap, self.relative_gap = gap, relative_gap
            self.objective = value if replica.feasible else math.nan
            self.keep(replica)

    def keep(self, replica: Replica) -> None:
        """Keep the current weights."""
        self.image = replica.active.image
        self.ids, self.weights = replica.active.support()
        self.all_weights = replica.active.weights.copy()

    def result(
        self, status: Status, rounds: int, replica: Replica, session: Session, trace: Trace
    ) -> Result:
        """The result of a run that ended with `status`."""
        bounded = replica.domain.bounded
        return Result(
            objective=self.objective,
            gap=self.gap if bounded else None,
            relative_gap=self.relative_gap if bounded else None,
            rounds=rounds,
            status=status,
            atom_ids=self.ids,
            atom_weights=self.weights,
            n=replica.active.total(session.n),
            atom_extras=replica.active.extras_of(self.ids),
            image=self.image,
            trace=trace,
            ledger=session.ledger,
            content=replica.active.content(self.ids),
            radius=dict(replica.radius),
            family=replica.problem.family,
        )
