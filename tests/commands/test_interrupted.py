"""Ctrl-C on the command line: the model is written, and the exit code says what happened."""

from __future__ import annotations

import signal

import pytest

from atomcast import load_model
from atomcast.loop.rounds import Watchers


@pytest.fixture(autouse=True)
def ctrl_c_in_round_2(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press(self, state, feasible, wish=Watchers.wish):
        if state.round == 2:
            signal.raise_signal(signal.SIGINT)
        return wish(self, state, feasible)

    monkeypatch.setattr(Watchers, "wish", press)
    yield
    signal.signal(signal.SIGINT, before)


def test_everything_asked_for_is_written(run, files):
    told = ("--beta", 500, "--target", "y.npy", "--step", "classic")
    written = ("--out", "m.safetensors", "--trace", "t.csv", "--checkpoint", "c.safetensors")
    done = run("fit", "lasso", "a.csv", "b.csv", *told, *written, "--json")
    assert done.exit_code == 130
    assert '"status": "interrupted"' in done.stdout
    assert done.stderr.count("\n") == 1
    assert "atomcast: warning: the relative gap is" in done.stderr
    assert load_model("m.safetensors").certificate_.status == "interrupted"
    assert (files / "t.csv").read_text().count("\n") == 4
    assert (files / "c.safetensors").exists()


def test_what_has_no_model_yet_writes_none(run, files):
    how = ("--target", "y.npy", "--step", "away", "--out", "m.safetensors")
    done = run("fit", "lasso-cv", "all.csv", *how)
    assert done.exit_code == 130
    assert not (files / "m.safetensors").exists()
