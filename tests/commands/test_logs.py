"""The option -v: the log of the library on stderr, and nothing of it on stdout."""

from __future__ import annotations

import json
import logging

import pytest

FIT = ("fit", "lasso", "a.csv", "b.csv", "--target", "y.npy", "--beta", 500, "--json")


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    logger = logging.getLogger("atomcast")
    before = list(logger.handlers), logger.level
    yield
    assert (logger.handlers, logger.level) == before


def test_quiet_by_default(run, files):
    assert run(*FIT).stderr == ""


@pytest.mark.parametrize("command", [FIT, ("demo", "--json")])
def test_one_v_is_for_operators(command, run, files):
    done = run(*command, "-v")
    json.loads(done.stdout)
    assert "INFO atomcast.simulation.local_session: " in done.stderr
    assert "nodes on " in done.stderr
    assert "DEBUG" not in done.stderr


def test_checkpoints_are_told(run, files):
    done = run(*FIT, "-v", "--checkpoint", "c\n.safetensors")
    assert "INFO atomcast.storage.checkpoint: round " in done.stderr
    assert "checkpoint written to c .safetensors" in done.stderr


def test_two_are_for_those_who_search_for_something(run, files):
    assert "DEBUG atomcast.commands.logs: Python 3." in run(*FIT, "-vv").stderr
