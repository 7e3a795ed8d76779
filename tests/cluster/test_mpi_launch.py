"""A plain program starts MPI ranks: the same answer, and nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import psutil
import pytest

from atomcast import Lasso, MPICluster, Shards, lasso_path
from atomcast.cluster.mpi_errors import RankError
from atomcast.cluster.mpi_processes import rank_command
from cluster import contract, resume_cases
from cluster.contract import assert_same_result, fitted, parts_of, simulated
from patience import PATIENCE, wait_until
from problems import regression, sparse_regression

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.xdist_group("processes"),
    pytest.mark.usefixtures("mpi_environment", "contract_folder"),
]

SOURCE = Path(__file__).resolve().parents[2] / "src"
#: Cases that start ranks once or twice each; the others differ only in the loop, which is shared.
QUICK = (
    "single_precision",
    "a_path_with_warm_starts",
    "files",
    "a_callback_stops_the_run",
    "a_value_that_is_not_finite",
    "another_number_of_shards",
)


def workers():
    """The ranks that this process, or a program that it started, has started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may be ending just now
            command = process.cmdline()
            if "atomcast.cluster.mpi_worker" in command and "prterun" not in process.name():
                found.append(process)
    return found


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """No process and no file may outlive a test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    wait_until(lambda: not workers(), "ranks were left behind")
    assert not list(tmp_path.glob("atomcast-*"))


@pytest.mark.parametrize("name", QUICK)
def test_contract(name):
    contract.CASES[name](MPICluster.launch, 2)


@pytest.mark.parametrize("name", ["from_a_simulation_to_this_cluster_and_back"])
def test_interrupted_runs(name):
    resume_cases.CASES[name](MPICluster.launch, 2)


@pytest.mark.parametrize("step", ["classic", "away", "corrective"])
def test_four_ranks_with_sparse_data(step):
    X, y = sparse_regression(seed=1)
    how = {"step": step, "tol": 1e-5, "max_rounds": 15}
    result = fitted(X, y, MPICluster.launch(nodes=4), **how).result_
    assert_same_result(result, fitted(X, y, simulated(4), **how).result_)


def test_how_ranks_are_bound_is_for_the_user_to_say():
    X, y = regression(seed=2, d=20, n=12)
    cluster = MPICluster.launch(2, options=["--bind-to", "none"])
    result = fitted(X, y, cluster).result_
    assert_same_result(result, fitted(X, y, simulated(2)).result_)


def test_ranks_are_not_bound_unless_the_user_says_so():
    free = rank_command(2, [], "module", "file")
    assert free[1:5] == ["-n", "2", "--bind-to", "none"]
    assert free[-3:] == ["-m", "module", "file"]
    assert "none" not in rank_command(2, ["-bind-to", "core"], "module")
    bound = rank_command(2, ["--map-by", "slot", "--bind-to", "core"], "module")
    assert bound[1:7] == ["-n", "2", "--map-by", "slot", "--bind-to", "core"]


def test_a_path_in_one_start_of_the_ranks():
    X, y = regression(seed=2, d=40, n=80)
    betas = [0.5, 1.0, 3.0]
    path = lasso_path(X, y, betas=betas, cluster=MPICluster.launch(2), solver="away")
    expected = lasso_path(X, y, betas=betas, cluster=2, solver="away")
    np.testing.assert_allclose(path.coefs, expected.coefs, rtol=0, atol=1e-9)


def test_a_bad_file_is_named():
    X, y = regression(seed=3, d=20, n=12)
    X[2, 9] = np.inf
    shards = Shards.files(parts_of(X, 2))
    with pytest.raises(ValueError, match=r"shard 1 \(part-1\.npy\): column 3 contains infinity"):
        fitted(shards, y, MPICluster.launch(2))


def test_the_data_is_put_where_the_user_wants(tmp_path):
    X, y = regression(seed=3)
    folder, seen = tmp_path / "large disk", []
    folder.mkdir()

    def look(state):
        seen.extend(path.name for path in folder.glob("atomcast-*/shards/*/dense.npy"))

    result = fitted(X, y, MPICluster.launch(2, folder=folder), callbacks=[look]).result_
    assert len(seen) == 2 * len(result.trace)
    assert not list(folder.iterdir())
    with pytest.raises(FileNotFoundError, match="nowhere"):
        fitted(X, y, MPICluster.launch(2, folder=tmp_path / "nowhere"))


def test_the_command_line_goes_on_from_a_checkpoint(tmp_path, monkeypatch):
    resume_cases.on_the_command_line("mpi", tmp_path, monkeypatch)


def test_progress_is_shown_once(capfd):
    X, y = regression(seed=4)
    result = fitted(X, y, MPICluster.launch(2), step="away", verbose=True).result_
    out, shown = capfd.readouterr()
    assert out == ""
    assert shown.count("round     0  objective") == 1
    assert f"round {result.rounds:>5}  objective" in shown


def test_a_rank_that_is_killed():
    X, y = regression(seed=5, d=40, n=60)

    def kill(state):
        if state.round == 3:
            os.kill(workers()[-1].pid, signal.SIGKILL)

    with pytest.raises(RankError, match="the ranks have ended"):
        fitted(X, y, MPICluster.launch(2), step="classic", callbacks=[kill])


def test_a_callback_that_fails():
    def fail(state):
        raise ZeroDivisionError("the callback is to blame")

    with pytest.raises(ZeroDivisionError, match="to blame"):
        fitted(*regression(seed=6), MPICluster.launch(2), callbacks=[fail])


PROGRAM = """
import signal, sys, time
import numpy as np
from atomcast import Lasso, MPICluster, Solver

# What is started in the background of a shell would not hear Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

def watch(state):
    if state.round == 3:
        print("ready", flush=True)
    time.sleep(0.01)

rng = np.random.default_rng(0)
X = rng.standard_normal((50, 100))
solver = Solver(step="classic", tol=1e-12, callbacks=[watch])
try:
    Lasso(5.0, cluster=MPICluster.launch(2), solver=solver).fit(X, X @ rng.standard_normal(100))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 7), (signal.SIGKILL, -9)], ids=["Ctrl-C", "killed"]
)
def test_a_program_that_is_ended_takes_its_ranks_along(sent, code, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path / "own")}
    (tmp_path / "own").mkdir()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert program.stdout.readline() == "ready\n"
        ranks = workers()
        assert len(ranks) == 2
        program.send_signal(sent)
        output, _ = program.communicate(timeout=PATIENCE)
    finally:
        program.kill()
    assert program.returncode == code
    if sent == signal.SIGINT:
        assert output == "interrupted\n"
        assert not list((tmp_path / "own").iterdir())
    wait_until(lambda: not any(rank.is_running() for rank in ranks), "ranks were left behind")


def test_more_ranks_than_cores_are_explained(monkeypatch):
    monkeypatch.delenv("PRTE_MCA_rmaps_default_mapping_policy")
    ranks = (os.cpu_count() or 1) * 4 + 1
    with pytest.raises(RuntimeError, match=r"more ranks than cores: start fewer, or allow it"):
        Lasso(cluster=MPICluster.launch(ranks)).fit(*regression(seed=7, n=2 * ranks))


def test_inside_an_mpi_job_it_is_refused(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match=r"use MPICluster\(\) here"):
        Lasso(cluster=MPICluster.launch(2)).fit(*regression(seed=8))


def test_a_problem_with_a_part_that_ranks_do_not_know():
    from atomcast import Solver
    from atomcast.domains import L1Ball
    from atomcast.objectives import SquaredError
    from atomcast.problem import explicit_problem

    class MyError(SquaredError):
        pass

    X, y = regression(seed=9)
    problem = explicit_problem(MyError(y), L1Ball(1.0))
    with pytest.raises(TypeError, match=r"MyError, which the ranks .* cannot load"):
        Solver().solve(problem, Shards.split(X, 2), MPICluster.launch(2))


def test_the_command_line_starts_ranks(tmp_path):
    X, y = regression(seed=10, d=30, n=20)
    np.save(tmp_path / "y.npy", y)
    paths = [str(path) for path in parts_of(X, 2)]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "atomcast.cli",
            "fit",
            "lasso",
            *paths,
            "--beta",
            "2",
            "--json",
            "--target",
            str(tmp_path / "y.npy"),
            "--engine",
            "mpi",
        ],
        **{"env": {**os.environ, "PYTHONPATH": str(SOURCE)}, "timeout": 60, "check": True},
        **{"capture_output": True, "text": True},
    )
    told = json.loads(done.stdout)
    expected = fitted(Shards.files(paths), y, simulated(2)).result_
    assert (told["nodes"], told["rounds"], told["values"]) == (
        *(2, expected.rounds),
        expected.ledger.values,
    )
    np.testing.assert_allclose(told["objective"], expected.objective, rtol=1e-9)
