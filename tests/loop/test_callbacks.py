"""Callbacks see every round, can stop the run, and may fail without breaking anything."""

import io
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from atomcast.domains.balls import L1Ball
from atomcast.loop.callbacks import Progress, State, TimeLimit, log_progress
from atomcast.loop.solver import Solver
from atomcast.simulation.local import LocalCluster
from atomcast.simulation.local_session import LocalSession
from problems import STEPS, regression, solve


@pytest.fixture
def data():
    return regression(seed=1, d=25, n=60)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("no", [False, np.False_])
def test_false_stops_the_run(data, step, no):
    seen = []

    def stop_at_three(state):
        seen.append(state.round)
        return no if state.round == 3 else None

    how = {"step": step, "tol": 1e-12, "atoms_per_round": 1}
    result = solve(*data, L1Ball(2.0), nodes=4, callbacks=[stop_at_three], **how)
    assert result.status == "stopped"
    assert result.rounds == 3
    assert seen == [0, 1, 2, 3]
    plain = solve(*data, L1Ball(2.0), nodes=4, max_rounds=3, **how)
    np.testing.assert_array_equal(result.weights, plain.weights)
    assert plain.status == "max_rounds"


@pytest.mark.parametrize("yes", [None, True, np.True_])
def test_anything_else_goes_on(data, yes):
    result = solve(*data, L1Ball(1.0), callbacks=[lambda state: yes])
    assert result.status == "optimal"


def test_a_status_stops_for_that_reason(data):
    result = solve(*data, L1Ball(1.0), callbacks=[lambda state: "time_limit"])
    assert (result.status, result.rounds) == ("time_limit", 0)


def test_optimal_goes_before_a_callback_s_wish(data):
    result = solve(*data, L1Ball(1.0), tol=0.9, callbacks=[lambda state: state.relative_gap > 0.9])
    assert result.status == "optimal"


def test_every_callback_is_called_even_if_an_earlier_one_says_stop(data):
    calls = []
    solve(
        *data,
        L1Ball(1.0),
        callbacks=[lambda state: False, lambda state: calls.append(state.round)],
    )
    assert calls == [0]


def test_the_state_is_what_the_trace_records(data):
    states = []
    result = solve(*data, L1Ball(1.0), nodes=3, callbacks=[states.append])
    # The ledger goes on after the row was written, so that only the last row has its totals.
    assert [state.row[:4] for state in states] == [row[:4] for row in result.trace]
    assert states[-1].row == list(result.trace)[-1]
    with pytest.raises(FrozenInstanceError):
        states[0].round = 7


def test_time_limit(data, monkeypatch):
    """By a clock that the test turns itself."""
    now = iter(np.arange(0.0, 1e6, 10.0))
    monkeypatch.setattr("atomcast.loop.rounds.time.perf_counter", lambda: float(next(now)))
    how = {"step": "classic", "tol": 1e-12, "callbacks": [TimeLimit(35.0)]}
    result = solve(*data, L1Ball(1.0), **how)
    assert result.status == "time_limit"
    assert result.rounds == 3
    assert result.trace.seconds.tolist() == [10.0, 20.0, 30.0, 40.0]
    assert np.isfinite(result.gap)


@pytest.mark.parametrize("seconds", [0, -1, np.nan, np.inf, "1"])
def test_a_bad_time_limit(seconds):
    with pytest.raises(ValueError, match="seconds must be a finite number > 0"):
        TimeLimit(seconds)


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt()])
def test_exceptions_get_through_and_close_the_session(data, error, monkeypatch):
    closed = []
    leave = LocalSession.__exit__
    monkeypatch.setattr(
        LocalSession, "__exit__", lambda self, *args: (closed.append(self), leave(self, *args))[1]
    )

    def fail(state):
        if state.round == 1:
            raise error

    solver_with = {"step": "away", "tol": 1e-9}
    with pytest.raises(type(error)):
        solve(*data, L1Ball(1.0), nodes=3, callbacks=[fail], **solver_with)
    assert len(closed) == 1
    # The same objects serve again as if nothing had happened.
    assert solve(*data, L1Ball(1.0), nodes=3, **solver_with).status == "optimal"


def test_a_failed_run_leaves_the_terminal_alone(data):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def fail(state):
        if state.round == 1:
            raise RuntimeError("boom")

    terminal = Terminal()
    progress = Progress(terminal)
    with pytest.raises(RuntimeError, match="boom"):
        solve(*data, L1Ball(1.0), callbacks=[progress, fail], atoms_per_round=1, tol=1e-9)
    progress.close()
    assert progress._live is None
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is shown again


def test_silent_unless_asked(data, capfd):
    solve(*data, L1Ball(1.0), nodes=3)
    out, err = capfd.readouterr()
    assert out == err == ""


def test_verbose_prints_plain_lines_to_stderr(data, capfd):
    result = solve(*data, L1Ball(1.0), nodes=3, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "\x1b" not in err
    lines = err.splitlines()
    assert lines[0].startswith("round     0  objective ")
    assert f"round {result.rounds:>5}" in lines[-1]
    assert f"values sent {result.ledger.values:,}" in lines[-1]


def test_a_terminal_gets_a_live_display(data, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    solve(*data, L1Ball(1.0), nodes=3, verbose=True)
    assert "objective" in terminal.getvalue()
    assert terminal.getvalue().rstrip(" \n").endswith("\x1b[?25h")


def test_progress_is_logarithmic():
    def state(gap, tol):
        return State(0, 0.0, 1.0, gap, gap, tol, None, None)

    assert log_progress(state(1e-2, 1e-4)) == pytest.approx(0.5)
    assert log_progress(state(np.inf, 1e-4)) == log_progress(state(2.0, 1e-4)) == 0.0
    assert log_progress(state(1e-9, 1e-4)) == log_progress(state(0.0, 1e-4)) == 1.0
    assert log_progress(state(0.5, 2.0)) == 1.0


def test_a_solver_can_be_used_again(data):
    X, y = data
    solver = Solver(step="away", tol=1e-6)
    from atomcast.data.shards import Shards
    from atomcast.objectives import SquaredError
    from atomcast.problems.features import explicit_problem

    problem, shards = explicit_problem(SquaredError(y), L1Ball(1.0)), Shards.split(X, 2)
    first, second = (solver.solve(problem, shards, LocalCluster(2)) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)
    assert first.ledger.values == second.ledger.values
    assert len(first.trace) == len(second.trace)
