"""Bad input: one line that says what is wrong, exit code 2, and no traceback."""

import numpy as np
import pandas as pd
import pytest

from atomcast import Lasso, save_model
from atomcast.storage.container import read_model_file, write_model_file

FIT = ("fit", "lasso")
GOOD = ("--target", "y.npy", "--beta", "1")


@pytest.fixture
def bad(files, diabetes):
    """Files with something wrong in each."""
    X, y = diabetes
    np.save("short.npy", y.to_numpy()[:-1])
    np.save("short_part.npy", X.to_numpy()[:-2])
    np.save("vector.npy", np.zeros(442))
    broken = X.copy()
    broken.loc[3, "bmi"] = np.nan
    broken.to_csv("nan.csv", index=False)
    broken.to_numpy().tofile("foreign.npz")
    broken = X.to_numpy().copy()
    broken[5, 2] = np.inf
    np.save("inf.npy", broken)
    gap = y.to_numpy().copy()
    gap[7] = np.nan
    np.save("y_nan.npy", gap)
    pd.DataFrame({"y": ["1.5", "high", *["2"] * 440]}).to_csv("y_text.csv", index=False)
    X.assign(bmi="text").to_csv("text.csv", index=False)
    pd.DataFrame({"a": y, "b": y}).to_csv("y_two.csv", index=False)
    (files / "notes.docx").write_text("no data")
    (files / "folder").mkdir()
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    ids = np.arange(442)
    X.iloc[:, :4].assign(row_id=ids).to_csv("ids_a.csv", index=False)
    X.iloc[:, 4:].assign(row_id=ids[::-1]).to_csv("ids_b.csv", index=False)
    return files


CASES = {
    "missing file": (["nothing.npy", *GOOD], "there is no file nothing.npy"),
    "missing part": (["a.csv", "nothing.csv", *GOOD], "nothing.csv"),
    "missing target": (["X.npy", "-y", "no.npy", "--beta", "1"], "there is no file no.npy"),
    "unknown suffix": (["notes.docx", *GOOD], "suffix '.docx' is not known"),
    "unknown target suffix": (["X.npy", "-y", "notes.docx", "--beta", "1"], "'.docx'"),
    "not what it says": (["foreign.npz", *GOOD], "foreign.npz cannot be read"),
    "a vector as data": (["vector.npy", *GOOD], "vector.npy"),
    "pickled objects": (["objects.npy", *GOOD], "objects.npy"),
    "text in data": (["text.csv", *GOOD], "bmi"),
    "nan in one file": (["nan.csv", *GOOD], "'bmi') contains NaN"),
    "nan in a part": (["nan.csv", "X.npy", *GOOD], "nan.csv"),
    "infinity": (["inf.npy", *GOOD, "--nodes", "3"], "infinity"),
    "short target": (["X.npy", "-y", "short.npy", "--beta", "1"], "441 values"),
    "short part": (["a.csv", "short_part.npy", *GOOD], "short_part.npy"),
    "nan in target": (["X.npy", "-y", "y_nan.npy", "--beta", "1"], "row 7 is nan"),
    "text in target": (["X.npy", "-y", "y_text.csv", "--beta", "1"], "row 1 is 'high'"),
    "two targets": (["X.npy", "-y", "y_two.csv", "--beta", "1"], "y_two.csv:a"),
    "no such column": (["X.npy", "-y", "y_two.csv:c", "--beta", "1"], "no column 'c'"),
    "target in a part": (
        ["with_target.csv", "X.npy", "-y", "with_target.csv:target", "--beta", "1"],
        "a file of its own",
    ),
    "rows in another order": (["ids_a.csv", "ids_b.csv", *GOOD], "ids_b.csv"),
    "no such row ids": (["a.csv", "b.csv", *GOOD, "--row-ids", "id"], "row_ids='id'"),
    "duplicate names": (["a.csv", "a.csv", *GOOD], "age"),
    "beta zero": (["X.npy", "-y", "y.npy", "--beta", "0"], "beta must be a finite number > 0"),
    "beta nan": (["X.npy", "-y", "y.npy", "--beta", "nan"], "got nan"),
    "tol": (["X.npy", *GOOD, "--tol", "-1"], "tol must be"),
    "max rounds": (["X.npy", *GOOD, "--max-rounds", "-1"], "max_rounds must be"),
    "time limit": (["X.npy", *GOOD, "--time-limit", "0"], "seconds must be"),
    "step": (["X.npy", *GOOD, "--step", "fast"], "'block-coordinate', or an atomcast"),
    "engine": (["X.npy", *GOOD, "--engine", "abacus"], "--engine must be one of 'local'"),
    "no nodes": (["X.npy", *GOOD, "--nodes", "0"], "nodes must be a whole number >= 1"),
    "nodes and parts": (["a.csv", "b.csv", *GOOD, "--nodes", "3"], "--nodes 3 does not go with 2"),
    "no folder": (["X.npy", *GOOD, "--out", "no/m.safetensors"], "there is no folder no"),
    "out is a folder": (["X.npy", *GOOD, "--out", "folder"], "--out folder is a folder"),
    "trace is a folder": (["X.npy", *GOOD, "--trace", "folder"], "--trace folder is a folder"),
}


def says_one_line(outcome, text):
    assert outcome.exit_code == 2, outcome.output
    assert text in outcome.stderr
    assert outcome.stderr.startswith("atomcast: error: ")
    assert outcome.stderr.count("\n") == 1
    assert "Traceback" not in outcome.output
    assert outcome.stdout == ""


@pytest.mark.parametrize("case", CASES)
def test_fit_says_what_is_wrong(run, bad, case):
    arguments, text = CASES[case]
    says_one_line(run(*FIT, *arguments), text)


def test_a_wrong_output_is_noticed_before_the_work(run, files, monkeypatch):
    monkeypatch.setattr(Lasso, "fit", lambda *data: pytest.fail("it was fitted"))
    assert run(*FIT, "X.npy", *GOOD, "--out", "no/m.safetensors").exit_code == 2


def test_debug_shows_the_traceback(run, files):
    outcome = run(*FIT, "nothing.npy", *GOOD, "--debug")
    assert isinstance(outcome.exception, FileNotFoundError)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["fit", "lasso", "X.npy", "--beta", "1"], "--target"),
        (["fit", "lasso", "X.npy", "--target", "y.npy"], "--beta"),
        (["fit", "lasso", "--target", "y.npy", "--beta", "1"], "PART"),
        (["fit", "lasso", "X.npy", "-y", "y.npy", "--beta", "much"], "--beta"),
        (["fit", "ridge", "X.npy"], "ridge"),
        (["guess"], "guess"),
        (["predict", "m.safetensors"], "DATA"),
        (["inspect"], "MODEL"),
    ],
)
def test_usage_errors_name_what_is_missing(run, arguments, text):
    outcome = run(*arguments)
    assert outcome.exit_code == 2
    assert text in outcome.stderr


@pytest.fixture
def model(files, diabetes):
    save_model(Lasso(800.0).fit(*diabetes), "m.safetensors")
    return "m.safetensors"


PREDICTIONS = {
    "no model": (["no.safetensors", "X.npy"], "there is no file no.safetensors"),
    "not a model": (["X.npy", "X.npy"], "X.npy is no model file"),
    "no data": (["m.safetensors", "no.npy"], "there is no file no.npy"),
    "suffix": (["m.safetensors", "X.npy", "--out", "p.xlsx"], "use .npy or .csv"),
    "out folder": (["m.safetensors", "X.npy", "--out", "no/p.csv"], "there is no folder no"),
    "too few columns": (["m.safetensors", "short.npy"], "3 features"),
    "missing columns": (["m.safetensors", "a.csv"], "'s1', 's2', 's3' and 3 more"),
    "missing in parts": (["m.safetensors", "a.csv", "a2.csv"], "does not have"),
    "parts in another order": (["m.safetensors", "b.csv", "a.csv"], "in the order of the fit"),
    "nan": (["m.safetensors", "nan.npy"], "NaN"),
    "nan in parts": (["m.safetensors", "nan_a.csv", "b.csv"], "contains NaN"),
    "wrong count in parts": (["m.safetensors", "X.npy", "short.npy"], "13 features"),
}


@pytest.mark.parametrize("case", PREDICTIONS)
def test_predict_says_what_is_wrong(run, model, diabetes, case):
    X = diabetes[0].to_numpy().copy()
    np.save("short.npy", X[:, :3])
    diabetes[0].iloc[:, :4].add_suffix("2").to_csv("a2.csv", index=False)
    X[0, 0] = np.nan
    np.save("nan.npy", X)
    pd.DataFrame(X[:, :4], columns=diabetes[0].columns[:4]).to_csv("nan_a.csv", index=False)
    arguments, text = PREDICTIONS[case]
    says_one_line(run("predict", *arguments), text)


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "no model file"), (b"\x80\x04K\x01.", "no model file"), (None, "there is no file")],
)
def test_inspect_says_what_is_wrong(run, tmp_path, content, text):
    path = tmp_path / "m.safetensors"
    if content is not None:
        path.write_bytes(content)
    says_one_line(run("inspect", path), text)


def test_inspect_refuses_a_damaged_model(run, model, files):
    content = bytearray((files / model).read_bytes())
    content[-1] ^= 1
    (files / model).write_bytes(content)
    says_one_line(run("inspect", model), "is damaged")


def test_demo_needs_a_folder(run, files):
    says_one_line(run("demo", "--out", "X.npy"), "is a file")
    says_one_line(run("demo", "--out", "d", "--nodes", "0"), "--nodes must be")


def test_messages_cannot_command_the_terminal(run, tmp_path):
    outcome = run(*FIT, tmp_path / "\x1b[31m.npy", "-y", "y.npy", "--beta", "1")
    assert outcome.exit_code == 2
    assert "\x1b" not in outcome.stderr


def test_inspect_refuses_content_that_makes_no_sense(run, model):
    file = read_model_file(model)
    del file.header["schema"], file.header["certificate"]["rounds"]
    write_model_file(model, file.header, file.arrays)
    says_one_line(run("inspect", model), "does not describe a usable model")
