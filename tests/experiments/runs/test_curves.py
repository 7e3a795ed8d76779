"""Averages of curves as they were, and what runs have reached, on a grid that all have begun."""

from __future__ import annotations

import math

import numpy as np
import pytest

from atomcast.experiments.runs import admm_runs, curves, jobs
from atomcast.loop.trace import Row, Trace


def trace_of(values, objectives):
    trace = Trace()
    for k, (sent, objective) in enumerate(zip(values, objectives, strict=True)):
        trace.append(Row(k, 0.5 * k, objective, 1.0, k, sent, 8 * sent))
    return trace


def two_runs():
    first = curves.points("p", "m", 0, trace_of([0, 10, 100], [8.0, 4.0, 6.0]), 2)
    return first + curves.points("p", "m", 1, trace_of([0, 20, 200], [8.0, 2.0, 1.0]), 2)


def test_a_run_has_reached_its_best_so_far():
    run = two_runs()[:3]
    reached = curves.sampled(run, "values", "objective", np.array([5.0, 10.0, 99.0, 1e6]))
    np.testing.assert_array_equal(reached, [np.nan, 4.0, 4.0, 4.0])
    assert [row.mse for row in run] == [4.0, 2.0, 3.0]


def test_averages_begin_where_all_runs_have_begun():
    lines = curves.average(two_runs(), "p", "m", "values", "objective", places=50)
    assert lines[0].x == pytest.approx(20)
    assert lines[-1].x == pytest.approx(200)
    assert (lines[0].mean, lines[0].low, lines[0].high) == (3.0, 2.0, 4.0)
    # The first run went up again, and that is shown.
    assert (lines[-1].mean, lines[-1].low, lines[-1].high) == (3.5, 1.0, 6.0)


def test_the_paper_is_judged_by_the_better_of_its_steps():
    classic = curves.points("p", curves.CLASSIC, 0, trace_of([0, 10, 30], [8.0, 9.0, 1.0]))
    search = curves.points("p", curves.LINE_SEARCH, 0, trace_of([0, 20, 40], [8.0, 4.0, 3.0]))
    (both,) = curves.runs_of(classic + search, "p", curves.PAPER)
    grid = np.array([10.0, 20.0, 30.0, 40.0])
    reached = curves.sampled(both, "values", "objective", grid)
    np.testing.assert_array_equal(reached, [9.0, 4.0, 1.0, 1.0])
    assert curves.needed(classic + search, "p", curves.PAPER, "values", 4.0) == 20.0


def test_what_a_target_costs():
    rows = two_runs()
    assert curves.needed(rows, "p", "m", "values", 4.0) == 15.0
    assert curves.needed(rows, "p", "m", "seconds", 4.0) == 0.5
    assert curves.needed(rows, "p", "m", "values", 1.0) == math.inf
    assert curves.needed(rows, "p", "other", "values", 4.0) == math.inf
    assert curves.reached_at(rows, "p", "m", 150.0) == 3.0
    assert math.isnan(curves.reached_at(rows, "p", "m", 15.0))


def test_costs_are_those_of_the_very_round_however_long_the_run():
    trace = trace_of(range(5000), range(5000, 0, -1))
    rows = curves.points("p", "m", 0, trace, 1, seconds=[2.0 * k for k in range(5000)])
    assert [row.round for row in rows] == list(range(5000))
    assert curves.needed(rows, "p", "m", "values", 1003.0) == 3997
    assert rows[-1].seconds == 9998.0


def test_the_best_parameters_are_those_of_the_lowest_curve():
    rows = []
    for k, name in enumerate(admm_runs.NAMES):
        last = 1.0 if k == 4 else 1.5
        rows += curves.points("p", name, 0, trace_of([0, 10, 20], [8.0, 5.0, last]), 1)
    assert admm_runs.best(rows, "p") == admm_runs.NAMES[4]


def test_progress_counts(capsys):
    tell = jobs.Counter("fig9", 2)
    tell("this")
    tell("that")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("fig9 [1/2] this")
    assert lines[1].startswith("fig9 [2/2] that")
