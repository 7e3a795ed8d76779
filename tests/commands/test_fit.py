"""`atomcast fit`: the same model as in Python, from whichever files, and what it says."""

import csv
import json
from typing import Annotated

import numpy as np
import pytest
import typer
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from atomcast import Lasso, Shards, load_model
from atomcast.commands.engines import ENGINES
from atomcast.commands.estimators import ESTIMATORS, Recipe
from atomcast.commands.fit import _command
from atomcast.commands.fit_options import STEP_NAMES
from atomcast.commands.named_files import check_rows
from atomcast.steps import STEPS

FIT = ("fit", "lasso")
OPTIONS = ("--target", "y.npy", "--beta", 800)


@pytest.fixture
def expected(diabetes):
    X, y = diabetes
    return Lasso(800.0).fit(X, y)


def fitted(run, *arguments):
    outcome = run(*FIT, *arguments, "--out", "m.safetensors")
    assert outcome.exit_code == 0, outcome.stderr
    return load_model("m.safetensors")


@pytest.mark.parametrize("parts", [["all.csv"], ["X.npy"], ["a.csv", "b.csv"]])
def test_the_model_is_that_of_the_library(run, files, expected, parts):
    model = fitted(run, *parts, *OPTIONS)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert model.intercept_ == pytest.approx(expected.intercept_)
    assert model.certificate_.nodes == len(parts)


def test_one_file_is_cut_up_among_nodes(run, files, expected):
    model = fitted(run, "all.csv", *OPTIONS, "--nodes", 4)
    assert model.certificate_.nodes == 4
    assert model.certificate_.atoms_sent > 0
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert model.feature_names_in_.tolist() == expected.feature_names_in_.tolist()


def test_more_nodes_than_features(run, files, expected):
    model = fitted(run, "X.npy", *OPTIONS, "--nodes", 25)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


def test_sparse_and_compressed_files(run, files, expected, diabetes):
    X, y = diabetes
    sparse.save_npz("a.npz", sparse.csc_array(X.iloc[:, :3].to_numpy()))
    np.savez("b.npz", X=X.iloc[:, 3:6].to_numpy())
    X.iloc[:, 6:].to_parquet("c.parquet")
    y.to_frame().to_parquet("y.parquet")
    model = fitted(run, "a.npz", "b.npz", "c.parquet", "--target", "y.parquet", "--beta", 800)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


def test_a_svmlight_file_holds_its_own_target(run, files, expected, diabetes):
    X, y = diabetes
    dump_svmlight_file(X.to_numpy(), y.to_numpy(), "d.svm", zero_based=False)
    model = fitted(run, "d.svm", "--target", "d.svm", "--beta", 800, "--nodes", 2)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


def test_a_target_column_is_not_a_feature(run, files, expected):
    model = fitted(run, "with_target.csv", "--target", "with_target.csv:target", "--beta", 800)
    assert model.n_features_in_ == 10
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


def test_options_reach_solver_and_estimator(run, files):
    more = ("--step", "away", "--tol", 1e-3, "--max-rounds", 77, "--no-intercept")
    model = fitted(run, "X.npy", *OPTIONS, *more)
    assert (model.solver.step, model.solver.tol, model.solver.max_rounds) == ("away", 1e-3, 77)
    assert model.fit_intercept is False
    assert model.intercept_ == 0.0


def test_json_is_the_certificate(run, files):
    outcome = run(
        *FIT, "a.csv", "b.csv", *OPTIONS, "--json", "--out", "m.safetensors", "--trace", "t.csv"
    )
    said = json.loads(outcome.stdout)
    certificate = load_model("m.safetensors").certificate_
    for key in ("objective", "gap", "relative_gap", "rounds", "status", "values", "bytes"):
        assert said[key] == getattr(certificate, key)
    assert said["status"] == "optimal"
    assert (said["estimator"], said["rows"], said["nodes"]) == ("Lasso", 442, 2)
    assert (said["atoms_available"], said["model"], said["trace"]) == (10, "m.safetensors", "t.csv")
    with open("t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == said["rounds"] + 1
    assert float(rows[-1]["objective"]) == said["objective"]


def test_the_table_is_plain_text(run, files):
    outcome = run(*FIT, "X.npy", *OPTIONS, "--nodes", 3, "--out", "m.safetensors")
    assert "status" in outcome.stdout
    assert "optimal" in outcome.stdout
    assert "model saved as" in outcome.stdout
    assert "\x1b" not in outcome.stdout
    assert outcome.stdout.isascii()
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    assert outcome.stderr == ""


def test_verbose_shows_rounds_and_quiet_nothing(run, files):
    loud = run(*FIT, "X.npy", *OPTIONS, "--verbose")
    assert "round" in loud.stderr
    quiet = run(*FIT, "X.npy", *OPTIONS, "--quiet")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")


def test_too_few_rounds_is_a_warning_not_an_error(run, files):
    outcome = run(*FIT, "X.npy", *OPTIONS, "--step", "classic", "--max-rounds", 3, "--json")
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["status"] == "max_rounds"
    assert outcome.stderr.startswith("atomcast: warning: the relative gap is")
    assert outcome.stderr.count("\n") == 1


def test_the_time_limit_ends_the_run(run, files):
    slow = ("--step", "classic", "--tol", 1e-14, "--max-rounds", 10**9, "--time-limit", 0.05)
    assert json.loads(run(*FIT, "X.npy", *OPTIONS, *slow, "--json").stdout)["status"] == (
        "time_limit"
    )


def test_a_gap_that_is_not_finite_is_null(capsys):
    from atomcast.report.printing import print_json

    print_json({"gap": float("inf"), "rows": [float("nan"), 1.5]})
    assert json.loads(capsys.readouterr().out) == {"gap": None, "rows": [None, 1.5]}


def test_help_names_every_step_and_engine(run):
    assert tuple(STEPS) == STEP_NAMES
    text = " ".join(run(*FIT, "--help").stdout.split())
    for name in (*STEP_NAMES, *ENGINES):
        assert name in text


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_a_documented_command(run, name):
    text = run("fit", name, "--help").stdout
    assert ESTIMATORS[name].make.__doc__.split()[0] in text
    assert all(option in text for option in ("--nodes", "--engine", "--out", "--json"))
    assert ("--target" in text) == (name != "dictionary-learning")  # which explains no target


def test_an_engine_and_an_estimator_are_one_line_each(monkeypatch, files, diabetes):
    """What a new entry of the two tables is given, and that nothing else is needed."""
    asked = []

    def cluster(nodes):
        asked.append(nodes)
        return ENGINES["local"](nodes)

    def small(size: Annotated[float, typer.Option()], plain: bool = False):
        """A lasso under another name."""
        return Lasso(size, fit_intercept=not plain)

    monkeypatch.setitem(ENGINES, "elsewhere", cluster)
    app = typer.Typer()
    app.command()(_command(Recipe(small)))
    arguments = ["X.npy", "-y", "y.npy", "--size", "9", "--plain", "--nodes", "3", "--json"]
    outcome = CliRunner().invoke(app, [*arguments, "--engine", "elsewhere"])
    assert outcome.exit_code == 0, outcome.stderr
    assert asked == [3]
    reference = Lasso(9.0, fit_intercept=False).fit(*diabetes)
    assert json.loads(outcome.stdout)["objective"] == pytest.approx(reference.result_.objective)
    # Rows may be the atoms too: then the target is as long as there are atoms.
    shards = Shards.split(diabetes[0].to_numpy(), 2)
    check_rows(shards, diabetes[1].to_numpy(), "y", axis=0)
