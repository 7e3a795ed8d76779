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

from atomcast import (
    Lasso,
    MPICluster,
    RandomSubset,
    Shards,
    Solver,
    StallError,
    lasso_path,
)
from atomcast.cluster.mpi import channel
from atomcast.cluster.mpi import processes as mpi_processes
from atomcast.cluster.mpi.failures import RankError
from atomcast.cluster.mpi.processes import rank_command, rank_environment
from atomcast.domains.balls import L1Ball
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from cluster import contract, model_cases, resume_cases
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
    "files_in_another_order",
    "a_callback_stops_the_run",
    "the_first_ctrl_c_ends_the_run_everywhere",
    "a_value_that_is_not_finite",
    "another_number_of_shards",
)


def workers():
    """The ranks that this process, or a program that it started, has started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may be ending just now
            command = process.cmdline()
            if "atomcast.cluster.mpi.worker" in command and "prterun" not in process.name():
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


@pytest.mark.parametrize(
    "name",
    [
        "from_a_simulation_to_this_cluster_and_back",
        "a_path_goes_on_from_the_problem_that_it_was_at",
    ],
)
def test_interrupted_runs(name):
    resume_cases.CASES[name](MPICluster.launch, 2)


@pytest.mark.parametrize("name", ["svm_of_three_classes", "codes_in_balls_and_a_dictionary"])
def test_models(name):
    model_cases.CASES[name](MPICluster.launch, 2)


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


def test_ranks_that_do_not_start(monkeypatch):
    def stuck(*arguments):
        return ["sh", "-c", "echo no licence yet; exec sleep 100"]

    monkeypatch.setattr(mpi_processes, "START", 1.0)
    monkeypatch.setattr(mpi_processes, "rank_command", stuck)
    with pytest.raises(StallError, match=r"have not started within 1.5 s[^$]*no licence yet"):
        fitted(*regression(seed=5), MPICluster.launch(2, deadline=0.5))
    assert not psutil.Process().children()


def test_ranks_that_are_gone_when_they_are_told_to_end(monkeypatch, tmp_path):
    """A message that cannot be sent must not keep the processes and the socket."""

    class Gone(channel.Channel):
        def send_bytes(self, message):
            raise BrokenPipeError

    program = "import sys, time; from atomcast.cluster.mpi.channel import connect\n"
    program += "channel = connect(sys.argv[1]); time.sleep(100)"
    monkeypatch.setattr(channel, "Channel", Gone)
    monkeypatch.setattr(
        mpi_processes,
        "rank_command",
        lambda *given: [
            sys.executable,
            "-c",
            program,
            given[-1],
        ],
    )
    ranks = mpi_processes.Ranks(1, 1, [], tmp_path, 10.0)
    ranks.end(orderly=True)
    assert not psutil.Process().children()
    assert ranks._channel._connection.closed


def test_launched_ranks_listen_on_no_network(monkeypatch):
    for name in ("OMPI_MCA_btl", "OMPI_MCA_pml"):
        monkeypatch.delenv(name, raising=False)
    listening = {}

    def look(state):
        for process in psutil.Process().children(recursive=True):
            kind = "rank" if process in workers() else process.name()
            for connection in process.net_connections(kind="inet"):
                if connection.status == psutil.CONN_LISTEN:
                    listening.setdefault(kind, []).append(connection.laddr.ip)

    fitted(*regression(seed=5), MPICluster.launch(2), callbacks=[look])
    assert "rank" not in listening
    assert "127.0.0.1" in listening["prterun"]  # by which ranks speak to mpirun


def test_where_mpirun_may_use_other_machines_the_transport_is_its_own_choice(monkeypatch):
    for name in ("OMPI_MCA_btl", "OMPI_MCA_pml"):
        monkeypatch.delenv(name, raising=False)
    assert rank_environment(1)["OMPI_MCA_btl"] == "self,sm"
    assert "OMPI_MCA_btl" not in rank_environment(1, ["--host", "one:2,two:2"])
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    assert rank_environment(1)["OMPI_MCA_btl"] == "self,tcp"
    monkeypatch.delenv("OMPI_MCA_btl")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert "OMPI_MCA_btl" not in rank_environment(1)


def test_without_mpi4py_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    for fit in (MPICluster, lambda: fitted(*regression(seed=5), MPICluster.launch(2))):
        with pytest.raises(ImportError, match=r"^MPICluster needs mpi4py.*'atomcast\[mpi\]'.*$"):
            fit()


def test_a_callback_that_fails():
    def fail(state):
        raise ZeroDivisionError("the callback is to blame")

    with pytest.raises(ZeroDivisionError, match="to blame"):
        fitted(*regression(seed=6), MPICluster.launch(2), callbacks=[fail])


PROGRAM = """
import signal, time
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
model = Lasso(5.0, cluster=MPICluster.launch(2), solver=solver)
print(model.fit(X, X @ rng.standard_normal(100)).result_.status, flush=True)
"""


@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGINT, 0), (signal.SIGTERM, -15), (signal.SIGKILL, -9)],
    ids=["Ctrl-C", "terminated", "killed"],
)
def test_a_program_that_is_ended_takes_its_ranks_along(sent, code, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path / "own")}
    (tmp_path / "own").mkdir()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        **{"stdout": subprocess.PIPE, "text": True, "env": environment, "start_new_session": True},
    )
    try:
        assert program.stdout.readline() == "ready\n"
        ranks = workers()
        assert len(ranks) == 2
        os.killpg(program.pid, sent)  # as a terminal would
        output, _ = program.communicate(timeout=PATIENCE)
    finally:
        program.kill()
    assert program.returncode == code
    if sent == signal.SIGINT:
        assert output == "interrupted\n"
    if sent != signal.SIGKILL:
        assert not list((tmp_path / "own").glob("atomcast-*"))
    wait_until(lambda: not any(rank.is_running() for rank in ranks), "ranks were left behind")
    # A program that is killed cannot take its data away: rank 0 does, when it notices.
    assert not list((tmp_path / "own").glob("atomcast-*"))


def test_more_ranks_than_cores_are_explained(monkeypatch):
    monkeypatch.delenv("PRTE_MCA_rmaps_default_mapping_policy")
    ranks = (os.cpu_count() or 1) * 4 + 1
    with pytest.raises(RuntimeError, match=r"more ranks than cores: start fewer, or allow it"):
        Lasso(cluster=MPICluster.launch(ranks)).fit(*regression(seed=7, n=2 * ranks))


def test_inside_an_mpi_job_it_is_refused(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    with pytest.raises(RuntimeError, match=r"use MPICluster\(\) here"):
        Lasso(cluster=MPICluster.launch(2)).fit(*regression(seed=8))


def test_an_objective_and_a_selection_of_the_users_own():
    class HalvedError(SquaredError):
        """Nobody can import it, and its optimum is not that of its parent."""

        def value(self, image):
            return super().value(image) / 2

        def gradient(self, image):
            return super().gradient(image) / 2

    X, y = regression(seed=9)
    problem, shards = explicit_problem(HalvedError(y), L1Ball(1.0)), Shards.split(X, 2)
    solver = Solver("line-search", max_rounds=6, selection=RandomSubset(lambda k: 9 + k))
    result = solver.solve(problem, shards, MPICluster.launch(2))
    assert_same_result(result, solver.solve(problem, shards, simulated(2)))


def test_what_a_callback_can_ask_of_a_state():
    """What is large stays with the ranks until somebody asks, also in the last round."""
    kept = []

    def look(state):
        known = state.replica.active
        kept.append((state, state.ledger.values, list(known.ids), state.snapshot()))
        assert state.objective == pytest.approx(known.value())
        assert state.row.values == state.ledger.values

    X, y = regression(seed=6)
    result = fitted(X, y, MPICluster.launch(2), step="away", callbacks=[look]).result_
    assert len(kept) == result.rounds + 1
    assert [values for _, values, _, _ in kept] == result.trace["values"].tolist()
    assert [list(snapshot.ids) for *_, snapshot in kept] == [ids for _, _, ids, _ in kept]
    assert all(state.ledger is result.ledger for state, *_ in kept)
    with pytest.raises(RuntimeError, match="past round 0: ask a state for its snapshot while"):
        kept[0][0].snapshot()


def test_an_error_of_the_ranks_is_raised_as_what_it_was():
    class RefusedError(Exception):
        """Of the user's own."""

    class PickyError(SquaredError):
        def gradient(self, image):
            if np.any(image):
                raise RefusedError("not this image")
            return super().gradient(image)

    X, y = regression(seed=9)
    problem = explicit_problem(PickyError(y), L1Ball(1.0))
    with pytest.raises(RefusedError, match="not this image"):
        Solver("line-search").solve(problem, Shards.split(X, 2), MPICluster.launch(2))


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
            "-v",
        ],
        **{"env": {**os.environ, "PYTHONPATH": str(SOURCE)}, "timeout": 60, "check": True},
        **{"capture_output": True, "text": True},
    )
    for node in range(2):
        assert f"INFO atomcast.cluster.mpi.launch: node {node} of 2 on " in done.stderr
    told = json.loads(done.stdout)
    expected = fitted(Shards.files(paths), y, simulated(2)).result_
    assert (told["nodes"], told["rounds"], told["values"]) == (
        *(2, expected.rounds),
        expected.ledger.values,
    )
    np.testing.assert_allclose(told["objective"], expected.objective, rtol=1e-9)
