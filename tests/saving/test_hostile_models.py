"""Model files and checkpoints that are damaged, or were made to do harm."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from atomcast import (
    Checkpoint,
    GroupLasso,
    KernelSVC,
    KernelSVR,
    L1AdaBoost,
    Lasso,
    MultipleKernelClassifier,
    Solver,
    SparseLogisticRegression,
    StructuredSVM,
    load_model,
    save_model,
)
from atomcast.cli import app
from atomcast.saving import layouts
from atomcast.saving.model_file import atoms_in
from atomcast.storage.container import KEY, read_model_file, write_model_file
from atomcast.storage.snapshot import read_checkpoint
from damage import damaged, outcome, rewritten

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 5))
y = X[:, 0] - X[:, 1]
texts = np.where(y > 0, "good", "bad")
MODELS = {
    "Lasso": lambda: Lasso(1.0, cluster=2).fit(X, y),
    "logistic": lambda: SparseLogisticRegression(1.0).fit(X, texts),
    "groups": lambda: GroupLasso(1.0, groups=[[0, 1], [2, 3, 4]]).fit(X, y),
    "boosting": lambda: L1AdaBoost().fit(X, texts),
    "kernel": lambda: KernelSVC().fit(X, texts),
    "structured": lambda: StructuredSVM().fit(X, texts),
    "many kernels": lambda: MultipleKernelClassifier(views=[[0, 1], [2, 3, 4]]).fit(X, texts),
    "kernel regression": lambda: KernelSVR().fit(X, y),
    "sparse kernel": lambda: KernelSVC().fit(sparse.csr_array(X), texts),
}


@pytest.fixture
def path(tmp_path):
    save_model(MODELS["Lasso"](), tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


# -- damage ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_damaged_models_are_refused(tmp_path, name):
    path = tmp_path / "m"
    save_model(MODELS[name](), path)
    content = path.read_bytes()
    for copy in damaged(content):
        path.write_bytes(copy)
        assert isinstance(outcome(load_model, path), ValueError)
    path.write_bytes(content)
    load_model(path)


def test_damaged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "c"
    Lasso(1.0, cluster=2, solver=Solver(callbacks=[Checkpoint(path)])).fit(X, y)
    content = path.read_bytes()
    for copy in damaged(content):
        path.write_bytes(copy)
        assert isinstance(outcome(read_checkpoint, path), ValueError)
    path.write_bytes(content)
    read_checkpoint(path)


@pytest.mark.parametrize("name", MODELS)
def test_arrays_of_another_kind_behind_a_right_checksum(tmp_path, name):
    path = tmp_path / "m"
    save_model(MODELS[name](), path)
    file = read_model_file(path)
    header = {key: value for key, value in file.header.items() if key != "schema"}
    for key, array in file.arrays.items():
        filled = np.frombuffer(b"\xff" * array.nbytes, array.dtype).reshape(array.shape)
        others = [np.zeros(0), np.zeros((2, 2), np.int8), filled]
        if array.ndim:
            others += [array[:-1], array[None], np.concatenate([array, array])]
        for other in others:
            write_model_file(path, header, {**file.arrays, key: other})
            loaded = outcome(load_model, path)
            if not isinstance(loaded, ValueError):
                assert len(loaded.predict(X)) == len(X)


def resumed(path):
    return Lasso(1.0, cluster=2, solver=Solver(atoms_per_round=1, resume=path)).fit(X, y)


def test_checkpoints_of_another_content_behind_a_right_checksum(tmp_path):
    path = tmp_path / "c"
    solver = Solver(max_rounds=1, atoms_per_round=1, callbacks=[Checkpoint(path)])
    with pytest.warns(ConvergenceWarning):
        Lasso(1.0, cluster=2, solver=solver).fit(X, y)
    best = resumed(path).result_.objective
    file = read_model_file(path)
    numbers = file.header["checkpoint"]
    wrong = (None, "7", -1, 2**70, 1.5, [1], {"a": 1})
    changed = [({**numbers, key: value}, file.arrays) for key in numbers for value in wrong]
    for key, array in file.arrays.items():
        others = [np.zeros(0), np.zeros((2, 2), np.int8), np.concatenate([[9], array.ravel()])]
        others += [np.full_like(array, 10**9), np.full_like(array, -1)]
        changed += [(numbers, {**file.arrays, key: other}) for other in others]
    refused = 0
    for header, arrays in changed:
        write_model_file(path, {"checkpoint": header}, arrays)
        found = outcome(resumed, path)
        refused += isinstance(found, ValueError)
        if not isinstance(found, ValueError) and found.result_.status == "optimal":
            assert found.result_.objective == pytest.approx(best, rel=1e-3)
    assert refused > 40


@pytest.mark.parametrize("round", [10**7 + 1, 2**70, -1, True])
def test_a_round_that_nobody_came_to(tmp_path, round):
    path = tmp_path / "c"
    Lasso(1.0, cluster=2, solver=Solver(callbacks=[Checkpoint(path)])).fit(X, y)
    rewritten(path, lambda header, arrays: header["checkpoint"].update(round=round))
    with pytest.raises(ValueError, match="does not describe a usable checkpoint: round"):
        resumed(path)


# -- promises --------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [2_000_000_000, 2**40])
def test_a_small_file_cannot_ask_for_gigabytes(path, features):
    rewritten(path, lambda header, arrays: header.update(n_features_in=features))
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"it has {features:,} features, but only"):
        load_model(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22


def test_a_model_with_very_many_features_lists_them_all(tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "UNLISTED", 4)
    model = Lasso(0.5).fit(X, y)
    assert np.any(model.coef_ == 0)
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").coef_, model.coef_)
    ids, weights = atoms_in(read_model_file(tmp_path / "m"))
    np.testing.assert_array_equal(ids, np.flatnonzero(model.coef_))
    assert np.all(weights != 0)


def test_one_long_label_among_many(tmp_path):
    path = tmp_path / "m"
    save_model(MODELS["logistic"](), path)
    labels = json.dumps([f"{k:06}" for k in range(20_000)] + ["z" * 20_000]).encode()
    array = np.frombuffer(labels, dtype=np.uint8)
    rewritten(path, lambda header, arrays: arrays.update({"model.classes.text": array}))
    tracemalloc.start()
    with pytest.raises(ValueError, match="one of 20,001 texts has 20,000 characters"):
        load_model(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**25


# -- headers ---------------------------------------------------------------------------------


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [60, 300, 900, 5_000, 100_000])
def test_nested_headers(tmp_path, levels):
    deep = "[" * levels + "]" * levels
    header = f'{{"schema": 1, "digest": "0", "parameters": {{"beta": {deep}}}}}'
    (tmp_path / "m").write_bytes(save({"a": np.zeros(1)}, metadata={KEY: header}))
    with pytest.raises(ValueError, match="header cannot be read"):
        load_model(tmp_path / "m")


def test_nested_names(path):
    array = np.frombuffer(b"[" * 100_000, dtype=np.uint8)
    rewritten(path, lambda header, arrays: arrays.update(feature_names=array))
    with pytest.raises(ValueError, match="does not describe a usable model"):
        load_model(path)


def test_a_number_that_json_does_not_have(tmp_path):
    header = '{"schema": 1, "digest": "0", "n_features_in": NaN}'
    (tmp_path / "m").write_bytes(save({"a": np.zeros(1)}, metadata={KEY: header}))
    with pytest.raises(ValueError, match=r"header cannot be read .*NaN is no JSON"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("value", ["5", 5.0, True, None, [5], -1, {"a": 5}])
def test_a_number_of_features_that_is_none(path, value):
    rewritten(path, lambda header, arrays: header.update(n_features_in=value))
    with pytest.raises(ValueError, match=r"n_features_in must be a whole number >= 0"):
        load_model(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rounds", "7", "rounds must be a whole number"),
        ("bytes", 7.5, "bytes must be a whole number"),
        ("status", "perfect", "status must be one of 'optimal'"),
        ("status", ["optimal"], "status must be one of 'optimal'"),
        ("by_kind", [1], "by_kind must be an object"),
        ("by_kind", {"atom": {"values": "a"}}, "values must be a whole number"),
        ("gap", [1], "float"),
        ("gap", 10**400, "too large"),
    ],
)
def test_certificates_of_wrong_types(path, key, value, message):
    rewritten(path, lambda header, arrays: header["certificate"].update({key: value}))
    with pytest.raises(ValueError, match=f"does not describe a usable model: .*{message}"):
        load_model(path)


@pytest.mark.parametrize("key", ["parameters", "certificate"])
def test_lists_where_objects_are_due(path, key):
    rewritten(path, lambda header, arrays: header.update({key: [1, 2]}))
    with pytest.raises(ValueError, match=f"{key} must be an object with a value for each name"):
        load_model(path)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(-9, 9)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def content_of_a_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    save_model(MODELS["Lasso"](), path)
    return path.read_bytes()


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_any_header_is_a_model_or_refused(tmp_path_factory, content_of_a_model, data):
    path = tmp_path_factory.mktemp("headers") / "m"
    path.write_bytes(content_of_a_model)
    place = data.draw(st.sampled_from(["top", "parameters", "certificate"]))

    def change(header, arrays):
        where = header if place == "top" else header[place]
        where[data.draw(st.sampled_from(sorted(where)))] = data.draw(JSON)

    rewritten(path, change)
    outcome(load_model, path)
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exit_code in (0, 2), result.exception
