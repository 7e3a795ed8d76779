"""Curves of several runs: rows for the CSV file, mean and spread, and where a curve stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.loop.trace import Trace

Floats = NDArray[np.float64]

#: Methods that several figures show.
CLASSIC, CORRECTIVE = "dFW, classic step (the paper)", "dFW, corrective step"
#: Mixtures of every node's atoms; and atoms that go wherever that costs less.
COMPOUND, AUTO = "dFW, compound atoms", "dFW, auto"
#: The other method of the dense case.
COCOA = "ProxCoCoA"
#: Algorithms 1 and 3 leave the choice: "2/(k+2), or obtained via line search".
LINE_SEARCH = "dFW, line search (the paper)"
#: What the paper is judged by: wherever one looks, the better of its two steps.
PAPERS_STEPS, BETTER = (CLASSIC, LINE_SEARCH), "with the better of the paper's two steps"
PAPER = f"dFW, {BETTER}"
#: Algorithm 3 sends an atom each time it wins; nodes could as well keep it.
ONCE = "dFW, classic step, atoms sent once"


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
    """The rows of a trace.

    The mean squared error is the objective divided by d; without d, there is none (NaN). `seconds`
    are used instead of the trace's.
    """
    rows = list(trace)
    clock = [row.seconds for row in rows] if seconds is None else seconds
    return [
        Point(
            panel, method, run, row.round, spent, row.objective, row.objective / (d or np.nan),
            row.gap, row.atoms, row.values, row.bytes,
        )
        for row, spent in zip(rows, clock, strict=True)
    ]  # fmt: skip


def best_so_far(rows: Sequence[Point], x: str, y: str) -> tuple[Floats, Floats]:
    """The axis and the smallest y up to there, of one run, where x is above zero."""
    across, heights = as_it_was(rows, x, y)
    return across, np.fmin.accumulate(heights)


def as_it_was(rows: Sequence[Point], x: str, y: str) -> tuple[Floats, Floats]:
    """The axis and y itself, which may rise; on a simplex there is none before the first atom."""
    taken = np.array([(getattr(row, x), getattr(row, y)) for row in rows], dtype=np.float64)
    taken = taken[np.argsort(taken[:, 0], kind="stable")]  # runs of two steps may be taken as one
    shown = (taken[:, 0] > 0) & ~np.isnan(taken[:, 1])
    return taken[shown, 0], taken[shown, 1]


def sampled(
    rows: Sequence[Point], x: str, y: str, grid: Floats, read: Callable[..., Any] = best_so_far
) -> Floats:
    """What one run had reached at each place of a grid; NaN before its first iterate."""
    across, heights = read(rows, x, y)
    place = np.searchsorted(across, grid * (1 + 1e-12), side="right") - 1
    return np.where(place >= 0, heights[np.maximum(place, 0)], np.nan)


def runs_of(rows: Iterable[Point], panel: str, method: str) -> list[list[Point]]:
    """The runs of a method on a problem; of `PAPER`, what both steps did."""
    methods = PAPERS_STEPS if method == PAPER else (method,)
    by_run: dict[int, list[Point]] = {}
    for row in rows:
        if row.panel == panel and row.method in methods:
            by_run.setdefault(row.run, []).append(row)
    return list(by_run.values())


def average(
    rows: Sequence[Point], panel: str, method: str, x: str, y: str, places: int = 200
) -> list[Average]:
    """Mean, smallest and largest of the runs, as they were, on a grid from where all have begun."""
    runs = runs_of(rows, panel, method)
    ends = [as_it_was(run, x, y)[0][[0, -1]] for run in runs]
    first, last = max(end[0] for end in ends), max(end[1] for end in ends)
    grid = np.geomspace(first, last, places) if last > first else np.array([first])
    reached = np.array([sampled(run, x, y, grid, as_it_was) for run in runs])
    return [
        Average(panel, method, x, *map(float, numbers))
        for numbers in zip(
            grid, reached.mean(axis=0), reached.min(axis=0), reached.max(axis=0), strict=True
        )
    ]


#: The lines of a picture, by panel, method and what else tells them apart.
Lines = Mapping[tuple[str, ...], list[Average]]


def needed(rows: Sequence[Point], panel: str, method: str, x: str, target: float) -> float:
    """How far along an axis the runs must go, on average, for an objective; inf if one did not."""
    costs = [first_at(run, x, target) for run in runs_of(rows, panel, method)]
    return float(np.mean(costs)) if costs else np.inf


def first_at(run: Sequence[Point], x: str, target: float) -> float:
    """How far along an axis one run must go to reach an objective; inf if it did not."""
    across, heights = as_it_was(run, x, "objective")
    there = np.flatnonzero(heights <= target)
    return float(across[there[0]]) if len(there) else np.inf


def reached_at(rows: Sequence[Point], panel: str, method: str, budget: float) -> float:
    """The mean over runs of the lowest objective for so many values; NaN if one begins later."""
    runs, grid = runs_of(rows, panel, method), np.array([budget])
    return float(np.mean([sampled(run, "values", "objective", grid)[0] for run in runs]))
