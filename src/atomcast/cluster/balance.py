"""Rounds that take all nodes the same time: slow ones score fewer atoms until nothing is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.node import Fleet
from atomcast.cluster.pace import Floats, Pace
from atomcast.loop.replica import Replica
from atomcast.messages.proposals import Agreement, Request

Round = Callable[[Replica, Request], Agreement]


class Balance:
    """How fast the nodes of a session are, and the rounds that follow from it.

    Parameters
    ----------
    pace : Pace
        The stated model of computing times. Without one, nodes with a fleet of their own are
        measured, and nodes that are scored in one pass are equally fast.

    Attributes
    ----------
    resumed : bool
        Whether a run goes on in the middle, whose nodes a stated pace has told apart before.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.resumed = False
        self._speeds: Floats | None = None

    def agree(
        self, replica: Replica, request: Request, round: Round, fleets: Sequence[Fleet]
    ) -> Agreement:
        """A round in which slow nodes leave atoms out, or one in which all atoms count.

        The second follows at once if the first one has nothing to offer that the tolerance asks
        for: it certifies the gap, or finds what was missed.
        """
        first = 1 if replica.problem.sample else 0  # round in which all atoms are scored
        if self.resumed and self._pace.compute and replica.round > first:
            self._measure(fleets[0].sizes, fleets)
        self.resumed = False
        agreement = self._round(replica, request, round, fleets)
        if agreement.complete or not _exhausted(replica, agreement):
            return agreement
        return self._round(replica, replace(request, complete=True), round, fleets)

    def _round(
        self, replica: Replica, request: Request, round: Round, fleets: Sequence[Fleet]
    ) -> Agreement:
        agreement = round(replica, request)
        scored = np.sum([fleet.scored for fleet in fleets], axis=0)
        everything = sum(len(fleet.ids) for fleet in fleets)
        if scored.sum() < everything:
            return agreement._replace(complete=request.random)
        self._measure(scored, fleets)
        return agreement

    def _measure(self, scored: NDArray[np.int64], fleets: Sequence[Fleet]) -> None:
        """Tell the fleets how fast all nodes are, now that each has scored all its atoms."""
        busy = scored > 0
        if self._pace.compute:
            seconds = self._pace.seconds(scored)
        elif len(fleets) > 1:
            seconds = np.array([fleet.seconds for fleet in fleets])
        else:
            seconds = scored.astype(np.float64)
        speeds = np.ones(len(scored))
        speeds[busy] = scored[busy] / np.maximum(seconds[busy], 1e-9)
        # A node may have been held up by something else: its fastest time counts.
        self._speeds = speeds if self._speeds is None else np.maximum(speeds, self._speeds)
        for fleet in fleets:
            fleet.speeds = self._speeds


def _exhausted(replica: Replica, agreement: Agreement) -> bool:
    """Whether what was scored has nothing left to offer that the tolerance asks for."""
    if not len(agreement.id):
        return True
    inner = replica.active.inner() if agreement.inner is None else agreement.inner
    return replica.domain.gap(inner, agreement.best) <= replica.target
