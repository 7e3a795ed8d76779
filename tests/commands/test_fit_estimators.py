"""Every estimator from the command line: fit, predict and inspect agree with the library."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import Lasso as TheirLasso
from sklearn.preprocessing import scale

from atomcast import (
    DictionaryLearning,
    GroupLasso,
    GroupLogisticRegression,
    KernelSVC,
    KernelSVR,
    L1AdaBoost,
    L1BoostRegressor,
    LassoCV,
    MatchingPursuit,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    Shards,
    Solver,
    SparseCoder,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    StructuredSVM,
    load_model,
)
from atomcast.commands.estimators import ESTIMATORS
from atomcast.saving.model_file import LAYOUTS


@pytest.fixture
def wine(tmp_path, monkeypatch):
    """A folder, made the current one, with the wines of two cultivators, and of three."""
    monkeypatch.chdir(tmp_path)
    data = load_wine(as_frame=True)
    X = pd.DataFrame(scale(data.data), columns=data.data.columns)
    X.to_csv("three.csv", index=False)
    names = np.array(["anna", "berta", "clara"])
    pd.Series(names[data.target], name="grower").to_csv("y3.csv", index=False)
    two = (data.target < 2).to_numpy()
    X, y = X[two].reset_index(drop=True), data.target[two].to_numpy()
    X.to_csv("two.csv", index=False)
    X.iloc[:, :4].to_csv("a.csv", index=False)
    X.iloc[:, 4:].to_csv("b.csv", index=False)
    np.save("y2.npy", y)
    return X, y


FEATURES = ("a.csv", "b.csv", "--target", "y2.npy")
PARTS = [[0, 1, 2, 3], list(range(4, 13))]
CASES = {
    "lasso-cv": (("--folds", 3, "--n-betas", 4), LassoCV(n_betas=4, cv=3)),
    "logistic": (("--beta", 5, "--balanced"), SparseLogisticRegression(5, class_weight="balanced")),
    "logistic-cv": (
        ("--folds", 3, "--n-betas", 4, "--no-intercept"),
        SparseLogisticRegressionCV(n_betas=4, cv=3, fit_intercept=False),
    ),
    "group-lasso": (("--beta", 0.5), GroupLasso(0.5, groups=PARTS)),
    "group-logistic": (("--beta", 3), GroupLogisticRegression(3.0, groups=PARTS)),
    "matching-pursuit": (("--n-nonzero", 3, "--normalize"), MatchingPursuit(3, normalize=True)),
    "boosting": (("--temperature", 0.2), L1AdaBoost(0.2)),
    "boosting-regressor": (("--beta", 2.0), L1BoostRegressor(2.0)),
    "mkl-classifier": (
        ("--C", 0.5, "--kernels", "rbf, linear"),
        MultipleKernelClassifier(0.5, kernels=["rbf", "linear"], views=PARTS),
    ),
    "mkl-regressor": (
        ("--beta", 2, "--send", "columns", "--no-intercept"),
        MultipleKernelRegressor(beta=2.0, views=PARTS, send="columns", fit_intercept=False),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_features_in_two_files(run, wine, name):
    X, y = wine
    options, estimator = CASES[name]
    outcome = run("fit", name, *FEATURES, *options, "--out", "m.safetensors")
    assert outcome.exit_code == 0, outcome.stderr
    model = load_model("m.safetensors")
    assert type(model) is type(estimator)
    expected = estimator.fit(X, y)
    assert model.certificate_.nodes == 2
    assert model.certificate_.objective == pytest.approx(expected.result_.objective, rel=1e-3)
    for data in (["a.csv", "b.csv"], ["two.csv"]):
        assert run("predict", "m.safetensors", *data, "--out", "p.npy").exit_code == 0
        np.testing.assert_allclose(np.load("p.npy"), model.predict(X), rtol=1e-9, atol=1e-12)
    content = json.loads(run("inspect", "m.safetensors", "--json").stdout)
    kind = "kernels" if name.startswith("mkl") else "features"
    assert (content["estimator"], content["atoms_are"]) == (type(model).__name__, kind)
    names = set(model.kernel_names_ if kind == "kernels" else X.columns)
    assert {atom["name"] for atom in content["atoms"]} <= names
    assert "Atoms by weight" in run("inspect", "m.safetensors").stdout
    assert ("radius" in outcome.stdout) == hasattr(model, "beta_")


def test_every_estimator_has_a_command():
    named = {"lasso": "Lasso", "kernel-svm": "KernelSVC", "structured-svm": "StructuredSVM"}
    named |= {"kernel-svr": "KernelSVR"}
    named |= {"sparse-coder": "SparseCoder", "dictionary-learning": "DictionaryLearning"}
    named |= {name: type(estimator).__name__ for name, (_, estimator) in CASES.items()}
    assert set(named) == set(ESTIMATORS)
    assert set(named.values()) == set(LAYOUTS) - {"SparseModel"}  # whose parts are objects


def test_codes_of_signals(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    dictionary, signals = rng.standard_normal((15, 6)), rng.standard_normal((8, 6))
    np.save("a.npy", dictionary[:5])
    np.save("b.npy", dictionary[5:])
    np.save("signals.npy", signals)
    options = ("--target", "signals.npy", "--beta", 1, "--tol", 1e-9, "--out", "m.safetensors")
    outcome = run("fit", "sparse-coder", "a.npy", "b.npy", *options)
    assert outcome.exit_code == 0, outcome.stderr
    held = Shards.split(dictionary, nodes=2, by=[5, 10])
    expected = SparseCoder(held, beta=1.0).encode(signals)
    certificate = load_model("m.safetensors").certificate_
    assert certificate.values == expected.result.ledger.values
    assert certificate.objective == pytest.approx(expected.result.objective)
    assert run("predict", "m.safetensors", "signals.npy", "--out", "codes.npz").exit_code == 0
    codes = sparse.load_npz("codes.npz")
    np.testing.assert_allclose(codes.toarray(), expected.codes.toarray(), atol=1e-9)
    printed = run("predict", "m.safetensors", "signals.npy").stdout.splitlines()
    pairs = [pair.split(":") for pair in printed[3].split()]
    assert {int(atom): float(weight) for atom, weight in pairs} == pytest.approx(
        dict(zip(codes[[3]].indices.tolist(), codes[[3]].data.tolist(), strict=True))
    )
    assert "SparseCoder" in run("inspect", "m.safetensors").stdout


def test_a_dictionary_is_learned(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    signals = np.random.default_rng(0).standard_normal((30, 6))
    np.save("a.npy", signals[:10])
    np.save("b.npy", signals[10:])
    options = ("--n-components", 4, "--n-nonzero", 2, "--max-iter", 3, "--nodes", 2)
    outcome = run(
        "fit", "dictionary-learning", "a.npy", "b.npy", *options, "--out", "m.safetensors"
    )
    assert outcome.exit_code == 0, outcome.stderr
    expected = DictionaryLearning(4, n_nonzero=2, max_iter=3, cluster=2).fit(signals)
    model = load_model("m.safetensors")
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
    assert model.certificate_.nodes == 2


def test_a_kernel_machine_of_rows_in_files(run, wine):
    X = pd.read_csv("three.csv")
    y = pd.read_csv("y3.csv").grower.to_numpy()
    X.insert(0, "row_id", [f"bottle {k}" for k in range(len(X))])
    bounds = (0, 50, 120, len(X))
    parts = [f"rows{k}.csv" for k in range(3)]
    for k, part in enumerate(parts):
        X.iloc[bounds[k] : bounds[k + 1]].to_csv(part, index=False)
    outcome = run(
        *("fit", "kernel-svm", *parts, "--target", "y3.csv:grower", "--C", 5, "--gamma", 0.05),
        *("--tol", 1e-5, "--out", "m.safetensors"),
    )
    assert outcome.exit_code == 0, outcome.stderr
    model = load_model("m.safetensors")
    plain = X.drop(columns="row_id")
    expected = KernelSVC(5.0, gamma=0.05, cluster=3, solver=Solver(tol=1e-5)).fit(plain, y)
    assert model.certificate_.nodes == 3
    np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, atol=1e-6)
    assert model.feature_names_in_.tolist() == list(plain.columns)
    for data in (parts, ["three.csv"]):
        assert run("predict", "m.safetensors", *data, "--out", "p.csv").exit_code == 0
        assert pd.read_csv("p.csv").prediction.tolist() == expected.predict(plain).tolist()
    run("predict", "m.safetensors", *parts, "--out", "p.csv")
    assert pd.read_csv("p.csv").row_id.tolist() == X.row_id.tolist()
    printed = run("predict", "m.safetensors", "three.csv").stdout.splitlines()
    assert set(printed) == {"anna", "berta", "clara"}


def test_a_regression_of_rows_in_files(run, wine):
    X = pd.read_csv("three.csv")
    target = X.iloc[:, 0].to_numpy()
    for part, rows in (("up.csv", X[:90]), ("down.csv", X[90:])):
        rows.to_csv(part, index=False)
    np.save("target.npy", target)
    outcome = run(
        *("fit", "kernel-svr", "up.csv", "down.csv", "--target", "target.npy", "--C", 5),
        *("--epsilon", 0.2, "--tol", 1e-6, "--out", "m.safetensors", "--report", "run.html"),
    )
    assert outcome.exit_code == 0, outcome.stderr
    expected = KernelSVR(5.0, epsilon=0.2, tol=1e-6).fit(X, target)
    assert run("predict", "m.safetensors", "three.csv", "--out", "p.npy").exit_code == 0
    np.testing.assert_allclose(np.load("p.npy"), expected.predict(X), rtol=1e-6)
    assert "KernelSVR" in Path("run.html").read_text(encoding="utf-8")


def test_a_structured_machine_of_sequences_in_files(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lengths = np.array([3, 1, 4, 2, 5, 3])
    y = rng.integers(2, size=lengths.sum())
    X = np.eye(2)[y] + 0.5 * rng.standard_normal((len(y), 2))
    names = np.array(["off", "on"])[y]
    for name, rows in {"a": slice(0, 8), "b": slice(8, None), "all": slice(None)}.items():
        pd.DataFrame(X[rows], columns=["u", "v"]).to_csv(f"{name}.csv", index=False)
    pd.Series(names, name="state").to_csv("y.csv", index=False)
    np.save("lengths.npy", lengths)
    chain = ("--target", "y.csv:state", "--model", "chain", "--lengths", "lengths.npy")
    fit = ("fit", "structured-svm", "a.csv", "b.csv", *chain)
    outcome = run(*fit, "--C", 2, "--out", "m.safetensors")
    assert outcome.exit_code == 0, outcome.stderr
    model = load_model("m.safetensors")
    expected = StructuredSVM("chain", C=2.0, solver=Solver(tol=1e-4)).fit(X, names, lengths=lengths)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-2)
    content = json.loads(run("inspect", "m.safetensors", "--json").stdout)
    assert (content["atoms"], content["disclosures"]) == ([], [])
    assert content["communication"]["corner"]["values"] == content["values"]
    assert "No atom left its node." in run("inspect", "m.safetensors").stdout
    found = model.predict(pd.read_csv("all.csv"), lengths=lengths)
    for data in (["a.csv", "b.csv"], ["all.csv"]):
        predict = ("predict", "m.safetensors", *data, "--out", "p.csv")
        assert run(*predict, "--lengths", "lengths.npy").exit_code == 0
        assert pd.read_csv("p.csv").prediction.tolist() == found.tolist()
        assert "lengths is missing" in run(*predict).stderr
    blocks = ("--step", "block-coordinate", "--tol", 1e-2)
    assert run(*fit, *blocks).exit_code == 0


def test_lengths_are_for_sequences_alone(run, wine):
    assert run("fit", "kernel-svm", "two.csv", "-y", "y2.npy", "-o", "m.safetensors").exit_code == 0
    refused = run("predict", "m.safetensors", "two.csv", "--lengths", "y2.npy")
    assert "--lengths y2.npy is for sequences" in refused.stderr


def test_what_is_said_of_a_kernel_machine(run, wine):
    options = ("--target", "y2.npy", "--nodes", 3, "--out", "m.safetensors")
    assert run("fit", "kernel-svm", "two.csv", *options).exit_code == 0
    model = load_model("m.safetensors")
    content = json.loads(run("inspect", "m.safetensors", "--json").stdout)
    assert content["atoms_are"] == "examples"
    assert sorted(atom["atom"] for atom in content["atoms"]) == model.support_.tolist()
    assert {atom["name"] for atom in content["atoms"]} == {""}
    text = run("inspect", "m.safetensors").stdout
    assert "atoms to choose from" not in text
    assert "kernel" in text


def test_a_kernel_machine_is_resumed(run, wine):
    fit = ("fit", "kernel-svm", "two.csv", "--target", "y2.npy", "--C", 100, "--tol", 1e-6)
    assert run(*fit, "--nodes", 3, "--out", "whole.safetensors").exit_code == 0
    stopped = run(*fit, "--max-rounds", 1, "--checkpoint", "c")
    assert stopped.exit_code == 0, stopped.stderr
    resumed = run(*fit, "--nodes", 2, "--resume", "c", "--out", "again.safetensors")
    assert resumed.exit_code == 0, resumed.stderr
    np.testing.assert_array_equal(
        load_model("again.safetensors").dual_coef_, load_model("whole.safetensors").dual_coef_
    )


def test_groups_in_a_file(run, wine):
    X, y = wine
    groups = [list(X.columns[:2]), list(X.columns[2:4]), list(X.columns[4:])]
    with open("groups.json", "w") as file:
        json.dump(groups, file)
    options = ("--beta", 0.5, "--groups", "groups.json", "--out", "m.safetensors")
    assert run("fit", "group-lasso", *FEATURES, *options).exit_code == 0
    expected = GroupLasso(0.5, groups=groups).fit(Shards.split(X, 1), y)
    np.testing.assert_allclose(load_model("m.safetensors").coef_, expected.coef_, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("group-lasso", ("--beta", 1, "--groups", "nothing.json"), "nothing.json"),
        ("group-lasso", ("--beta", 1, "--groups", "two.csv"), "no JSON file"),
        ("group-lasso", ("--beta", 1, "--groups", "flat.json"), "a list of lists"),
        ("mkl-classifier", ("--kernels", "nothing.json"), "nothing.json"),
        ("kernel-svm", ("--gamma", "middle"), "gamma"),
        ("kernel-svm", ("--kernel", "os.system"), "kernel"),
        ("kernel-svm", ("--C", 0), "C must"),
        ("boosting", ("--base", "trees"), "base must"),
        ("logistic", ("--beta", 0), "beta"),
        ("logistic-cv", ("--folds", 1), "splits"),
    ],
)
def test_mistakes_are_one_line(run, wine, name, options, words):
    with open("flat.json", "w") as file:
        json.dump([0, 1], file)
    outcome = run("fit", name, "two.csv", "--target", "y2.npy", *options)
    assert outcome.exit_code == 2
    assert outcome.stderr.count("\n") == 1
    assert words in outcome.stderr


def test_too_many_classes_are_refused(run, wine):
    for name in ("boosting", "group-logistic"):
        options = () if name == "boosting" else ("--beta", 1)
        outcome = run("fit", name, "three.csv", "--target", "y3.csv:grower", *options)
        assert (outcome.exit_code, "Only binary" in outcome.stderr) == (2, True)


def test_missing_values_are_for_stumps(run, wine):
    X = wine[0]
    X.iloc[::5, 1] = np.nan
    X.iloc[:, :4].to_csv("a.csv", index=False)
    assert run("fit", "boosting", *FEATURES, "--out", "m.safetensors").exit_code == 0
    assert run("predict", "m.safetensors", "a.csv", "b.csv", "--out", "p.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("p.npy"), load_model("m.safetensors").predict(X))
    outcome = run("fit", "logistic", *FEATURES, "--beta", 1)
    assert (outcome.exit_code, "NaN" in outcome.stderr) == (2, True)


def test_numbers_as_labels(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_iris(return_X_y=True)
    np.save("X.npy", X), np.save("y.npy", 10 * y)
    run("fit", "logistic", "X.npy", "--target", "y.npy", "--beta", 5, "--out", "m.safetensors")
    printed = run("predict", "m.safetensors", "X.npy").stdout.splitlines()
    assert set(printed) == {"0", "10", "20"}


def test_penalties_signs_and_weights(run, files, diabetes):
    X, y = diabetes
    weights = np.linspace(0.0, 2.0, len(y))
    np.save("w.npy", weights)
    options = ["--alpha", 0.5, "--positive", "--sample-weight", "w.npy", "--tol", 1e-8]
    outcome = run("fit", "lasso", "a.csv", "b.csv", "-y", "y.npy", *options, "-o", "m.safetensors")
    assert outcome.exit_code == 0, outcome.output
    assert "alpha" in outcome.stdout
    model = load_model("m.safetensors")
    expected = TheirLasso(0.5, positive=True, tol=1e-11).fit(X, y, weights)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-6)
    assert model.alpha_ == 0.5
    assert model.beta_ == pytest.approx(np.abs(expected.coef_).sum(), rel=1e-6)
    both = run("fit", "lasso", "X.npy", "-y", "y.npy", "--alpha", 1, "--beta", 1)
    assert "exclude each other" in both.stderr
    neither = run("fit", "lasso", "X.npy", "-y", "y.npy")
    assert "penalty by --alpha; lasso-cv and logistic-cv choose one" in neither.stderr
    scored = run(
        "fit", "lasso-cv", "X.npy", "-y", "y.npy", "--n-betas", 3, "--folds", 2, "--scoring", "r2",
        "-o", "m.safetensors",
    )  # fmt: skip
    assert scored.exit_code == 0, scored.output
    assert load_model("m.safetensors").scores_.shape[0] == 2
