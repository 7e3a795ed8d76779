"""Saving and loading models: what comes back, and what is refused."""

import json
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso as OtherLasso
from sklearn.linear_model import LinearRegression

from atomcast import (
    Lasso,
    LassoCV,
    LocalCluster,
    Shards,
    Solver,
    TimeLimit,
    load_model,
    save_model,
)
from atomcast.saving.model_file import ELSEWHERE, LAYOUTS, certificate_of, register
from atomcast.storage.container import SCHEMA, read_model_file, text_array
from damage import rewritten


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def model(data):
    solver = Solver(tol=1e-5, callbacks=(TimeLimit(60),))
    return Lasso(800.0, cluster=LocalCluster(4), solver=solver).fit(*data)


@pytest.fixture
def path(tmp_path, model):
    save_model(model, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


# -- what comes back ------------------------------------------------------------------------


def test_predictions_are_identical(path, model, data):
    np.testing.assert_array_equal(load_model(path).predict(data[0]), model.predict(data[0]))
    assert load_model(path).score(*data) == model.score(*data)


def test_fitted_attributes_come_back(path, model):
    loaded = load_model(path)
    assert type(loaded) is Lasso
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.intercept_ == model.intercept_
    assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert (loaded.n_features_in_, loaded.n_iter_) == (model.n_features_in_, model.n_iter_)
    assert loaded.dual_gap_ == model.dual_gap_


def test_certificate_and_disclosures_come_back(path, model):
    certificate, result = load_model(path).certificate_, model.result_
    for key in ("objective", "gap", "relative_gap", "rounds", "status"):
        assert getattr(certificate, key) == getattr(result, key)
    for key in ("nodes", "values", "bytes", "messages", "atoms_sent"):
        assert getattr(certificate, key) == getattr(result.ledger, key)
    assert list(certificate.disclosures) == result.ledger.disclosures
    assert certificate.disclosures[0].name in model.feature_names_in_
    assert list(certificate.told) == result.ledger.told
    assert sum(count.bytes for count in certificate.by_kind.values()) == result.ledger.total.bytes


def test_folds_and_parties_come_back(tmp_path, data):
    X, y = data
    shards = Shards.split(X, 2, party_names=["north", "süd"])
    model = LassoCV(betas=[10.0, 100.0], cv=3).fit(shards, y)
    save_model(model, tmp_path / "m")
    certificate, ledger = load_model(tmp_path / "m").certificate_, model.result_.ledger
    assert certificate.parties == ("north", "süd")
    assert list(certificate.disclosures) == ledger.disclosures
    assert list(certificate.told) == ledger.told
    assert {one.phase.split(",")[0] for one in certificate.disclosures} == {
        *("fold 1", "fold 2", "fold 3", "final fit")
    }
    assert certificate == certificate_of(model)


def test_files_of_the_first_schema_are_still_read(data):
    loaded = load_model(Path(__file__).parent / "files" / "lasso-schema-1.safetensors")
    expected = Lasso(800.0, cluster=3).fit(*data)
    np.testing.assert_allclose(loaded.coef_, expected.coef_)
    certificate, sent = loaded.certificate_, loaded.certificate_.disclosures
    assert {told.atom for told in sent} >= set(np.flatnonzero(loaded.coef_))
    assert {(told.values, told.kind) for told in sent} == {(len(data[1]), "atom")}
    assert certificate.atoms_sent == len(sent)
    assert certificate.values > sum(told.values for told in sent)  # proposals, and every edge
    assert (certificate.told, certificate.parties) == ((), None)


def test_parameters_come_back_except_where_and_callbacks(path, model):
    loaded = load_model(path)
    assert (loaded.beta, loaded.fit_intercept, loaded.cluster) == (800.0, True, None)
    assert loaded.solver == Solver(tol=1e-5)
    described = read_model_file(path).header["parameters"]["cluster"]
    assert described == {"not saved": "LocalCluster(nodes=4, topology='star')"}


def test_a_loaded_model_can_be_saved_and_fitted_again(path, tmp_path, data):
    loaded = load_model(path)
    save_model(loaded, tmp_path / "again.safetensors")
    assert load_model(tmp_path / "again.safetensors").certificate_ == loaded.certificate_
    loaded.set_params(beta=10.0).fit(*data)
    assert certificate_of(loaded).objective == loaded.result_.objective
    save_model(loaded, path)
    assert load_model(path).certificate_.objective == loaded.result_.objective


def test_sparse_data_without_names_or_intercept(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random(50, 400, 0.1, format="csc", rng=rng)
    model = Lasso(2.0, fit_intercept=False, cluster=3, solver="away").fit(X, rng.normal(size=50))
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert not hasattr(loaded, "feature_names_in_")
    assert (loaded.intercept_, loaded.cluster, loaded.solver) == (0.0, 3, "away")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_cross_validated_model_keeps_its_path(tmp_path, data):
    model = LassoCV(betas=np.array([10.0, 100.0]), cv=3).fit(*data)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.beta_ == model.beta_
    assert loaded.betas == [10.0, 100.0]
    np.testing.assert_array_equal(loaded.mse_path_, model.mse_path_)
    np.testing.assert_array_equal(loaded.predict(data[0]), model.predict(data[0]))


def test_names_of_every_alphabet(tmp_path):
    X = pd.DataFrame(np.eye(3), columns=["größe", "[red]x[/red]", "\x1b[31m\n"])
    save_model(Lasso(1.0).fit(X, [1.0, 2.0, 4.0]), tmp_path / "m")
    assert load_model(tmp_path / "m").feature_names_in_.tolist() == list(X.columns)


def test_a_constant_model(tmp_path):
    model = Lasso(1.0).fit(np.eye(3), [2.0, 2.0, 2.0])
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(np.eye(3)), [2.0, 2.0, 2.0])


def test_a_gap_that_is_not_finite(tmp_path, model):
    object.__setattr__(model.result_, "relative_gap", np.inf)
    try:
        save_model(model, tmp_path / "m")
    finally:
        object.__setattr__(model.result_, "relative_gap", model.result_.gap)
    assert load_model(tmp_path / "m").certificate_.relative_gap == np.inf


def test_any_safetensors_reader_sees_the_weights(path, model):
    with safe_open(path, "np") as file:
        header = json.loads(file.metadata()["atomcast"])
        weights = file.get_tensor("model.coef.weights")
    assert (header["schema"], header["estimator"]) == (SCHEMA, "Lasso")
    np.testing.assert_array_equal(weights, model.coef_[model.coef_ != 0])


def test_a_save_that_fails_leaves_the_old_file(path, model, monkeypatch):
    before = path.read_bytes()

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        save_model(model, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# -- other estimators -----------------------------------------------------------------------


class MeansLayout:
    def pack(self, estimator):
        return {"coef": estimator.coef_}

    def unpack(self, estimator, arrays):
        estimator.coef_ = arrays["coef"]

    def atoms(self, arrays):
        return np.arange(len(arrays["coef"])), arrays["coef"]


class Registered(Lasso):
    """An estimator that somebody else brings."""


LAYOUT = MeansLayout()


def test_another_estimator_can_be_registered(tmp_path, data, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "elsewhere", sys.modules[__name__])
    monkeypatch.setattr("atomcast.saving.model_file.LAYOUTS", dict(LAYOUTS))
    monkeypatch.setattr("atomcast.saving.model_file.ELSEWHERE", dict(ELSEWHERE))
    register("Registered", "elsewhere:Registered", "elsewhere:LAYOUT")
    model = Registered(5.0).fit(*data)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert type(loaded) is Registered
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


@dataclass
class Unknown:
    coef_: int = 1


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (Unknown(), "no way to save .* 'Unknown'; known are .*Lasso, LassoCV"),
        (LinearRegression(), "'LinearRegression'"),
        (OtherLasso(), "another class than the known Lasso"),
    ],
)
def test_unknown_estimators_are_refused(tmp_path, estimator, match):
    with pytest.raises(ValueError, match=match):
        save_model(estimator, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_an_unfitted_estimator_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(Lasso(1.0), tmp_path / "m")


# -- what is refused ------------------------------------------------------------------------


class Trap:
    """Unpickling it would leave a mark."""

    def __reduce__(self):
        return (exec, ("import builtins; builtins.trapped = True",))


def test_a_pickle_is_refused_and_not_executed(tmp_path):
    import builtins

    (tmp_path / "m").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="no model file"):
        load_model(tmp_path / "m")
    assert not hasattr(builtins, "trapped")


@pytest.mark.parametrize(
    "content", [b"", b"\0", b"PK\x03\x04" * 9, b"a,b\n1,2\n" * 9, b"\xff" * 64]
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ValueError, match="no model file, or is damaged"):
        load_model(tmp_path / "m")


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_model(tmp_path / "nothing.safetensors")
    with pytest.raises(ValueError, match="is not a file"):
        load_model(tmp_path)


def test_a_truncated_file_is_refused_wherever_it_ends(path):
    content = path.read_bytes()
    for length in range(0, len(content), 37):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="damaged"):
            load_model(path)


def test_every_flipped_bit_is_noticed(path):
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    header = 8 + int.from_bytes(content[:8], "little")
    places = {*range(8), *rng.integers(8, header, 150), *rng.integers(header, len(content), 50)}
    for place in map(int, places):
        bit = 1 << int(rng.integers(8))
        content[place] ^= bit
        path.write_bytes(content)
        with pytest.raises(ValueError):
            load_model(path)
        content[place] ^= bit
    path.write_bytes(content)
    load_model(path)


def test_a_safetensors_file_of_something_else(tmp_path):
    for metadata in (None, {"format": "pt"}):
        save_file({"weight": np.zeros(3)}, tmp_path / "m", metadata=metadata)
        with pytest.raises(ValueError, match="no model of atomcast"):
            load_model(tmp_path / "m")


@pytest.mark.parametrize("header", ["", "[]", "{}", "3", '{"schema": 4}', "[" * 100_000])
def test_headers_that_are_none(tmp_path, header):
    save_file({"weight": np.zeros(3)}, tmp_path / "m", metadata={"atomcast": header})
    with pytest.raises(ValueError, match=r"header cannot be read|schema version 4"):
        load_model(tmp_path / "m")


def test_another_schema_version_is_named(path, monkeypatch):
    monkeypatch.setattr("atomcast.storage.container.READABLE", (SCHEMA + 1,))
    with pytest.raises(ValueError, match=f"schema version {SCHEMA}, .* reads {SCHEMA + 1}"):
        load_model(path)


def kinds_like(arrays):
    """A kind that nobody knows, for each disclosure."""
    return text_array(["secret"] * len(arrays["disclosures.node"]))


CHANGES = {
    "estimator": lambda header, arrays: header.update(estimator="os.system"),
    "estimator type": lambda header, arrays: header.update(estimator=["Lasso"]),
    "parameter": lambda header, arrays: header["parameters"].update(command="rm"),
    "parameters type": lambda header, arrays: header.update(parameters=3),
    "solver": lambda header, arrays: header["parameters"].update(solver={"solver": {"step": "?"}}),
    "too few features": lambda header, arrays: header.update(n_features_in=1),
    "too many features": lambda header, arrays: header.update(n_features_in=2**62),
    "no coefficients": lambda header, arrays: arrays.pop("model.coef.ids"),
    "ids": lambda header, arrays: arrays.update({"model.coef.ids": np.zeros(2)}),
    "negative id": lambda header, arrays: arrays["model.coef.ids"].__setitem__(0, -1),
    "repeated id": lambda header, arrays: arrays["model.coef.ids"].__setitem__(1, 0),
    "nan": lambda header, arrays: arrays["model.coef.weights"].__setitem__(0, np.nan),
    "intercept": lambda header, arrays: arrays.update({"model.intercept": np.zeros(3)}),
    "names": lambda header, arrays: arrays.update({"feature_names": np.zeros(3, np.uint8)}),
    "certificate": lambda header, arrays: header["certificate"].pop("gap"),
    "disclosures": lambda header, arrays: arrays.update({"disclosures.node": np.zeros(1, int)}),
    "no phases": lambda header, arrays: arrays.pop("disclosures.phase"),
    "kinds": lambda header, arrays: arrays.update({"disclosures.kind": kinds_like(arrays)}),
    "parties": lambda header, arrays: header["certificate"].update(parties=["north"]),
    "parties type": lambda header, arrays: header["certificate"].update(parties=[1, 2, 3, 4]),
    "party": lambda header, arrays: (
        header["certificate"].update(parties=list("nsew")),
        arrays["disclosures.node"].__setitem__(0, 4),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_content_that_makes_no_sense_is_refused_despite_its_checksum(path, change):
    rewritten(path, CHANGES[change])
    with pytest.raises(ValueError, match="does not describe a usable model"):
        load_model(path)
