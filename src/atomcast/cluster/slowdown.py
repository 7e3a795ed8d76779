"""Real nodes that take longer than they need: for trying out what slow nodes do to a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from atomcast.cluster.node import Fleet
from atomcast.loop.replica import Replica
from atomcast.messages.proposals import Proposals, Request
from atomcast.network.faults import Faults


@dataclass(frozen=True)
class Slowdown:
    """How slow a node is made.

    Parameters
    ----------
    compute : float
        Seconds that it takes at least to score one atom.
    factor : float
        How many times longer than that, or than it really takes, it takes in the end.
    """

    compute: float = 0.0
    factor: float = 1.0

    def sleep(self, spent: float, atoms: int) -> None:
        """Sleep for what is missing after so many seconds of work on so many atoms."""
        time.sleep(max(self.factor * max(spent, self.compute * atoms) - spent, 0.0))


class SlowFleet(Fleet):
    """A fleet that sleeps after it has scored its atoms."""

    def __init__(self, slowdown: Slowdown, *parts: Any) -> None:
        super().__init__(*parts)
        self._slowdown = slowdown

    def _propose_from(self, part: Fleet, replica: Replica, request: Request) -> Proposals:
        start = time.perf_counter()
        proposals = super()._propose_from(part, replica, request)
        scored = int(self.scored.sum())
        if scored:
            self._slowdown.sleep(time.perf_counter() - start, scored)
        return proposals


def as_slow(kind: Callable[..., Fleet], slowdown: Slowdown | None) -> Callable[..., Fleet]:
    """What makes fleets of this kind, or slow ones."""
    return kind if slowdown is None else partial(SlowFleet, slowdown)


def slowdown_of(node: int, compute: float | None, faults: Faults | None) -> Slowdown | None:
    """How slow a node of a cluster is made, if it is."""
    factor = 1.0 if faults is None else float(faults.slow.get(node, 1.0))
    return None if compute is None and factor == 1.0 else Slowdown(compute or 0.0, factor)
