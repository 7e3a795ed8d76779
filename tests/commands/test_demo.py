"""`atomcast demo`, the group of commands, and real processes."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Lasso as ReferenceLasso

from atomcast import __version__, load_model
from atomcast.commands.demo import BETA, TOL, load_data
from patience import PATIENCE


def atomcast(*arguments, **options):
    command = [Path(sys.executable).with_name("atomcast"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **options)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo in a process and a folder of its own; stderr lists all modules imported."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-X", "importtime", "-m", "atomcast.cli", "demo", "--json"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=folder)
    return process, folder / "atomcast-demo"


def test_demo_beats_the_paper_on_the_same_data(demo):
    process, _ = demo
    assert process.returncode == 0, process.stderr
    said = json.loads(process.stdout)
    ours, papers = said["runs"]["corrective"], said["runs"]["classic"]
    assert ours["status"] == "optimal"
    assert ours["relative_gap"] <= TOL < papers["relative_gap"]
    assert 0 <= papers["objective"] - ours["objective"] <= papers["gap"]
    for figure in ("rounds", "atoms_sent", "values", "bytes"):
        assert 5 * ours[figure] < papers[figure]
    assert (ours["nodes"], papers["nodes"]) == (10, 10)


def test_demo_finds_what_scikit_learn_finds(demo):
    """The penalty that belongs to the radius is the largest score, so it can be checked."""
    X, y, _ = load_data()
    model = load_model(demo[1] / "model.safetensors")
    residual = y - X @ model.coef_ - model.intercept_
    alpha = np.max(np.abs(X.T @ residual)) / len(y)
    reference = ReferenceLasso(alpha, tol=1e-8, max_iter=100_000).fit(X, y)
    assert np.abs(reference.coef_).sum() == pytest.approx(BETA, rel=1e-6)
    assert np.sum((y - reference.predict(X)) ** 2) == pytest.approx(residual @ residual, rel=1e-6)


def test_demo_writes_model_trace_and_picture(demo):
    process, folder = demo
    said = json.loads(process.stdout)
    assert said["files"]["picture"] == "atomcast-demo/convergence.png"
    assert {path.name for path in folder.iterdir()} == {
        "model.safetensors",
        "trace.csv",
        "convergence.png",
    }
    assert (folder / "convergence.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "trace.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) == 2 + said["runs"]["corrective"]["rounds"]
    model = load_model(folder / "model.safetensors")
    assert model.certificate_.objective == said["runs"]["corrective"]["objective"]
    assert np.count_nonzero(model.coef_) == said["runs"]["corrective"]["atoms"]


@pytest.fixture
def few_rounds(monkeypatch):
    monkeypatch.setattr("atomcast.commands.demo.CLASSIC_ROUNDS", 50)


def test_demo_prints_a_plain_table(run, tmp_path, few_rounds):
    outcome = run("demo", "--out", tmp_path / "d", "--nodes", 3)
    assert outcome.exit_code == 0, outcome.stderr
    for text in ("on 3 nodes", "relative gap", "values sent", "times fewer values", "Next:"):
        assert text in outcome.stdout
    assert "\x1b" not in outcome.stdout
    lines = [line for line in outcome.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 80


def test_demo_on_one_node_sends_nothing(run, tmp_path, few_rounds):
    outcome = run("demo", "--out", tmp_path / "d", "--nodes", 1)
    assert outcome.exit_code == 0, outcome.stderr
    assert "fewer values" not in outcome.stdout


def test_demo_without_matplotlib(run, tmp_path, few_rounds, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = run("demo", "--out", tmp_path / "d")
    assert outcome.exit_code == 0
    assert 'pip install "atomcast[plot]"' in outcome.stderr
    assert not (tmp_path / "d" / "convergence.png").exists()
    assert (tmp_path / "d" / "model.safetensors").exists()


def test_demo_waits_for_no_compiler(demo):
    modules = {line.rpartition("|")[2].strip() for line in demo[0].stderr.splitlines()}
    assert "sklearn" in modules
    assert "numba" not in modules


def test_the_command_line_imports_little():
    code = (
        "import sys, atomcast.cli\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'matplotlib', 'pandas', 'numba', 'rich'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fit_predict_inspect_in_processes(files, diabetes):
    fit = atomcast(
        "fit", "lasso", "a.csv", "b.csv", "-y", "y.csv", "--beta", 800, "-o", "m.safetensors"
    )
    assert (fit.returncode, fit.stderr) == (0, "")
    predict = atomcast("predict", "m.safetensors", "all.csv")
    model = load_model("m.safetensors")
    printed = [float(line) for line in predict.stdout.splitlines()]
    np.testing.assert_allclose(printed, model.predict(diabetes[0]), rtol=1e-12)
    wrong = atomcast("fit", "lasso", "a.csv", "-y", "no.npy", "--beta", 1)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == ("atomcast: error: there is no file no.npy: check its name and folder\n")


def test_a_reader_that_stops_early_is_no_error(demo):
    command = [Path(sys.executable).with_name("atomcast"), "inspect", "--all", "model.safetensors"]
    process = subprocess.Popen(command, stdout=-1, stderr=-1, text=True, cwd=demo[1])
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=PATIENCE) in (0, 1)


def test_version_and_help(run):
    assert run("--version").stdout == f"atomcast {__version__}\n"
    _, _, commands = run("--help").stdout.partition("Commands:\n")
    listed = [line.split()[0] for line in commands.splitlines()]
    assert listed[:4] == ["demo", "fit", "predict", "inspect"]
    assert all(run(command, "--help").exit_code == 0 for command in listed[:4])


def test_without_arguments_there_is_help(run):
    assert "Usage" in run().output
    assert "lasso" in run("fit").output


def test_experiments_are_listed_and_take_their_options(run):
    assert "reproduce" in run("--help").stdout
    listed = run("reproduce", "--help").stdout
    assert all(f"  {name} " in listed for name in ("lower-bound", "fig2a", "fig5c", "all"))
    help_of_3, help_of_5 = (run("reproduce", name, "--help").stdout for name in ("fig3", "fig5a"))
    assert "--atom-density" in help_of_3
    assert "--atom-density" not in help_of_5
    assert "x>=1000" in help_of_5
    assert all("--debug" in text and "--out" in text for text in (help_of_3, help_of_5))
    assert run("reproduce", "fig5a", "--runs", "x").exit_code == 2
    assert run("reproduce", "fig5a", "--n", "999").exit_code == 2


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "atomcast", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.startswith("atomcast ")
