"""Costs of runs that may have ended too early: from what they spent to infinity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from atomcast.experiments import curves
from atomcast.experiments.curves import Point

#: The smallest and the largest that a cost may be.
Range = tuple[float, float]


def cost_range(cost: float, rows: Sequence[Point], panel: str, method: str, axis: str) -> Range:
    """What a method needs: known where it arrived, else at least what each of its runs spent."""
    if cost < np.inf:
        return cost, cost
    runs = curves.runs_of(rows, panel, method)
    spent = min((max(getattr(row, axis) for row in run) for run in runs), default=0.0)
    return float(spent), np.inf


def settled(
    test: Callable[[float, float], bool], ours: Range, theirs: Range, scale: float = 1.0
) -> bool | None:
    """Whether two costs pass a test; None where that depends on what was not run.

    Parameters
    ----------
    test : callable
        Of both costs; it may change its mind where one is `scale` times the other, and where they
        are equal.
    ours, theirs : Range
    scale : float
    """
    steps = (1.0, scale, 1 / scale)
    mine = _places(ours, [end * step for end in theirs for step in steps])
    his = _places(theirs, [end * step for end in ours for step in steps])
    # Two costs that are both unknown can be in any order.
    if ours[1] == theirs[1] == np.inf:
        return None
    found = {bool(test(a, b)) for a in mine for b in his}
    return found.pop() if len(found) == 1 else None


def known(cases: Sequence[bool | None]) -> list[bool]:
    """The cases that are settled."""
    return [case for case in cases if case is not None]


def _places(within: Range, candidates: Sequence[float]) -> set[float]:
    low, high = within
    return {low, high, *(place for place in candidates if low <= place <= high)}
