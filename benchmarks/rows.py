"""A row of a comparison: one problem, and how long each library takes to the same certified gap."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was measured.

    Parameters
    ----------
    problem : str
    size : int
        How many features, groups or examples the model has.
    seconds : dict
        The least processor time by library, "atomcast" among them; whoever did not reach the gap
        is missing.
    """

    problem: str
    size: int
    seconds: dict[str, float]

    @property
    def ratio(self) -> float:
        """Our time divided by that of the fastest other library; NaN if there is none."""
        others = [taken for name, taken in self.seconds.items() if name != "atomcast"]
        return self.seconds.get("atomcast", float("nan")) / min(others, default=float("nan"))


def least_times(fits: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The least processor time of several calls of each, which take turns."""
    seconds = dict.fromkeys(fits, float("inf"))
    for _ in range(repeats):
        for name, fit in fits.items():
            start = time.process_time()
            fit()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds
