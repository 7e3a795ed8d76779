"""Models as ONNX: what the reference implementation makes of a file is what the model says."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

import atomcast
from atomcast import Lasso, load_model, save_model
from atomcast.saving.onnx_file import save_onnx

WORDS = np.array(["benign", "malign"])


def flowers():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


def tumours():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:200, :12], y[:200]


def words():
    X, y = tumours()
    return X, WORDS[y]


def texts():
    X, y = words()
    return X, y.astype(object)


def truths():
    X, y = tumours()
    return X, y == 1


def numbers():
    return load_diabetes(return_X_y=True)


def two_targets():
    X, y = numbers()
    return X, np.column_stack([y, X[:, 0]])


def gaps():
    X, y = tumours()
    X[::3, :4] = np.nan
    return X, y


def votes():
    X, y = tumours()
    return np.sign(X), y


def logistic_loss():
    from atomcast.domains import L1Ball
    from atomcast.objectives import LogisticLoss

    return {"objective": LogisticLoss(), "domain": L1Ball(3.0)}


CASES = [
    ("Lasso", {"beta": 700.0}, numbers),
    ("LassoCV", {"n_betas": 3, "cv": 2}, numbers),
    ("GroupLasso", {"beta": 500.0, "groups": [[0, 1, 2], [3, 4], [5, 6, 7, 8, 9]]}, numbers),
    ("MatchingPursuit", {"n_nonzero": 3}, numbers),
    ("MatchingPursuit", {"n_nonzero": 3}, two_targets),
    ("SparseLogisticRegression", {"beta": 3.0}, tumours),
    ("SparseLogisticRegression", {"beta": 3.0}, words),
    ("SparseLogisticRegression", {"beta": 3.0}, texts),
    ("SparseLogisticRegression", {"beta": 3.0}, truths),
    ("SparseLogisticRegression", {"beta": 3.0}, flowers),
    ("GroupLogisticRegression", {"beta": 3.0}, tumours),
    ("SparseModel", logistic_loss, tumours),
    ("L1AdaBoost", {"temperature": 0.3}, gaps),
    ("L1AdaBoost", {"temperature": 0.3, "base": "matrix"}, votes),
]


@pytest.mark.filterwarnings("ignore:the largest radius")
@pytest.mark.parametrize(("name", "parameters", "data"), CASES)
def test_other_programs_predict_the_same(name, parameters, data, tmp_path):
    from onnx.reference import ReferenceEvaluator

    X, y = data()
    given = parameters() if callable(parameters) else parameters
    model = getattr(atomcast, name)(**given).fit(X, y)
    save_onnx(model, tmp_path / "m.onnx")
    session = ReferenceEvaluator(str(tmp_path / "m.onnx"))
    told = dict(zip(session.output_names, session.run(None, {"X": X}), strict=True))
    if not hasattr(model, "classes_"):
        np.testing.assert_allclose(told["prediction"], model.predict(X), rtol=1e-12)
        return
    assert told["label"].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(told["score"], model.decision_function(X), rtol=1e-9, atol=1e-12)
    assert hasattr(model, "predict_proba") == ("probabilities" in told)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(told["probabilities"], model.predict_proba(X), atol=1e-12)


def test_a_file_holds_the_features_in_use_and_their_names(tmp_path):
    import onnx

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    noise = pd.DataFrame(np.zeros((len(X), 3_000))).add_prefix("noise ")
    X = pd.concat([X, noise], axis=1)
    save_onnx(Lasso(700.0).fit(X, y), tmp_path / "m.onnx")
    about = {one.key: one.value for one in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert json.loads(about["feature_names"]) == list(X.columns)
    assert (tmp_path / "m.onnx").stat().st_size < len(about["feature_names"]) + 2_000


def test_a_model_without_a_form_is_refused(tmp_path):
    model = atomcast.KernelSVC().fit(*tumours())
    with pytest.raises(ValueError, match=r"KernelSVC has no form in ONNX here: linear models"):
        save_onnx(model, tmp_path / "m.onnx")


def test_without_onnx_a_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"atomcast\[export\]"):
        save_onnx(Lasso(1.0).fit(*numbers()), tmp_path / "m.onnx")


def test_the_command_line_exports(tmp_path):
    from onnx.reference import ReferenceEvaluator
    from typer.testing import CliRunner

    from atomcast.cli import app

    X, y = numbers()
    file = tmp_path / "m.safetensors"
    save_model(Lasso(700.0).fit(X, y), file)
    outcome = CliRunner().invoke(app, ["export", str(file)])
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.strip() == str(tmp_path / "m.onnx")
    (told,) = ReferenceEvaluator(str(tmp_path / "m.onnx")).run(None, {"X": X})
    np.testing.assert_allclose(told, load_model(file).predict(X))
    outcome = CliRunner().invoke(app, ["export", str(file), "--out", str(tmp_path / "m.pkl")])
    assert outcome.exit_code == 2
    assert "the suffix '.pkl' is not known; use .onnx" in outcome.stderr
