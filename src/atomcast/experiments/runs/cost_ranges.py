"""What runs need, where some may have ended too early: from what they spent to infinity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from atomcast.experiments.runs import curves
from atomcast.experiments.runs.curves import Point

#: The smallest and the largest that a cost, or a ratio of two, may be.
Range = tuple[float, float]
LEFT_OUT = ". Where neither arrives, or a run ended too early to tell, does not count"


def spent(runs: Iterable[Sequence[Point]], axis: str) -> list[float]:
    """How far along an axis each run went."""
    return [float(max(getattr(row, axis) for row in run)) for run in runs]


def cost_range(runs: Sequence[Sequence[Point]], axis: str, targets: Sequence[float]) -> Range:
    """What runs need on average to reach an objective each.

    Known where all arrived; else at least the mean of what they needed, or spent in vain.
    """
    needed = [
        curves.needed(run, run[0].panel, run[0].method, axis, "objective", target)
        for run, target in zip(runs, targets, strict=True)
    ]
    return float(np.mean(np.minimum(needed, spent(runs, axis)))), float(np.mean(needed))


def range_of(row: Any, name: str) -> Range:
    """The range of a cost from a row with the fields `least_NAME` and `NAME`."""
    return getattr(row, f"least_{name}"), getattr(row, name)


def ratio(ours: Range, theirs: Range) -> Range:
    """How many times ours theirs may be; anything, if neither is known."""
    return theirs[0] / ours[1], theirs[1] / ours[0] if ours[0] else np.inf


def settled(low: float, high: float, times: float) -> bool | None:
    """Whether a ratio is above a number; None where that depends on what was not run."""
    return True if low > times else False if high <= times else None


def known(cases: Iterable[bool | None]) -> list[bool]:
    """The cases that are settled."""
    return [case for case in cases if case is not None]
