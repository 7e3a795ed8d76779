"""Ctrl-C: the first one ends a run with a model, the second one raises; nothing stays behind."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from atomcast import (
    Checkpoint,
    Faults,
    KernelSVC,
    L1AdaBoost,
    Lasso,
    LassoCV,
    LocalCluster,
    RandomSubset,
    Solver,
    lasso_path,
)
from atomcast.domains.balls import L1Ball
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.rounds import Watchers
from certificates import true_gap
from problems import regression, solve

X, Y = regression(seed=3, d=40, n=60)
#: Far more rounds than any test lets it have.
SLOW = {"step": "classic", "tol": 1e-12}


@pytest.fixture(autouse=True)
def as_in_a_terminal():
    """Tests may run where Ctrl-C is not heard: in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


class CtrlC:
    """A user who presses Ctrl-C in these rounds, counted over all problems."""

    def __init__(self, *rounds, number=signal.SIGINT):
        self.rounds, self.number, self.seen = rounds, number, 0

    def __call__(self, state):
        if self.seen in self.rounds:
            signal.raise_signal(self.number)
        self.seen += 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_the_first_ends_the_run_after_the_round_with_the_best_model(number):
    model = Lasso(2.0, cluster=3, solver=Solver(callbacks=[CtrlC(3, number=number)], **SLOW))
    with pytest.warns(ConvergenceWarning, match=r"after 3 rounds.*the run was interrupted"):
        model.fit(X, Y)
    result = model.result_
    assert (result.status, result.rounds, len(result.trace)) == ("interrupted", 3, 4)
    assert result.gap == result.trace.gap.min()
    expected = solve(X - X.mean(0), Y - Y.mean(), L1Ball(2.0), max_rounds=3, **SLOW)
    np.testing.assert_allclose(model.coef_, expected.weights)


def test_the_second_raises_at_once():
    def twice(state):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it went on")

    with pytest.raises(KeyboardInterrupt):
        solve(X, Y, L1Ball(2.0), callbacks=[twice], **SLOW)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_without_a_file_is_not_in_the_way(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert solve(X, Y, L1Ball(2.0), callbacks=[CtrlC(3)], **SLOW).status == "interrupted"


def test_the_user_is_told_what_happens_next(monkeypatch, tmp_path):
    with open(tmp_path / "screen", "w") as screen:
        monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(sys, "stderr", screen)
        solve(X, Y, L1Ball(2.0), callbacks=[CtrlC(3)], **SLOW)
    assert "the run ends after this round; Ctrl-C again" in (tmp_path / "screen").read_text()


def test_a_callback_that_stops_the_run_in_the_same_round_does_not_hide_it():
    watch = [lambda state: state.round < 3, CtrlC(3)]
    assert solve(X, Y, L1Ball(2.0), callbacks=watch, **SLOW).status == "interrupted"


def test_before_and_after_a_run_ctrl_c_is_what_it_was():
    heard = []

    def own(state):
        heard.append(signal.getsignal(signal.SIGINT))

    with pytest.raises(RuntimeError, match="boom"):
        solve(X, Y, L1Ball(2.0), callbacks=[own, fail_in_round(2)], **SLOW)
    assert all(handler is not signal.default_int_handler for handler in heard)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def fail_in_round(round):
    def fail(state):
        if state.round == round:
            raise RuntimeError("boom")

    return fail


def test_a_handler_of_the_program_stays():
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        result = solve(X, Y, L1Ball(2.0), callbacks=[CtrlC(3)], max_rounds=5, **SLOW)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert (result.status, heard) == ("max_rounds", [True])


def test_threads_leave_signals_alone():
    seen = []

    def run():
        watch = [lambda state: seen.append(signal.getsignal(signal.SIGINT))]
        seen.append(solve(X, Y, L1Ball(2.0), callbacks=watch).status)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert set(seen) == {signal.default_int_handler, "optimal"}


def test_importing_installs_nothing():
    code = (
        "import signal, atomcast.loop.solver, atomcast.cli\n"
        "assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL\n"
        "assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


LOSSY = Faults(loss=0.2, seed=1)


@pytest.mark.parametrize(
    ("cluster", "selection"),
    [
        (LocalCluster(4, "tree"), "exact"),
        (LocalCluster(4, "tree"), RandomSubset(0.5)),
        (LocalCluster(4, asynchronous=True, compute=1e-3, faults=Faults(slow={3: 5.0})), "exact"),
        (LocalCluster(4, faults=LOSSY), "exact"),
        (LocalCluster(4, faults=LOSSY), RandomSubset(0.5)),
        (LocalCluster(4, faults=LOSSY, recovery="none"), "exact"),
    ],
    ids=["tree", "subset", "asynchronous", "lossy", "lossy subset", "drifting"],
)
def test_what_is_returned_is_certified_on_every_network(cluster, selection):
    how = {"tol": 1e-12, "atoms_per_round": 1, "selection": selection}
    result = solve(X, Y, L1Ball(2.0), nodes=4, cluster=cluster, callbacks=[CtrlC(3)], **how)
    assert (result.status, result.trace.round[-1]) == ("interrupted", 3)
    np.testing.assert_allclose(result.gap, true_gap(X, Y, result.weights, 2.0))


def test_the_checkpoint_is_that_of_the_last_round_and_can_be_resumed(tmp_path):
    path = tmp_path / "run.safetensors"
    how = {"step": "away", "tol": 1e-6}
    first = solve(X, Y, L1Ball(2.0), callbacks=[CtrlC(3), Checkpoint(path)], **how)
    second = solve(X, Y, L1Ball(2.0), resume=path, **how)
    assert (first.status, second.status, second.trace.round[0]) == ("interrupted", "optimal", 3)


# -- more than one problem ----------------------------------------------------------------------


def test_a_path_ends_with_what_was_fitted():
    solver = Solver(atoms_per_round=1, callbacks=[CtrlC(8)])
    with pytest.warns(ConvergenceWarning, match="the run was interrupted"):
        path = lasso_path(X, Y, betas=[0.5, 1.0, 2.0, 4.0, 8.0], solver=solver)
    count = len(path.results)
    assert 1 < count < 5
    assert [r.status for r in path.results] == ["optimal"] * (count - 1) + ["interrupted"]
    assert path.coefs.shape == (60, count)
    assert len(path.betas) == len(path.intercepts) == len(path.dual_gaps) == count


def rounds_of(estimator):
    """How many rounds a fit takes in all."""
    counter = CtrlC()
    estimator.set_params(solver=Solver(atoms_per_round=1, callbacks=[counter])).fit(X, Y)
    return counter.seen


def interrupted(estimator, round):
    watch = [CtrlC(round)]
    return estimator.set_params(solver=Solver(atoms_per_round=1, callbacks=watch)).fit(X, Y)


def test_cross_validation_raises_until_the_last_fit_is_reached():
    model = LassoCV(betas=[0.5, 4.0], cv=2)
    rounds = rounds_of(model)
    for round in (0, rounds // 2):
        with pytest.raises(KeyboardInterrupt):
            interrupted(model, round)
    with pytest.warns(ConvergenceWarning, match="the run was interrupted"):
        interrupted(model, rounds - 2)
    assert model.result_.status == "interrupted"


def test_automatic_radii_are_not_chosen_from_half_a_fit(monkeypatch):
    press, wish = CtrlC(1), Watchers.wish
    monkeypatch.setattr(Watchers, "wish", lambda *seen: (press(seen[1]), wish(*seen))[1])
    with pytest.raises(KeyboardInterrupt):
        lasso_path(X, Y)


def test_machines_of_all_classes():
    labels = np.digitize(Y, np.quantile(Y, [0.33, 0.66]))
    solver = Solver(tol=1e-6, callbacks=[CtrlC(1)])
    with pytest.warns(ConvergenceWarning, match="the run was interrupted"):
        model = KernelSVC(multi_class="one-vs-rest", cluster=2, solver=solver).fit(X, labels)
    assert model.dual_coef_.any(axis=1).all()  # all machines have come equally far
    noisy = np.tile(X, (5, 1)) + np.random.default_rng(0).normal(size=(200, 60))
    solver = Solver(atoms_per_round=1, callbacks=[CtrlC(1)])
    with (
        pytest.raises(KeyboardInterrupt, match="before probabilities were calibrated"),
        pytest.warns(ConvergenceWarning),
    ):
        KernelSVC(probability=True, solver=solver).fit(noisy, np.tile(labels, 5))


def test_there_is_a_model_even_if_the_first_round_is_interrupted():
    """On the simplex, there are no weights before the first step."""
    model = L1AdaBoost(solver=Solver(callbacks=[CtrlC(0)]))
    with pytest.warns(ConvergenceWarning, match="after 1 rounds"):
        model.fit(X, Y > 0)
    assert np.isfinite(model.result_.gap)
    assert model.score(X, Y > 0) > 0.5


def test_within_all_or_nothing_the_first_one_raises():
    with all_or_nothing(), pytest.raises(KeyboardInterrupt):
        solve(X, Y, L1Ball(2.0), callbacks=[CtrlC(3)], **SLOW)
