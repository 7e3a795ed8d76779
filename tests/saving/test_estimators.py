"""Every estimator comes back from a file as it was, or is refused before anything is written."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification, make_regression
from sklearn.tree import DecisionTreeClassifier

import atomcast
from atomcast import (
    DictionaryLearning,
    GroupLasso,
    GroupLogisticRegression,
    KernelSVC,
    KernelSVR,
    L1AdaBoost,
    L1BoostRegressor,
    Lasso,
    LassoCV,
    MatchingPursuit,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    Shards,
    Solver,
    SparseCoder,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SparseModel,
    StructuredSVM,
    load_model,
    save_model,
)
from atomcast.domains import L1Ball, Simplex
from atomcast.objectives import LogisticLoss, SquaredError, SquaredLoss
from atomcast.saving.classes import class_arrays, classes_in
from atomcast.saving.model_file import LAYOUTS
from atomcast.storage.container import read_model_file, write_model_file
from patience import PATIENCE

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8, 9]]


def numbers(seed=0):
    return make_regression(60, 10, n_informative=4, noise=5.0, random_state=seed)


def two_targets():
    X, y = numbers()
    return X, np.column_stack([y, y**2])


def classes(count=2, labels=None, n=90):
    X, y = make_classification(
        n, 10, n_informative=5, n_classes=count, class_sep=0.8, random_state=1
    )
    return X, y if labels is None else np.array(labels)[y]


def binary(count=2):
    X, y = classes(count)
    return (X > 0).astype(float), y


def with_gaps():
    X, y = classes()
    X[::7, 3] = np.nan
    return X, y


#: An estimator, the data that it is fitted to, and the form in which it gets them.
CASES = {
    "Lasso": (Lasso(30.0, cluster=3), numbers(), np.asarray),
    "LassoCV": (LassoCV([5.0, 50.0], cv=3), numbers(), np.asarray),
    "LassoCV of two targets": (LassoCV([5.0, 50.0], cv=3), two_targets(), np.asarray),
    "logistic": (SparseLogisticRegression(3.0, cluster=2), classes(), np.asarray),
    "logistic, sparse, no intercept": (
        SparseLogisticRegression(3.0, fit_intercept=False),
        binary(),
        sparse.csc_array,
    ),
    "multinomial": (SparseLogisticRegression(3.0), classes(3, ["a", "b", "c"]), pd.DataFrame),
    "logistic, nothing selected": (
        SparseLogisticRegression(1e-9, solver=Solver(max_rounds=0, tol=10.0)),
        classes(),
        np.asarray,
    ),
    "logistic CV": (
        SparseLogisticRegressionCV([0.5, 2.0], cv=3, class_weight={0: 1.0, 1: 2.0}),
        classes(),
        np.asarray,
    ),
    "multinomial CV": (SparseLogisticRegressionCV([0.5, 2.0], cv=2), classes(3), np.asarray),
    "coder": (SparseCoder(np.eye(10)[:7] + 0.1, beta=3.0, cluster=2), numbers(), np.asarray),
    "coder of its own signals": (SparseCoder(n_nonzero=2), numbers(), sparse.csr_array),
    "learned dictionary": (DictionaryLearning(6, beta=2.0, max_iter=3), numbers(), np.asarray),
    "pursuit": (MatchingPursuit(3, cluster=2), numbers(), np.asarray),
    "plain pursuit": (MatchingPursuit(3, orthogonal=False), numbers(), sparse.csc_array),
    "pursuit of two targets": (MatchingPursuit(3), two_targets(), pd.DataFrame),
    "groups": (GroupLasso(30.0, groups=GROUPS), numbers(), np.asarray),
    "groups by default": (GroupLasso(30.0), numbers(), np.asarray),
    "groups with weights": (
        GroupLasso(30.0, groups=GROUPS, weights=np.array([1.0, 2.0, 0.5])),
        numbers(),
        sparse.csr_array,
    ),
    "groups of classes": (
        GroupLogisticRegression(3.0, groups=GROUPS),
        classes(2, [True, False]),
        np.asarray,
    ),
    "stumps": (L1AdaBoost(0.2, cluster=3), classes(2, ["no", "yes"]), np.asarray),
    "sum of stumps": (L1BoostRegressor(50.0), numbers(), np.asarray),
    "stumps with gaps": (L1AdaBoost(0.2), with_gaps(), np.asarray),
    "matrix": (L1AdaBoost(0.2, base="matrix"), binary(), np.asarray),
    "rbf": (KernelSVC(cluster=3), classes(), np.asarray),
    "rbf, single precision": (KernelSVC(10.0), classes(), lambda X: X.astype(np.float32)),
    "rbf, sparse": (KernelSVC(), binary(), sparse.csr_array),
    "rbf, three classes": (KernelSVC(), classes(3, ["x", "y", "z"]), pd.DataFrame),
    "direct": (KernelSVC(multi_class="direct", cluster=2), classes(3), np.asarray),
    "four classes": (KernelSVC(cluster=2), classes(4), np.asarray),
    "one-vs-rest": (KernelSVC(multi_class="one-vs-rest", cluster=2), classes(3), np.asarray),
    "laplacian": (KernelSVC(kernel="laplacian", gamma="scale"), classes(), np.asarray),
    "linear": (KernelSVC(kernel="linear", class_weight="balanced"), classes(), np.asarray),
    "poly": (KernelSVC(kernel="poly", degree=2, coef0=1.0), classes(3), sparse.csr_array),
    "probability": (KernelSVC(probability=True), classes(), np.asarray),
    "regression": (KernelSVR(10.0, epsilon=20.0, cluster=2), numbers(), np.asarray),
    "regression, sparse": (KernelSVR(kernel="linear"), numbers(), sparse.csr_array),
    "regression without points": (KernelSVR(epsilon=1e4), numbers(), np.asarray),
    "probabilities": (KernelSVC(probability=True), classes(3), np.asarray),
    "many kernels": (
        MultipleKernelRegressor(views=GROUPS, cluster=2, solver=Solver(tol=1e-3)),
        numbers(),
        np.asarray,
    ),
    "many kernels, three classes": (
        MultipleKernelClassifier(
            beta=2.0, kernels=["poly", {"kernel": "laplacian", "factor": 2.0}, "rbf"]
        ),
        classes(3, ["x", "y", "z"]),
        sparse.csr_array,
    ),
    "loss and domain": (SparseModel(SquaredLoss(), L1Ball(30.0), 3), numbers(), np.asarray),
    "class of objectives": (SparseModel(SquaredError, Simplex()), numbers(), pd.DataFrame),
    "loss of classes": (
        SparseModel(LogisticLoss(fit_intercept=False), L1Ball(3.0)),
        classes(2, ["no", "yes"]),
        sparse.csc_array,
    ),
    "structured": (StructuredSVM(cluster=2), classes(3, ["x", "y", "z"]), np.asarray),
    "structured, two classes": (StructuredSVM(C=0.1), binary(), sparse.csr_array),
    "classic": (
        KernelSVC(solver=Solver("classic", max_rounds=30, tol=0.9), gamma=0.1),
        classes(),
        np.asarray,
    ),
}
METHODS = ("transform", "predict", "decision_function", "predict_proba", "predict_log_proba")


def saved_and_loaded(model, folder):
    save_model(model, folder / "m.safetensors")
    return load_model(folder / "m.safetensors")


def check_same(loaded, model, X):
    """Every answer and every fitted attribute is the same, bit for bit."""
    assert type(loaded) is type(model)
    for method in METHODS:
        assert hasattr(loaded, method) == hasattr(model, method)
        if hasattr(model, method):
            here, there = getattr(model, method)(X), getattr(loaded, method)(X)
            if sparse.issparse(here):
                here, there = here.toarray(), there.toarray()
            np.testing.assert_array_equal(there, here)
            assert there.dtype.kind == here.dtype.kind
    not_saved = {"result_", "ledgers_", "groups_", "views_", "functions_"}
    for name, value in vars(model).items():
        if not name.endswith("_") or name.startswith("_") or name in not_saved:
            continue
        again = getattr(loaded, name)
        assert type(again) is type(value), name
        if sparse.issparse(value):
            assert (again != value).nnz == 0
        else:
            np.testing.assert_array_equal(again, value)


@pytest.mark.parametrize("case", CASES)
def test_round_trip(tmp_path, case):
    estimator, (X, y), form = CASES[case]
    model = estimator.fit(form(X), y)
    loaded = saved_and_loaded(model, tmp_path)
    check_same(loaded, model, form(X))
    fresh = np.random.default_rng(0).standard_normal((40, 10))
    fresh = form((fresh > 0).astype(float) if np.isin(X, (0, 1)).all() else fresh)
    check_same(loaded, model, fresh)
    if hasattr(model, "result_"):  # a coder is not fitted
        assert loaded.certificate_.objective == model.result_.objective
        assert loaded.certificate_.atoms_sent == model.result_.ledger.atoms_sent
    again = saved_and_loaded(loaded, tmp_path)  # a copy of a copy
    check_same(again, model, form(X))
    refitted = again.set_params(**model.get_params(deep=False)).fit(form(X), y)
    check_same(refitted, model, form(X))


def test_every_estimator_of_the_package_can_be_saved():
    public = [getattr(atomcast, name) for name in atomcast.__all__]
    estimators = {thing.__name__ for thing in public if hasattr(thing, "fit")}
    assert estimators == set(LAYOUTS)
    assert {type(estimator).__name__ for estimator, _, _ in CASES.values()} == estimators


class Doubled(SquaredLoss):
    """A loss of a user's own, which must not come back as ours."""


Doubled.__name__ = "SquaredLoss"


@pytest.mark.parametrize(
    ("objective", "domain", "message"),
    [
        (Doubled(), Simplex(), "objective="),
        (lambda y: SquaredError(y), Simplex(), "objective="),
        (SquaredLoss(), type("Own", (Simplex,), {})(), "domain="),
    ],
)
def test_parts_of_your_own_are_refused(tmp_path, objective, domain, message):
    model = SparseModel(objective, domain).fit(*numbers())
    with pytest.raises(ValueError, match=f"{message}.*SquaredLoss, LogisticLoss, L1Ball, Simplex"):
        save_model(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("domain", {"part": "L1Ball", "with": {"beta": -1.0}}),
        ("domain", {"part": "GroupBall", "with": {}}),
        ("domain", {"part": "SquaredLoss", "with": {}}),
        ("objective", {"part": "L1Ball", "with": {"beta": 1.0}}),
        ("objective", {"class": "os.system"}),
        ("objective", {"class": ["SquaredError"]}),
        ("objective", {"not saved": "code"}),
        ("objective", "SquaredLoss"),
    ],
)
def test_a_file_names_parts_of_ours_that_fit(tmp_path, parameter, value):
    path = tmp_path / "m"
    save_model(SparseModel(SquaredLoss(), L1Ball(30.0)).fit(*numbers()), path)
    file = read_model_file(path)
    file.header["parameters"][parameter] = value
    write_model_file(path, file.header, file.arrays)
    with pytest.raises(ValueError, match="does not describe a usable model"):
        load_model(path)


def test_shards_and_groups_come_back(tmp_path):
    X, y = classes()
    shards = Shards.split(X, 4)
    model = GroupLogisticRegression(3.0, groups="sources").fit(shards, y)
    loaded = saved_and_loaded(model, tmp_path)
    for mine, other in zip(model.active_groups_, loaded.active_groups_, strict=True):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(loaded.groups_.weights, model.groups_.weights)
    np.testing.assert_array_equal(loaded.groups_.leaders, model.groups_.leaders)
    np.testing.assert_array_equal(loaded.predict(shards), model.predict(shards))


def test_the_kernel_is_that_of_the_fit_not_that_of_the_parameters(tmp_path):
    X, y = classes()
    model = KernelSVC().fit(X, y)
    expected = model.decision_function(X)
    model.set_params(kernel="linear")
    loaded = saved_and_loaded(model, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(X), expected)
    assert (loaded.gamma_, loaded.kernel) == (model.gamma_, "linear")


def test_large_kernel_blocks_use_the_same_code(tmp_path):
    """Above a million kernel values, points of zeros and ones are compared by bits."""
    X = (np.random.default_rng(0).random((3000, 40)) < 0.2).astype(float)
    y = X[:, 0] + X[:, 1] > X[:, 2]
    model = KernelSVC(C=10.0, gamma=0.1).fit(X[:800], y[:800])
    loaded = saved_and_loaded(model, tmp_path)
    assert len(model.support_) * 3000 > 2**20 or len(X) > 2000
    check_same(loaded, model, X)


def test_another_process_predicts_the_same(tmp_path):
    X, y = classes(3)
    model = KernelSVC(cluster=2).fit(X, y)
    save_model(model, tmp_path / "m.safetensors")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np; from atomcast import load_model; "
        "m = load_model(sys.argv[1] + '/m.safetensors'); "
        "np.save(sys.argv[1] + '/out.npy', m.decision_function(np.load(sys.argv[1] + '/X.npy')))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=PATIENCE)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.decision_function(X))


LABELS = st.one_of(
    st.sets(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=6),
    st.sets(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=6),
    st.sets(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=6),
    st.just({False, True}),
)


@settings(deadline=None, max_examples=100)
@given(labels=LABELS, as_objects=st.booleans())
def test_labels_of_any_kind_come_back(labels, as_objects):
    only_text = all(isinstance(label, str) for label in labels)
    given_labels = np.array(sorted(labels), dtype=object if as_objects and only_text else None)
    seen = np.unique(given_labels)
    if len(seen) < 2:  # NumPy cuts zeros off the ends of texts, and -0.0 is 0.0
        return
    again = classes_in(class_arrays(seen))
    np.testing.assert_array_equal(again, seen)
    assert again.dtype.kind == seen.dtype.kind


# -- what is refused ------------------------------------------------------------------------


def test_a_kernel_function_is_refused_before_anything_is_written(tmp_path):
    X, y = classes()
    model = KernelSVC(kernel=lambda X, Z: X @ Z.T).fit(X, y)
    with pytest.raises(ValueError, match=r"a function of yours cannot be saved.*use kernel="):
        save_model(model, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_fitted_base_classifiers_are_refused(tmp_path):
    X, y = classes()
    trees = [DecisionTreeClassifier(max_depth=1, random_state=k).fit(X, y) for k in range(3)]
    model = L1AdaBoost(base=trees).fit(X, y)
    with pytest.raises(ValueError, match=r"base=\[...\] cannot be saved"):
        save_model(model, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_labels_that_are_objects_are_refused():
    years = np.array(["2020", "2021"], dtype="datetime64[Y]")
    for labels in (np.array([b"a", b"b"]), years, np.array([None, 1], dtype=object)):
        with pytest.raises(ValueError, match="fit with labels that are numbers or texts"):
            class_arrays(labels)


def replaced(name, array):
    return lambda header, arrays: arrays.update({name: np.asarray(array)})


def changed(name, index, value):
    return lambda header, arrays: arrays[name].__setitem__(index, value)


def without(name):
    return lambda header, arrays: arrays.pop(name)


CHANGES = {
    "logistic": {
        "one class": replaced("model.classes", [1]),
        "classes in disorder": replaced("model.classes", [1, 0]),
        "three classes": replaced("model.classes", [0, 1, 2]),
        "no classes": without("model.classes"),
        "no text": lambda header, arrays: arrays.update(
            {"model.classes.object": arrays.pop("model.classes")}
        ),
        "intercepts": replaced("model.intercept", np.zeros(2)),
        "shape": replaced("model.coef.weights", np.zeros((3, 3))),
        "nan": changed("model.coef.weights", 0, np.nan),
        "id": changed("model.coef.ids", -1, 10),
    },
    "groups": {
        "no labels": without("model.groups.labels"),
        "a gap": changed("model.groups.labels", 9, 7),
        "order": replaced("model.groups.labels", [1, 1, 1, 0, 0, 2, 2, 2, 2, 2]),
        "length": replaced("model.groups.labels", np.zeros(9, int)),
        "type": replaced("model.groups.labels", np.zeros(10)),
        "weights": replaced("model.groups.weights", np.ones(2)),
        "negative weight": changed("model.groups.weights", 0, -1.0),
    },
    "stumps": {
        "no stumps": without("model.estimator.stumps"),
        "shape": replaced("model.estimator.weights", np.zeros(1)),
        "feature": changed("model.estimator.stumps", (0, 0), 10.0),
        "no feature": changed("model.estimator.stumps", (0, 0), 0.5),
        "polarity": changed("model.estimator.stumps", (0, 2), 0.0),
        "base": lambda header, arrays: header["parameters"].update(base="trees"),
        "other base": lambda header, arrays: header["parameters"].update(base="matrix"),
        "nan": changed("model.example_weights", 0, np.nan),
    },
    "matrix": {
        "id": changed("model.estimator.ids", 0, -1),
        "ids": replaced("model.estimator.ids", np.zeros(1)),
        "other base": lambda header, arrays: header["parameters"].update(base="stumps"),
    },
    "rbf": {
        "kernel": replaced("model.kernel.name", np.frombuffer(b'["os.system"]', np.uint8)),
        "kernel list": replaced("model.kernel.name", np.frombuffer(b"[]", np.uint8)),
        "gamma": replaced("model.kernel.gamma", -1.0),
        "gamma nan": replaced("model.kernel.gamma", np.nan),
        "centre": replaced("model.kernel.centre", np.zeros(3)),
        "vectors": replaced("model.vectors", np.zeros((3, 3))),
        "integers": lambda header, arrays: arrays.update(
            {"model.vectors": arrays["model.vectors"].astype(int)}
        ),
        "infinite": changed("model.vectors", (0, 0), np.inf),
        "no vectors": without("model.vectors"),
        "support": changed("model.support", 1, 0),
        "coefficients": replaced("model.dual_coef", np.zeros((1, 3))),
        "a dimension": replaced("model.dual_coef", np.zeros(3)),
        "n_support": changed("model.n_support", 0, 0),
        "intercept": replaced("model.intercept", np.zeros(3)),
        "no sigmoids": lambda header, arrays: header["parameters"].update(probability=True),
        "features": lambda header, arrays: header.update(n_features_in=9),
    },
    "rbf, sparse": {
        "column": changed("model.vectors.indices", 0, 10),
        "negative column": changed("model.vectors.indices", 0, -1),
        "rows": changed("model.vectors.indptr", 1, 10_000),
        "backwards": changed("model.vectors.indptr", 2, 0),
        "no data": without("model.vectors.data"),
    },
    "poly": {
        "degree": replaced("model.kernel.degree", 0),
        "coef0": replaced("model.kernel.coef0", -1.0),
    },
    "probability": {"sigmoids": replaced("model.calibration", np.zeros((2, 2)))},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, paths = tmp_path_factory.mktemp("models"), {}
    for k, case in enumerate(CHANGES):
        estimator, (X, y), form = CASES[case]
        paths[case] = folder / f"{k}.safetensors"
        save_model(estimator.fit(form(X), y), paths[case])
    return paths


@pytest.mark.parametrize(
    ("case", "change"), [(case, change) for case, those in CHANGES.items() for change in those]
)
def test_content_that_makes_no_sense_is_refused_despite_its_checksum(tmp_path, files, case, change):
    file, path = read_model_file(files[case]), tmp_path / "m.safetensors"
    CHANGES[case][change](file.header, file.arrays)
    file.header.pop("schema")
    write_model_file(path, file.header, file.arrays)
    with pytest.raises(ValueError, match="does not describe a usable model"):
        load_model(path)


@pytest.mark.parametrize("case", ["rbf, sparse", "stumps", "groups of classes"])
def test_damage_is_noticed(tmp_path, case):
    estimator, (X, y), form = CASES[case]
    path = tmp_path / "m.safetensors"
    save_model(estimator.fit(form(X), y), path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 60).tolist():
        path.write_bytes(content[:place])
        with pytest.raises(ValueError, match="damaged"):
            load_model(path)
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with pytest.raises(ValueError):
            load_model(path)


def test_the_files_hold_no_pickles(files):
    for path in files.values():
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        tensors = json.loads(content[8 : 8 + length])
        known = {"F64", "F32", "I64", "I32", "U8", "BOOL"}
        assert {t["dtype"] for name, t in tensors.items() if name != "__metadata__"} <= known


def test_many_kernels_come_back_with_their_views_and_examples(tmp_path):
    X, y = numbers()
    for k, view in enumerate(GROUPS):
        np.save(tmp_path / f"part{k}.npy", X[:, view])
    shards = Shards.files([tmp_path / f"part{k}.npy" for k in range(len(GROUPS))])
    model = MultipleKernelRegressor(kernels=["rbf", "linear"]).fit(shards, y)
    loaded = saved_and_loaded(model, tmp_path)
    assert all(function.points is not None for function in loaded.functions_)
    in_order = X[:, np.concatenate(GROUPS)]
    np.testing.assert_allclose(loaded.predict(in_order), model.predict(shards), rtol=1e-12)
    for mine, other in zip(loaded.views_, model.views_, strict=True):
        np.testing.assert_array_equal(mine, other)
    K = X @ X.T
    model = MultipleKernelRegressor(kernels="precomputed").fit([K, K**2], y)
    np.testing.assert_array_equal(
        saved_and_loaded(model, tmp_path).predict([K[:3], K[:3] ** 2]),
        model.predict([K[:3], K[:3] ** 2]),
    )
    model = MultipleKernelRegressor(kernels=[lambda X, Z: X @ Z.T]).fit(X, y)
    with pytest.raises(ValueError, match="a function of yours cannot be saved"):
        save_model(model, tmp_path / "m.safetensors")
