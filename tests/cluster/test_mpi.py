"""MPI ranks keep the contract of a cluster, notice when they disagree, and end together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

from atomcast import Shards
from cluster import mpi_cases
from cluster.conftest import MPI_ENVIRONMENT
from cluster.contract import fitted, simulated
from cluster.mpi_ranks import SIZES, cases
from patience import PATIENCE
from problems import regression

pytestmark = [pytest.mark.mpi, pytest.mark.xdist_group("processes")]

SOURCE = Path(__file__).resolve().parents[2] / "src"


def mpirun(ranks, *arguments, limit):
    """Run Python on so many ranks, for so many seconds at most."""
    command = [Path(sysconfig.get_path("scripts"), "mpirun"), "-n", str(ranks)]
    environment = {**os.environ, **MPI_ENVIRONMENT, "PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(
        [*command, "--bind-to", "none", sys.executable, *map(str, arguments)],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True},
        **{"stdin": subprocess.DEVNULL, "env": environment},
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun ends its ranks
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        output += f"\n(ended after {limit} seconds)"
    return process.returncode, output


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    """How each case went, by its file's name; run once for all tests."""
    folder = tmp_path_factory.mktemp("outcomes")
    # Files, not folders, with the cases' names hold the outcomes.
    code, output = mpirun(
        max(SIZES), Path(__file__).with_name("mpi_ranks.py"), folder, limit=3 * PATIENCE
    )
    found = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    return code, output, found


def check(outcomes, name, nodes):
    code, output, found = outcomes
    for rank in range(nodes):
        outcome = found.get(f"{name}-{nodes}-{rank}", f"never ended (code {code}):\n{output}")
        assert outcome == "passed", f"rank {rank}: {outcome}"


@pytest.mark.parametrize(("name", "nodes"), [(name, n) for n in SIZES for name in cases(n)])
def test_contract(name, nodes, outcomes):
    check(outcomes, name, nodes)


@pytest.mark.parametrize("nodes", SIZES[1:])
@pytest.mark.parametrize("name", mpi_cases.CASES)
def test_ranks(name, nodes, outcomes):
    check(outcomes, name, nodes)


def test_ranks_end_well(outcomes):
    code, output, _ = outcomes
    assert code == 0, output


@pytest.mark.parametrize("way", [[], ["-m", "mpi4py"]], ids=["plain", "with -m mpi4py"])
def test_an_error_on_one_rank_ends_all(way, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "from atomcast import Lasso\n"
        "from atomcast.cluster.mpi.cluster import MPICluster\n"
        "cluster = MPICluster()\n"
        "if cluster.rank == 1:\n"
        "    raise ValueError('rank 1 has lost its file')\n"
        "Lasso(cluster=cluster).fit(np.eye(4), np.ones(4))\n"
    )
    start = time.monotonic()
    code, output = mpirun(2, *way, program, limit=PATIENCE)
    assert code != 0
    assert "rank 1 has lost its file" in output
    assert "ended after" not in output, f"it took {time.monotonic() - start} s"


def test_mpirun_passes_a_signal_on_that_ends_the_run_with_a_model(tmp_path):
    """Not Ctrl-C: that one, mpirun keeps for itself."""
    program = tmp_path / "program.py"
    program.write_text(
        "import logging, os, signal, time\n"
        "import numpy as np\n"
        "from atomcast import Lasso, Solver\n"
        "from atomcast.cluster.mpi.cluster import MPICluster\n"
        "def tell(state):\n"
        "    if cluster.rank == 0 and state.round == 3:\n"
        "        os.kill(os.getppid(), signal.SIGUSR1)\n"
        "    time.sleep(0.001)\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "cluster = MPICluster()\n"
        "X = np.random.default_rng(0).standard_normal((20, 40))\n"
        "solver = Solver(step='classic', tol=1e-12, callbacks=[tell])\n"
        "result = Lasso(1.0, cluster=cluster, solver=solver).fit(X, X.sum(1)).result_\n"
        "print(f'{result.status} in round {result.rounds}')\n"
    )
    code, output = mpirun(2, program, limit=PATIENCE)
    assert code == 0, output
    ends = [line for line in output.splitlines() if line.startswith("interrupted in round ")]
    assert len(ends) == 2, output
    assert ends[0] == ends[1]
    for node in range(2):
        assert output.count(f"INFO:atomcast.cluster.mpi.mpi_session:node {node} of 2 on ") == 1


def test_an_error_that_all_ranks_have_is_told_once(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "from atomcast import Lasso, Shards\n"
        "from atomcast.cluster.mpi.cluster import MPICluster\n"
        "cluster = MPICluster()\n"
        "X = np.eye(4)\n"
        "X[2, 3] = np.inf if cluster.rank == 1 else 0.0\n"
        "Lasso(cluster=cluster).fit(Shards.mine(X), np.ones(4))\n"
    )
    code, output = mpirun(2, program, limit=PATIENCE)
    assert code != 0
    assert output.count("shard 1: column 3 contains infinity") == 1, output


def test_the_command_line_as_the_ranks_of_a_job(tmp_path):
    """All ranks work, and rank 0 writes and speaks for them."""
    X, y = regression(seed=1, d=30, n=12)
    for name, content in (("a", X[:, :7]), ("b", X[:, 7:]), ("y", y)):
        np.save(tmp_path / f"{name}.npy", content)
    a, b, target, out = (str(tmp_path / name) for name in ("a.npy", "b.npy", "y.npy", "t.csv"))
    fit = ["-m", "atomcast.cli", "fit", "lasso", a, b, "--target", target, "--beta", "2"]
    short = ["--json", "--step", "classic", "--max-rounds", "1", "--trace", out]
    code, output = mpirun(2, *fit, *short, limit=PATIENCE)
    assert code == 0, output
    assert output.count("atomcast: warning: ") == 1, output
    told = json.loads(output[output.index("{") : output.rindex("}") + 1])
    shards = Shards.files([a, b])
    expected = fitted(shards, y, simulated(2), step="classic", max_rounds=1).result_
    assert (told["nodes"], told["values"]) == (2, expected.ledger.values)
    np.testing.assert_allclose(told["objective"], expected.objective, rtol=1e-9)
    assert len(Path(out).read_text().splitlines()) == 3
    Path(b).unlink()  # rank 0 need not read it
    code, output = mpirun(2, *fit, limit=PATIENCE)
    assert code == 2
    assert output.count("atomcast: error: ") == 1, output
    assert "b.npy" in output
