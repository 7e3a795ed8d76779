"""What runs need, where some may have ended too early: from what they spent to infinity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from atomcast.experiments.runs import curves
from atomcast.experiments.runs.curves import Point

LEFT_OUT = ". Where neither arrives, or a run ended too early to tell, does not count"


class Range(NamedTuple):
    """The smallest and the largest that a cost, or a ratio of two, may be."""

    low: float
    high: float

    @classmethod
    def of(cls, row: Any, name: str) -> Self:
        """The range of a cost from a row with the fields `least_NAME` and `NAME`."""
        return cls(getattr(row, f"least_{name}"), getattr(row, name))

    def over(self, other: Range) -> Range:
        """How many times another this may be; anything, if neither is known."""
        return Range(self.low / other.high, self.high / other.low if other.low else np.inf)

    def above(self, times: float) -> bool | None:
        """Whether it is above a number; None where that depends on what was not run."""
        return True if self.low > times else False if self.high <= times else None


def known(cases: Iterable[bool | None]) -> list[bool]:
    """The cases that are settled."""
    return [case for case in cases if case is not None]


def spent(runs: Iterable[Sequence[Point]], axis: str) -> list[float]:
    """How far along an axis each run went."""
    return [float(max(getattr(row, axis) for row in run)) for run in runs]


def cost_range(runs: Sequence[Sequence[Point]], axis: str, targets: Sequence[float]) -> Range:
    """What runs need on average to reach an objective each.

    Known where all arrived; else at least the mean of what they needed, or spent in vain.
    """
    needed = [curves.first_at(run, axis, target) for run, target in zip(runs, targets, strict=True)]
    least = np.minimum(needed, spent(runs, axis))
    return Range(float(np.mean(least)), float(np.mean(needed)))
