"""Rows in files on the command line: checked or aligned by their ids, for fit and predict."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from atomcast import Lasso, load_model

FIT = ("fit", "lasso", "north.csv", "south.csv")
SAVED = ("--beta", 800, "--row-ids", "patient_id", "--out", "m.safetensors")


@pytest.fixture
def parts(tmp_path, monkeypatch, diabetes):
    """Two parties and a target with shuffled rows, of which 400 are common; returns these."""
    monkeypatch.chdir(tmp_path)
    X, y = diabetes
    table = pd.concat([X, y], axis=1).assign(patient_id=np.arange(1000, 1442))
    rng = np.random.default_rng(0)

    def write(name, columns, rows):
        table.iloc[rng.permutation(rows)][["patient_id", *columns]].to_csv(name, index=False)

    write("north.csv", ["age", "sex", "bmi", "bp"], np.arange(0, 420))
    write("south.csv", ["s1", "s2", "s3", "s4", "s5", "s6"], np.arange(20, 442))
    write("y.csv", ["target"], np.arange(442))
    table.sort_values("patient_id").iloc[20:420].to_csv("common.csv", index=False)
    return table.iloc[20:420]


def test_parts_and_target_are_aligned(run, parts, diabetes):
    outcome = run(*FIT, "--target", "y.csv", *SAVED, "--align", "inner", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["rows"] == 400
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("atomcast: warning: rows that are not in all parts were dropped")
    assert "400 are left" in line
    assert "shard 0 (north.csv): 20 of 420 (id 1000, 1001, 1002, 1003, 1004 and 15 more)" in line
    assert "shard 1 (south.csv): 22 of 422 (id 1420" in line
    assert "the target: 42 of 442 (id 1000" in line
    X, y = diabetes
    expected = Lasso(800.0).fit(X.iloc[20:420], y.iloc[20:420])
    np.testing.assert_allclose(load_model("m.safetensors").coef_, expected.coef_, rtol=1e-8)


def test_a_single_file_and_its_target_are_aligned(run, parts):
    fit = ("fit", "lasso", "common.csv", "--target", "common.csv:target", "--beta", 800)
    assert run(*fit, "--row-ids", "patient_id", "--out", "one.safetensors").exit_code == 0
    part = parts.drop(columns="target").sample(frac=1.0, random_state=1)
    part.to_csv("part.csv", index=False)
    fit = ("fit", "lasso", "part.csv", "--target", "y.csv", *SAVED, "--nodes", 3)
    assert "the target: its row ids differ" in run(*fit).stderr
    outcome = run(*fit, "--align", "inner")
    assert "the target: 42 of 442" in outcome.stderr
    one, two = load_model("one.safetensors"), load_model("m.safetensors")
    np.testing.assert_allclose(two.coef_, one.coef_, rtol=1e-8)
    assert "patient_id" not in two.feature_names_in_


def test_a_kernel_machine_of_one_file_is_aligned_too(run, parts):
    parts.drop(columns="target").iloc[::-1].to_csv("part.csv", index=False)
    classes = parts.assign(target=np.where(parts["target"] > 140, "ill", "well"))
    classes[["patient_id", "target"]].to_csv("y.csv", index=False)
    fit = ("fit", "kernel-svm", "part.csv", "-y", "y.csv", "--row-ids", "patient_id")
    assert "the target: its row ids differ" in run(*fit).stderr
    outcome = run(*fit, "--align", "inner", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stderr == ""


@pytest.mark.parametrize(
    ("option", "name"), [(("--align", "inner"), "align"), (("--prefix",), "prefix")]
)
def test_files_of_examples_are_not_aligned_or_prefixed(run, parts, option, name):
    for rows, file in ((slice(0, 200), "first.csv"), (slice(200, 400), "last.csv")):
        parts.iloc[rows][["patient_id", "age"]].to_csv(file, index=False)
    fit = ("fit", "kernel-svm", "first.csv", "last.csv", "-y", "y.csv", "--row-ids", "patient_id")
    outcome = run(*fit, *option)
    assert outcome.exit_code == 2
    assert f"{name} is for files that hold columns of the same rows" in outcome.stderr


@pytest.mark.parametrize("parts_given", [["north.csv", "south.csv"], ["common.csv"]])
def test_a_target_in_another_order_is_refused(run, parts, parts_given):
    aligned = pd.read_csv("common.csv")
    aligned[["patient_id", "age", "bmi"]].to_csv("north.csv", index=False)
    aligned[["patient_id", "s1"]].to_csv("south.csv", index=False)
    aligned.drop(columns="target").to_csv("common.csv", index=False)
    aligned[["patient_id", "target"]].iloc[::-1].to_csv("y.csv", index=False)
    outcome = run("fit", "lasso", *parts_given, "--target", "y.csv", *SAVED)
    assert outcome.exit_code == 2
    assert "the target: its row ids differ" in outcome.stderr
    assert "the same ids in another order" in outcome.stderr
    assert "--align inner" in outcome.stderr


@pytest.mark.parametrize("given", ["several", "one"])
def test_new_parts_are_aligned_for_a_prediction(run, parts, given):
    run(*FIT, "--target", "y.csv", *SAVED, "--align", "inner")
    data = ["north.csv", "south.csv"] if given == "several" else ["common.csv"]
    ids = ("--row-ids", "patient_id")
    if given == "several":
        refused = run("predict", "m.safetensors", *data, *ids)
        assert "--align inner" in refused.stderr
    outcome = run("predict", "m.safetensors", *data, *ids, "--align", "inner", "--out", "p.csv")
    assert outcome.exit_code == 0, outcome.stderr
    assert ("north.csv): 20 of 420" in outcome.stderr) == (given == "several")
    said = pd.read_csv("p.csv").set_index("row_id")["prediction"]
    model = load_model("m.safetensors")
    columns = list(model.feature_names_in_)
    expected = pd.Series(model.predict(parts[columns]), index=parts["patient_id"])
    np.testing.assert_allclose(said.loc[expected.index], expected, rtol=1e-12)


def clashing(parts):
    """The same 400 rows, where both parties call a column `value`."""
    ids = parts["patient_id"].to_numpy()
    north = pd.DataFrame({"row_id": ids, "value": parts["bmi"], "bp": parts["bp"]})
    south = pd.DataFrame({"row_id": ids, "value": parts["s5"]})
    for name, table in (("north.csv", north), ("south.csv", south)):
        table.to_csv(name, index=False)
    parts["target"].to_csv("y.csv", index=False)
    return north, south


def test_clashing_names_are_prefixed_and_predictions_find_them(run, parts):
    north, south = clashing(parts)
    fit = (*FIT, "--target", "y.csv", "--beta", 800, "--out", "m.safetensors")
    assert "'value' occurs in shard 0 (north.csv)" in run(*fit).stderr
    outcome = run(*fit, "--prefix")
    assert outcome.exit_code == 0, outcome.stderr
    model = load_model("m.safetensors")
    assert model.feature_names_in_.tolist() == ["north.value", "north.bp", "south.value"]
    assert "south.value" in run("inspect", "m.safetensors").stdout
    north.iloc[:5].to_csv("new-1.csv", index=False)
    south.iloc[4::-1].to_csv("new-2.csv", index=False)
    predict = ("predict", "m.safetensors", "new-1.csv", "new-2.csv")
    assert "in another order" in run(*predict).stderr
    outcome = run(*predict, "--align", "inner", "--out", "p.npy")
    assert outcome.exit_code == 0, outcome.stderr
    new = np.column_stack([north[["value", "bp"]], south["value"]])[:5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(np.load("p.npy"), model.predict(new))
    swapped = run("predict", "m.safetensors", "new-2.csv", "new-1.csv", "--align", "inner")
    assert swapped.exit_code == 2


MISTAKES = {
    "align": (["--align", "outer"], "align must be one of 'inner', got 'outer'"),
    "out": (["--out", "m.pkl"], "--out m.pkl: the suffix '.pkl' is not known; use .safetensors"),
    "no suffix": (["--out", "m"], "the suffix '' is not known; use .safetensors"),
    "trace": (["--trace", "t.json"], "--trace t.json: the suffix '.json' is not known; use .csv"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_noticed_before_the_work(run, parts, monkeypatch, case):
    monkeypatch.setattr(Lasso, "fit", lambda *data: pytest.fail("it was fitted"))
    options, message = MISTAKES[case]
    outcome = run(*FIT, "--target", "y.csv", "--beta", 1, "--row-ids", "patient_id", *options)
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_an_id_that_is_not_named_is_no_feature(run, parts):
    outcome = run("fit", "lasso", "common.csv", "-y", "common.csv:target", "--beta", 1)
    assert outcome.exit_code == 2
    assert "'patient_id' is named like an id" in outcome.stderr
    assert "--row-ids patient_id" in outcome.stderr


def test_ids_that_clash_are_no_features_even_with_prefix(run, parts):
    parts[["patient_id", "age"]].to_csv("north.csv", index=False)
    parts[["patient_id", "s1"]].to_csv("south.csv", index=False)
    outcome = run(*FIT, "-y", "common.csv:target", "--beta", 1)
    assert "--row-ids patient_id" in outcome.stderr
    outcome = run(*FIT, "-y", "common.csv:target", "--beta", 1, "--prefix")
    assert "'patient_id' is named like an id" in outcome.stderr


def test_prefix_needs_several_files(run, parts):
    outcome = run("fit", "lasso", "common.csv", "-y", "y.csv:target", "--beta", 1, "--prefix")
    assert "--prefix is for several files" in outcome.stderr


def test_missing_files_are_named_in_words(run, parts):
    fit = ("fit", "group-lasso", "north.csv", "-y", "y.csv", "--row-ids", "patient_id")
    outcome = run(*fit, "--beta", 1, "--groups", "nothing.json")
    assert outcome.exit_code == 2
    assert outcome.stderr == (
        "atomcast: error: there is no file nothing.json: check its name and folder\n"
    )


def test_no_option_ends_in_the_number_of_an_error(run, parts):
    data = ("common.csv", "-y", "common.csv:target", "--beta", 1, "--row-ids", "patient_id")
    for options in (
        ("fit", "lasso", *data, "--resume", "nothing.safetensors"),
        ("fit", "lasso", *data, "--topology", "nothing.graphml"),
        ("fit", "lasso", *data, "--checkpoint", "nothing/c.safetensors"),
        ("predict", "nothing.safetensors", "north.csv"),
        ("predict", "y.csv", "nothing.csv"),
        ("inspect", "nothing.safetensors"),
    ):
        outcome = run(*options)
        assert outcome.exit_code == 2, options
        assert "Errno" not in outcome.stderr
        assert "nothing" in outcome.stderr or "y.csv" in outcome.stderr


def test_other_errors_of_the_system_have_no_numbers():
    from atomcast.commands.mistakes import one_line

    assert one_line(PermissionError(13, "Permission denied", "x.csv")) == "x.csv: Permission denied"
    assert one_line(OSError(28, "No space left on device")) == "No space left on device"
    assert one_line(OSError("in words")) == "in words"
