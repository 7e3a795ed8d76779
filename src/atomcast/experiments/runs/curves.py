"""Curves of several runs: rows for the CSV file, mean and spread, and where a curve stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.loop.trace import Trace

Floats = NDArray[np.float64]

#: Methods that several figures show.
CLASSIC, CORRECTIVE = "dFW, classic step (the paper)", "dFW, corrective step"
#: Algorithm 3 sends an atom each time it wins; nodes could as well keep it.
ONCE = "dFW, classic step, atoms sent once"
#: A run of thousands of rounds is written with so many of them, evenly spread on a log scale.
KEPT_ROUNDS = 400


class Point(NamedTuple):
    """One iterate of one run on the problem `panel`; `values`, `bytes` are the traffic so far."""

    panel: str
    method: str
    run: int
    round: int
    seconds: float
    objective: float
    mse: float
    gap: float
    atoms: int
    values: int
    bytes: int


class Average(NamedTuple):
    """Mean and spread of the runs of a method at one place of the horizontal axis."""

    panel: str
    method: str
    axis: str
    x: float
    mean: float
    low: float
    high: float


def points(
    panel: str,
    method: str,
    run: int,
    trace: Trace,
    d: int | None = None,
    seconds: Sequence[float] | None = None,
) -> list[Point]:
    """The rows of a trace, thinned out where there are very many.

    The mean squared error is the objective divided by d; without d, there is none (NaN). `seconds`
    are used instead of the trace's.
    """
    rows = list(trace)
    kept = np.unique(np.geomspace(1, len(rows), KEPT_ROUNDS).astype(int) - 1)
    clock = [row.seconds for row in rows] if seconds is None else seconds
    return [
        Point(
            panel, method, run, row.round, clock[k], row.objective, row.objective / (d or np.nan),
            row.gap, row.atoms, row.values, row.bytes,
        )
        for k, row in ((k, rows[k]) for k in kept.tolist())
    ]  # fmt: skip


def best_so_far(rows: Sequence[Point], x: str, y: str) -> tuple[Floats, Floats]:
    """The axis and the smallest y up to there, of one run, where x is above zero.

    On a simplex there is no y (NaN) before the first atom.
    """
    across = np.array([getattr(row, x) for row in rows], dtype=np.float64)
    best = np.fmin.accumulate([getattr(row, y) for row in rows])
    shown = (across > 0) & ~np.isnan(best)
    return across[shown], best[shown]


def sampled(rows: Sequence[Point], x: str, y: str, grid: Floats) -> Floats:
    """What one run had reached at each place of a grid; NaN before its first iterate."""
    across, best = best_so_far(rows, x, y)
    place = np.searchsorted(across, grid * (1 + 1e-12), side="right") - 1
    return np.where(place >= 0, best[np.maximum(place, 0)], np.nan)


def runs_of(rows: Iterable[Point], panel: str, method: str) -> list[list[Point]]:
    """The runs of a method on a problem."""
    by_run: dict[int, list[Point]] = {}
    for row in rows:
        if row.panel == panel and row.method == method:
            by_run.setdefault(row.run, []).append(row)
    return list(by_run.values())


def average(
    rows: Sequence[Point], panel: str, method: str, x: str, y: str, places: int = 200
) -> list[Average]:
    """Mean, smallest and largest of the runs, on a grid from where all have begun."""
    runs = runs_of(rows, panel, method)
    ends = [best_so_far(run, x, y)[0][[0, -1]] for run in runs]
    first, last = max(end[0] for end in ends), max(end[1] for end in ends)
    grid = np.geomspace(first, last, places) if last > first else np.array([first])
    reached = np.array([sampled(run, x, y, grid) for run in runs])
    return [
        Average(panel, method, x, *map(float, numbers))
        for numbers in zip(
            grid, reached.mean(axis=0), reached.min(axis=0), reached.max(axis=0), strict=True
        )
    ]


#: The lines of a picture, by panel, method and what else tells them apart.
Lines = Mapping[tuple[str, ...], list[Average]]


def needed(rows: Sequence[Point], panel: str, method: str, x: str, y: str, target: float) -> float:
    """How far along an axis the runs must go, on average, to reach a target; inf if one did not."""
    costs = []
    for run in runs_of(rows, panel, method):
        across, best = best_so_far(run, x, y)
        there = np.flatnonzero(best <= target)
        costs.append(across[there[0]] if len(there) else np.inf)
    return float(np.mean(costs)) if costs else np.inf


def reached_at(
    rows: Sequence[Point], panel: str, method: str, x: str, y: str, place: float
) -> float:
    """The mean over runs of the smallest y up to a place; NaN if some run begins later."""
    grid = np.array([place])
    return float(np.mean([sampled(run, x, y, grid)[0] for run in runs_of(rows, panel, method)]))
