"""MPI ranks that are really killed (SIGKILL), at random rounds, and runs that go on after it."""

import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from atomcast.domains.balls import L1Ball
from cluster.conftest import MPI_ENVIRONMENT
from patience import PATIENCE, wait_until
from problems import regression, solve

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.xdist_group("processes")]

SCRIPT = Path(__file__).with_name("ranks_until_killed.py")
SOURCE = Path(__file__).resolve().parents[2] / "src"
#: How often a rank is killed with each step, and how many steps it may take before that.
KILLS = {"corrective": (4, 4), "pairwise": (6, 9)}


def start(folder, ranks, how, steps):
    for old in folder.glob("pid-*"):
        old.unlink()
    mpirun = Path(sysconfig.get_path("scripts"), "mpirun")
    command = [mpirun, "-n", str(ranks), "--bind-to", "none", sys.executable, SCRIPT, folder]
    return subprocess.Popen(
        [*map(str, command), json.dumps(how), str(steps)],
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT},
        **{"text": True, "env": {**os.environ, **MPI_ENVIRONMENT, "PYTHONPATH": str(SOURCE)}},
    )


def run(folder, ranks, how, steps, chance):
    """Run until some steps after the start, then kill a rank; returns the rounds seen."""
    rounds, output = [], ""
    process = start(folder, ranks, how, steps)
    try:
        for line in process.stdout:
            if not line.strip().isdigit():
                output += line
                continue
            rounds.append(int(line))
            if rounds[-1] - rounds[0] >= steps:
                break
        if steps == np.inf:
            output += process.communicate(timeout=PATIENCE)[0]
            assert process.returncode == 0, output
            return rounds
        pids = [int((folder / f"pid-{rank}").read_text()) for rank in range(ranks)]
        victim = chance.randrange(ranks)
        time.sleep(chance.uniform(0.0, 0.015))
        os.kill(pids[victim], signal.SIGKILL)
        output += process.communicate(timeout=PATIENCE)[0]  # fails if the others wait for ever
    finally:
        process.kill()
    assert process.returncode != 0
    assert f"rank {victim}" in output, output  # who it was, and what happened to it
    assert "signal 9" in output, output
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "a rank was left behind")
    return rounds


def test_ranks_killed_at_random_rounds(tmp_path):
    X, y = regression(seed=3, d=40, n=150, support=30)
    chance, kills = random.Random(1), 0
    for step, (times, furthest) in KILLS.items():
        folder = tmp_path / step
        folder.mkdir()
        np.savez(folder / "data.npz", X=X, y=y)
        how = {"step": step, "tol": 1e-9, "max_rounds": 70, "atoms_per_round": 1}
        whole = solve(X, y, L1Ball(8.0), nodes=3, **how)
        for _ in range(times):
            run(folder, chance.choice((2, 2, 3)), how, chance.randint(1, furthest), chance)
            kills += 1
        rounds = run(folder, 2, how, np.inf, chance)
        assert rounds[0] > 5  # it went on, and did not begin anew
        with np.load(folder / "result.npz", allow_pickle=False) as result:
            np.testing.assert_allclose(result["weights"], whole.weights, rtol=0, atol=8e-9)
            np.testing.assert_array_equal(result["weights"] != 0, whole.weights != 0)
            assert (result["rounds"], result["status"]) == (whole.rounds, whole.status)
            assert result["gap"] == pytest.approx(whole.gap, rel=1e-6)
        assert sorted(path.name for path in folder.iterdir() if "pid" not in path.name) == [
            *("c.safetensors", "data.npz", "result.npz")
        ]
    assert kills == 10
