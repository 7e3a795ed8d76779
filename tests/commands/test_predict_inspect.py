"""`atomcast predict` and `atomcast inspect`."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from atomcast import Lasso, Solver, load_model, save_model


@pytest.fixture
def model(files, diabetes):
    model = Lasso(800.0, cluster=3, solver=Solver(tol=1e-6)).fit(*diabetes)
    save_model(model, "m.safetensors")
    return model


@pytest.mark.parametrize(
    "data", [["all.csv"], ["X.npy"], ["a.csv", "b.csv"], ["with_target.csv"], ["shuffled.csv"]]
)
def test_predictions_are_those_of_the_library(run, model, diabetes, data):
    X = diabetes[0]
    X[X.columns[::-1]].to_csv("shuffled.csv", index=False)
    outcome = run("predict", "m.safetensors", *data, "--out", "p.npy")
    assert (outcome.exit_code, outcome.output) == (0, "")
    np.testing.assert_allclose(np.load("p.npy"), model.predict(X), rtol=1e-12)


def test_predictions_are_printed_one_a_line(run, model, diabetes):
    outcome = run("predict", "m.safetensors", "X.npy")
    printed = [float(line) for line in outcome.stdout.splitlines()]
    np.testing.assert_allclose(printed, model.predict(diabetes[0]), rtol=1e-12)
    assert outcome.stderr == ""


@pytest.mark.parametrize("parts", [1, 2])
def test_row_ids_go_with_the_predictions(run, model, diabetes, parts):
    X = diabetes[0].assign(row_id=[f"patient {k}" for k in range(442)])
    halves = [X] if parts == 1 else [X[["row_id", *X.columns[:4]]], X.iloc[:, 4:]]
    for k, half in enumerate(halves):
        half.to_csv(f"part{k}.csv", index=False)
    names = [f"part{k}.csv" for k in range(parts)]
    assert run("predict", "m.safetensors", *names, "--out", "p.csv").exit_code == 0
    table = pd.read_csv("p.csv")
    assert table.row_id.tolist() == X.row_id.tolist()
    np.testing.assert_allclose(table.prediction, model.predict(diabetes[0]), rtol=1e-12)


def test_a_csv_without_row_ids(run, model, diabetes):
    run("predict", "m.safetensors", "X.npy", "--out", "p.csv")
    table = pd.read_csv("p.csv")
    assert table.columns.tolist() == ["prediction"]
    np.testing.assert_allclose(table.prediction, model.predict(diabetes[0]), rtol=1e-12)


def test_svmlight_data_may_end_with_empty_columns(run, files):
    X = np.eye(6, 5)
    save_model(Lasso(2.0).fit(X, np.arange(6.0)), "m.safetensors")
    dump_svmlight_file(X[:2], np.zeros(2), "d.svm", zero_based=False)
    outcome = run("predict", "m.safetensors", "d.svm")
    assert (outcome.exit_code, len(outcome.stdout.splitlines())) == (0, 2)


def test_inspect_tells_all_as_json(run, model):
    said = json.loads(run("inspect", "m.safetensors", "--json").stdout)
    result = model.result_
    assert (said["estimator"], said["schema"], said["features"]) == ("Lasso", 2, 10)
    assert said["parameters"]["beta"] == 800.0
    assert said["parameters"]["solver"]["tol"] == 1e-6
    assert (said["objective"], said["gap"]) == (result.objective, result.gap)
    weights = [atom["weight"] for atom in said["atoms"]]
    assert [abs(w) for w in weights] == sorted((abs(w) for w in weights), reverse=True)
    assert {a["name"]: a["weight"] for a in said["atoms"]} == {
        name: weight
        for name, weight in zip(model.feature_names_in_, model.coef_, strict=True)
        if weight
    }
    assert said["disclosures"] == [
        {**asdict(d), "who": d.who, "when": d.when} for d in result.ledger.disclosures
    ]
    assert [d["kind"] for d in said["told"]] == ["target"]
    by_kind = {kind: count["values"] for kind, count in said["communication"].items()}
    assert by_kind["target"] == said["target_values"] > 0
    assert sum(by_kind.values()) == said["values"] + said["target_values"]


def test_inspect_shows_the_largest_atoms_and_the_disclosures(run, model):
    text = run("inspect", "m.safetensors").stdout
    for title in ("Lasso (atomcast", "Fit", "Atoms by weight", "Communication", "Disclosures"):
        assert title in text
    assert "solver.step" in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()


def test_inspect_tells_folds_apart_and_calls_parties_by_name(run, files):
    fitted = run("fit", "lasso-cv", "a.csv", "b.csv", "-y", "y.npy", "-o", "m.safetensors")
    assert fitted.exit_code == 0, fitted.stderr
    said = json.loads(run("inspect", "m.safetensors", "--json").stdout)
    assert said["parties"] == ["a", "b"]
    rounds = {d["when"]: d["round"] for d in said["disclosures"]}
    assert {when.split(",")[0] for when in rounds} >= {"search 2", "fold 1", "fold 5", "final fit"}
    assert {d["who"] for d in said["disclosures"]} == {"a", "b"}
    # The rounds of the fit are those of its last phase, and none may be beyond them.
    phase = f"final fit, radius {load_model('m.safetensors').beta_:.4g}"
    last = [d["round"] for d in said["disclosures"] if d["phase"] == phase]
    assert all(round < said["rounds"] for round in last)
    assert max(rounds.values()) < 10
    assert said["different_atoms"] <= 10 < said["atoms_sent"] == len(said["disclosures"])
    told = sum(d["values"] for d in said["told"] if d["kind"] == "prediction")
    assert said["communication"]["prediction"]["values"] == 2 * told == said["prediction_values"]
    text = run("inspect", "m.safetensors").stdout
    assert "predictions for held-out rows" in text
    assert "search 2, problem 1, round 0" in text
    assert max(map(len, text.splitlines())) <= 80
    for line in ("different atoms sent", "of these, predictions", "values of the target"):
        assert line in fitted.stdout
        assert line in text


@pytest.fixture
def wide_model(files):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    save_model(Lasso(30.0, cluster=4).fit(X, X.sum(axis=1)), "m.safetensors")


@pytest.mark.parametrize(
    ("how", "told"),
    [({"thin": True}, "candidates, to the coordinator alone"), ({"step": "compound"}, "mixtures")],
)
def test_inspect_shows_what_was_told_beside_atoms(run, files, diabetes, how, told):
    save_model(Lasso(800.0, cluster=3, solver=Solver(**how)).fit(*diabetes), "m.safetensors")
    outcome = run("inspect", "m.safetensors")
    assert outcome.exit_code == 0
    assert told in outcome.stdout


def test_long_tables_are_cut_unless_all_is_asked_for(run, wide_model):
    short, whole = (run("inspect", "m.safetensors", *more).stdout for more in ([], ["--all"]))
    assert "the first 10 of" in short
    assert "name" not in short  # the features have none
    assert "the first" not in whole
    assert len(whole.splitlines()) > len(short.splitlines())


def test_a_single_node_disclosed_nothing(run, files, diabetes):
    save_model(Lasso(800.0).fit(*diabetes), "m.safetensors")
    assert "No atom left its node." in run("inspect", "m.safetensors").stdout
    assert json.loads(run("inspect", "m.safetensors", "--json").stdout)["disclosures"] == []


def test_a_model_without_atoms(run, files):
    save_model(Lasso(1.0, cluster=2).fit(np.eye(3), [2.0, 2.0, 2.0]), "m.safetensors")
    outcome = run("inspect", "m.safetensors")
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(run("inspect", "m.safetensors", "--json").stdout)["atoms"] == []


def test_names_cannot_command_the_terminal(run, files):
    X = pd.DataFrame(np.eye(3), columns=["\x1b[31mred", "[bold]b[/bold]", "line\nbreak"])
    save_model(Lasso(5.0, cluster=2).fit(X, [1.0, 2.0, 4.0]), "m.safetensors")
    text = run("inspect", "m.safetensors").stdout
    assert "\x1b" not in text
    assert r"\x1b[31mred" in text
    assert "[bold]b[/bold]" in text
    assert r"line\nbreak" in text


def test_probabilities(run, files, diabetes):
    from atomcast import SparseLogisticRegression

    X, y = diabetes
    labels = np.where(y > 150, "ill", "well")
    classes = SparseLogisticRegression(beta=5.0).fit(X, labels)
    save_model(classes, "c.safetensors")
    expected = classes.predict_proba(X)
    assert run("predict", "c.safetensors", "all.csv", "--proba", "--out", "p.csv").exit_code == 0
    table = pd.read_csv("p.csv")
    assert table.columns.tolist() == ["ill", "well"]
    np.testing.assert_allclose(table.to_numpy(), expected, rtol=1e-12)
    printed = run("predict", "c.safetensors", "all.csv", "--proba").stdout.split()
    np.testing.assert_allclose(np.reshape(printed, (-1, 2)).astype(float), expected, rtol=1e-12)
    X.assign(row_id=range(442)).to_csv("ids.csv", index=False)
    run("predict", "c.safetensors", "ids.csv", "--proba", "-o", "p.csv")
    assert pd.read_csv("p.csv").columns.tolist() == ["row_id", "ill", "well"]


def test_a_model_without_probabilities_says_so(run, model):
    outcome = run("predict", "m.safetensors", "all.csv", "--proba")
    assert outcome.exit_code == 2
    assert "--proba: the Lasso in m.safetensors tells none" in outcome.stderr
