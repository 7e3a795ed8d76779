"""`atomcast fit --config run.toml`: the fit that a file describes, of tables as they are."""

import numpy as np
import pandas as pd
import pytest

from atomcast import load_model

RUN = """
estimator = "lasso"
parts = ["north.csv", "south.csv"]
target = "y.csv:y"
beta = 20
intercept = true
verbose = false
out = "model.safetensors"
[prepare]
impute = "mean"
scale = "standard"

[prepare.south]
one_hot = ["code"]
drop = ["name"]
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a table of each hospital, a target and a run."""
    rng, rows = np.random.default_rng(0), 40
    age, code = rng.normal(50, 10, rows), rng.choice([1, 2], rows)
    ids = np.arange(rows)
    pd.DataFrame({"row_id": ids, "y": age + 3 * code}).to_csv(tmp_path / "y.csv", index=False)
    age[::5] = np.nan
    ward = rng.choice(["a", "b"], rows)
    north = pd.DataFrame({"row_id": ids, "age": age, "ward": ward})
    north.to_csv(tmp_path / "north.csv", index=False)
    south = pd.DataFrame({"row_id": ids, "code": code, "name": [f"p {i}" for i in ids]})
    south.to_csv(tmp_path / "south.csv", index=False)
    north.merge(south).to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "run.toml").write_text(RUN)
    return tmp_path


def test_a_run_in_a_file_is_fitted_and_predicts(run, folder, monkeypatch):
    outcome = run("fit", "--config", folder / "run.toml")  # paths go by the folder of the file
    assert (outcome.exit_code, outcome.output) == (0, "")  # verbose = false is --quiet
    model = load_model(folder / "model.safetensors")
    assert list(model.feature_names_in_) == ["age", "ward=a", "ward=b", "code=1", "code=2"]
    monkeypatch.chdir(folder)
    apart = run("predict", "model.safetensors", "north.csv", "south.csv")
    whole = run("predict", "model.safetensors", "all.csv")
    assert apart.exit_code == 0, apart.stderr
    parts, together = (np.array(out.stdout.split(), dtype=float) for out in (apart, whole))
    np.testing.assert_allclose(parts, together, rtol=1e-12)
    assert len(parts) == 40


def test_one_table_is_prepared_and_cut_up(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    pd.read_csv("all.csv").assign(y=pd.read_csv("y.csv")["y"]).to_csv("with_y.csv", index=False)
    (folder / "run.toml").write_text('[prepare]\nimpute = "mean"\ndrop = ["name"]\n')
    coefs = []
    for data, target in (("with_y.csv", "with_y.csv:y"), ("all.csv", "y.csv:y")):
        options = ("--beta", 9, "--nodes", 3, "--prepare", "run.toml", "--out", "m.safetensors")
        outcome = run("fit", "lasso", data, "--target", target, *options)
        assert outcome.exit_code == 0, outcome.stderr
        coefs.append(load_model("m.safetensors").coef_)
    np.testing.assert_allclose(*coefs)
    assert run("predict", "m.safetensors", "all.csv").exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("estimator = 'lazzo'", "estimator must be one of lasso, "),
        ("estimator = 'lasso'\nparts = 'a.csv'", "parts must be a list of files"),
        ("estimator = 'lasso'\nbetta = 3", "betta is no setting of lasso (did you mean beta?)"),
        ("estimator = 'lasso'\nintercept = 3", "intercept must be true or false, got 3"),
        ("estimator = ", "is no TOML file"),
        (
            RUN + "\n[prepare.east]\nscale = 'standard'",
            "[prepare.east] is for none",
        ),
        (RUN + "fill = 3", "[prepare] knows impute, one_hot, scale and drop"),
        (RUN.replace("[prepare", "[other"), "other is no setting of lasso"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(run, folder, text, message):
    (folder / "run.toml").write_text(text)
    outcome = run("fit", "--config", folder / "run.toml")
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_file_and_an_estimator_are_one_too_many(run, folder):
    outcome = run("fit", "--config", folder / "run.toml", "lasso", "x.csv")
    assert outcome.exit_code == 2
    assert "leave out one of them" in outcome.stderr


def test_no_preparation_where_there_is_none(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "run.toml").write_text("beta = 3")
    options = ("--beta", 9, "--target", "y.csv:y", "--prepare", "run.toml")
    outcome = run("fit", "lasso", "all.csv", *options)
    assert "run.toml has no table [prepare]: put that line above" in outcome.stderr
