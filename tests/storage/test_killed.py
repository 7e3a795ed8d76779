"""Processes that are really killed (SIGKILL), at random rounds, and go on from the checkpoint."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from atomcast.domains.balls import L1Ball
from patience import PATIENCE
from problems import STEPS, regression, solve

SCRIPT = Path(__file__).with_name("run_until_killed.py")
KILLS = 4  # for each of the six steps
ROUNDS = 60


def run(folder, nodes, how, kill_at):
    """Run until a round, then kill; returns the first round and the exit code."""
    command = [sys.executable, str(SCRIPT), str(folder), str(nodes), json.dumps(how)]
    command.append(str(kill_at + 3))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        first = None
        for line in process.stdout:
            first = int(line) if first is None else first
            if int(line) >= kill_at:
                process.send_signal(signal.SIGKILL)
                break
        return first, process.wait(timeout=PATIENCE)


@pytest.mark.slow
def test_killed_at_random_rounds_with_every_step(tmp_path):
    X, y = regression(seed=3, d=40, n=150, support=30)
    chance, kills = random.Random(0), 0
    for step in STEPS:
        folder = tmp_path / step
        folder.mkdir()
        np.savez(folder / "data.npz", X=X, y=y)
        how = {"step": step, "tol": 1e-9, "max_rounds": ROUNDS, "atoms_per_round": 1}
        whole = solve(X, y, L1Ball(8.0), nodes=3, **how)
        assert whole.rounds > 20
        # Of some rounds in order, each process is killed in the next.
        for kill_at in sorted(chance.sample(range(2, min(whole.rounds, ROUNDS) - 5), KILLS)):
            first, code = run(folder, chance.randint(1, 6), how, kill_at)
            assert code == -signal.SIGKILL
            assert first is not None
            kills += 1
        first, code = run(folder, chance.randint(1, 6), how, np.inf)
        assert code == 0
        assert first > 0  # it went on, and did not begin anew
        with np.load(folder / "result.npz", allow_pickle=False) as result:
            np.testing.assert_allclose(result["weights"], whole.weights, rtol=0, atol=8e-9)
            np.testing.assert_array_equal(result["weights"] != 0, whole.weights != 0)
            assert result["rounds"] == whole.rounds
            assert result["gap"] == pytest.approx(whole.gap, rel=1e-6)
        assert sorted(path.name for path in folder.iterdir()) == [
            *("c.safetensors", "data.npz", "result.npz")
        ]
    assert kills == 24
