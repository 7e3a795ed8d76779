"""Bad input gets one clear sentence: the parameter, the value, and what to do."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from atomcast import (
    DictionaryLearning,
    KernelSVC,
    KernelSVR,
    L1AdaBoost,
    L1BoostRegressor,
    Lasso,
    LassoCV,
    LocalCluster,
    MatchingPursuit,
    MultipleKernelRegressor,
    Shards,
    Solver,
    SparseCoder,
    SparseLogisticRegressionCV,
    StructuredSVM,
    lasso_path,
)
from atomcast.domains.balls import L1Ball
from atomcast.loop.solver import as_solver
from atomcast.simulation.local import as_cluster
from problems import regression, solve

MODELS = [Lasso(), LassoCV(betas=[1.0], cv=2), Lasso(cluster=3)]


@pytest.fixture
def data():
    return regression(seed=1, d=12, n=8)


@pytest.mark.parametrize("beta", [0, -1, -0.5, np.nan, np.inf, "16", True])
def test_beta(data, beta):
    with pytest.raises(ValueError, match=r"beta must be a finite number > 0") as error:
        Lasso(beta=beta).fit(*data)
    assert repr(beta) in str(error.value)


@pytest.mark.parametrize("tol", [0, -1e-4, np.nan, np.inf, "1e-4", None, True])
def test_tol(tol):
    with pytest.raises(ValueError, match=r"tol must be a finite number > 0") as error:
        Solver(tol=tol)
    assert repr(tol) in str(error.value)


@pytest.mark.parametrize("step", ["newton", "", "Classic", None, 3])
def test_step(step, data):
    with pytest.raises(ValueError, match=r"step must be one of 'classic'.*'corrective'") as error:
        Solver(step=step)
    assert repr(step) in str(error.value)
    if isinstance(step, str):
        with pytest.raises(ValueError, match=r"step must be one of"):
            Lasso(solver=step).fit(*data)


@pytest.mark.parametrize("nodes", [0, -1, 1.5, "4", True])
def test_nodes(nodes):
    with pytest.raises(ValueError, match=r"nodes must be a whole number >= 1") as error:
        LocalCluster(nodes)
    assert repr(nodes) in str(error.value)


def test_nodes_of_a_split(data):
    for nodes in (0, -3):
        with pytest.raises(ValueError, match="nodes"):
            Shards.split(data[0], nodes)
        with pytest.raises(ValueError, match="nodes must be a whole number >= 1"):
            Lasso(cluster=nodes).fit(*data)


@pytest.mark.parametrize("topology", ["ring", None, 3])
def test_topology(topology):
    with pytest.raises(ValueError, match="topology must be one of 'star', 'tree', 'complete'"):
        LocalCluster(3, topology=topology)


@pytest.mark.parametrize("rounds", [-1, 1.5, "many", None])
def test_max_rounds(rounds):
    with pytest.raises(ValueError, match="max_rounds must be a whole number >= 0"):
        Solver(max_rounds=rounds)


@pytest.mark.parametrize("count", [0, -1, 1.5, "some", None])
def test_atoms_per_round(count):
    with pytest.raises(ValueError, match=r'atoms_per_round must be a whole number.*"auto"'):
        Solver(atoms_per_round=count)


def test_selection():
    with pytest.raises(ValueError, match="selection must be one of 'exact'"):
        Solver(selection="some")


@pytest.mark.parametrize("cluster", ["4", 2.0, [3], object(), True])
def test_cluster(cluster, data):
    with pytest.raises(ValueError, match=r"cluster must be None, a number of nodes or a cluster"):
        as_cluster(cluster)
    with pytest.raises(ValueError, match="cluster must be None"):
        Lasso(cluster=cluster).fit(*data)


@pytest.mark.parametrize("solver", [3, ["away"], Solver])
def test_solver(solver, data):
    with pytest.raises(ValueError, match="solver must be None, the name of a step or a Solver"):
        as_solver(solver)
    with pytest.raises(ValueError, match="solver must be None"):
        Lasso(solver=solver).fit(*data)


# -- data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(model, value, data):
    X, y = data
    spoiled = X.copy()
    spoiled[3, 5] = value
    for matrix in (spoiled, sparse.csc_matrix(spoiled), spoiled.astype(np.float32)):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.fit(matrix, y)
    bad = y.copy()
    bad[2] = value
    with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
        model.fit(X, bad)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.fit(Shards.split(X, 3 if model.cluster else 1), bad)


@pytest.mark.parametrize("isolated", [False, True])
def test_a_spoiled_shard_is_named(data, isolated):
    X, y = data
    X[4, 6] = np.nan
    shards = Shards.split(X, 4, by="contiguous", names=[f"x{j}" for j in range(8)])
    with pytest.raises(
        ValueError, match=r"shard 3: column 6 \('x6'\) contains NaN, first in row 4"
    ):
        Lasso(cluster=LocalCluster(4, isolated=isolated)).fit(shards, y)


@pytest.mark.parametrize("model", MODELS)
def test_shapes(model, data):
    X, y = data
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.fit(X[:, 0], y)
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        model.fit(X[:, :0], y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="requires y"):
        model.fit(X, None)


@pytest.mark.parametrize("nodes", [1, 3])
def test_shards_that_do_not_fit_the_target(data, nodes):
    X, y = data
    with pytest.raises(ValueError, match="has 12 rows, but the target has 11"):
        Lasso().fit(Shards.split(X, nodes), y[:-1])
    with pytest.raises(ValueError, match="y is missing"):
        Lasso().fit(Shards.split(X, nodes), None)


@pytest.mark.parametrize("model", [LassoCV(cv=2), SparseLogisticRegressionCV(cv=2)])
@pytest.mark.parametrize("rows", [11, 13])
def test_shards_that_do_not_fit_the_target_of_folds(model, rows, data):
    y = np.arange(rows) % 2
    with pytest.raises(ValueError, match=f"y has {rows} values, but there are 12 rows"):
        model.fit(Shards.split(data[0], 3), y)


@pytest.mark.parametrize(
    "model", [Lasso(), LassoCV(cv=2), L1BoostRegressor(1.0), MultipleKernelRegressor(), KernelSVC()]
)
def test_shards_without_columns(model, data):
    with pytest.raises(ValueError, match="X has no features"):
        model.fit(Shards.split(data[0][:, :0], 3), data[1] > 0)


@pytest.mark.parametrize("model", [KernelSVC(), KernelSVR(), StructuredSVM()])
def test_shards_without_rows(model, data):
    with pytest.raises(ValueError, match="X has no examples"):
        model.fit(Shards.split(data[0][:0], 3), np.zeros(0, dtype=int))


def test_a_solver_that_is_given_no_atoms(data):
    X, y = data
    with pytest.raises(ValueError, match="X has no features"):
        solve(X[:, :0], y, L1Ball(1.0), nodes=2)


@pytest.mark.parametrize("model", [L1AdaBoost(), L1BoostRegressor(1.0)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
def test_stumps_take_what_is_missing_but_not_infinity(model, form, data):
    X, y = data
    X[2, 1] = np.nan
    model.fit(Shards.split(form(X), 3, by="contiguous"), y > 0)
    X[3, 5] = -np.inf
    with pytest.raises(ValueError, match="column 5 contains infinity, first in row 3"):
        model.fit(Shards.split(form(X), 3, by="contiguous"), y > 0)


def test_new_data_with_values_that_are_not_finite(data):
    X, y = data
    model = Lasso(1.0).fit(X, y)
    X[4, 6] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(X)
    with pytest.raises(ValueError, match="shard 1: column 6 contains NaN, first in row 4"):
        model.predict(Shards.split(X, 2, by="contiguous"))


def test_files_whose_rows_do_not_match(data, tmp_path):
    X, y = data
    np.save(tmp_path / "a.npy", X[:, :4])
    np.save(tmp_path / "b.npy", X[:-1, 4:])
    with pytest.raises(ValueError, match=r"b\.npy"):
        Lasso().fit(Shards.files([tmp_path / "a.npy", tmp_path / "b.npy"]), y)


def test_a_target_that_is_not_numeric(data):
    X, _ = data
    words = np.array(["yes", "no"] * 6)
    for model in MODELS:
        with pytest.raises(ValueError, match=r"could not convert|numeric|Unknown"):
            model.fit(X, words)
    with pytest.raises(ValueError, match=r"could not convert|numeric"):
        Lasso().fit(Shards.split(X, 2), words)


@pytest.mark.parametrize("model", [Lasso(), LassoCV(cv=2), MatchingPursuit(2), KernelSVR()])
@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda y: np.where(y > 0, "yes", "no"), "y must be numeric"),
        (lambda y: np.append(y[:-1].astype(object), None), "y contains NaN"),
        (lambda y: 1e200 * y, "y is out of scale"),
        (lambda y: sparse.csr_array(y[:, None]), r"for y, but dense|y is a sparse matrix"),
        (lambda y: y + 1j, "Complex data"),
    ],
    ids=["text", "none", "scale", "sparse", "complex"],
)
def test_a_target_that_is_none_is_named(model, shards, spoil, message, data):
    X, y = data
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(Shards.split(X, 3) if shards else X, spoil(y))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(11), r"got shape \(11,\)"),
        (np.append(np.ones(11), -0.5), r"got -0.5 at position 11"),
        (np.append(np.nan, np.ones(11)), r"got nan at position 0"),
        (np.full(12, "a"), "must be numbers"),
        (np.ones(12) + 1j, "must be numbers"),
    ],
)
def test_sample_weights_that_are_none(model, weights, message, data):
    with pytest.raises(ValueError, match=f"sample_weight .*{message}"):
        model.fit(*data, sample_weight=weights)


@pytest.mark.parametrize("model", [SparseCoder(np.eye(8)), DictionaryLearning(2, max_iter=2)])
@pytest.mark.parametrize("form", ["csr_array", "csc_array"])
@pytest.mark.parametrize("index", [-1, 10**6])
def test_signals_that_refer_to_what_is_not_there(model, form, index, data):
    X = getattr(sparse, form)(data[0])
    X.indices[3] = index
    with pytest.raises(ValueError, match="contradicts itself: indices holds"):
        model.fit(X)
    with pytest.raises(ValueError, match="contradicts itself: indices holds"):
        model.fit(data[0]).transform(X)
    square = getattr(sparse, form)(np.ones((8, 8)))
    square.indices[3] = index
    with pytest.raises(ValueError, match=r"dictionary .*contradicts itself"):
        SparseCoder(square).fit(data[0])


def test_signals_are_not_spread_over_nodes(data):
    for model in (SparseCoder(np.eye(8)), DictionaryLearning(2)):
        with pytest.raises(TypeError, match="X is Shards, but every node has to know all signals"):
            model.fit(Shards.split(data[0], 2))


def test_complex_data(data):
    X, y = data
    with pytest.raises(ValueError, match="Complex data not supported"):
        Lasso().fit(X + 1j, y)


def test_text_data(data):
    with pytest.raises(ValueError, match=r"could not convert|convert"):
        Lasso().fit(np.full((12, 3), "a"), data[1])


def test_duplicate_names(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdefga"))
    with pytest.raises(ValueError, match="unique column names, got:\n- 'a' 2 times"):
        Lasso().fit(frame, y)
    with pytest.raises(ValueError, match="the column name 'a' occurs more than once"):
        Shards.split(frame, 2)
    with pytest.raises(ValueError, match="the column name 'a' occurs more than once"):
        Lasso().fit(Shards.split(X, 2, names=list("abcdefga")), y)


def test_a_wrong_number_of_names(data):
    with pytest.raises(ValueError, match="names has 3 entries, but X has 8 columns"):
        Shards.split(data[0], 2, names=["a", "b", "c"])


@pytest.mark.parametrize("sizes", [[8], [4, 5], [9, -1], [2, 2, 4]])
def test_sizes_that_do_not_fit(data, sizes):
    with pytest.raises(ValueError, match="by"):
        Shards.split(data[0], 2, by=sizes)


def test_a_target_for_the_solver_must_fit_too(data):
    X, y = data
    with pytest.raises(ValueError, match="12 rows, but the target has 13"):
        solve(X, np.append(y, 1.0), L1Ball(1.0), nodes=2)


def test_lasso_path_checks_as_well(data):
    X, y = data
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        lasso_path(X, y, betas=[1.0])
    with pytest.raises(ValueError, match="cluster must be None"):
        lasso_path(np.nan_to_num(X), y, betas=[1.0], cluster="4")


def test_an_unfitted_model(data):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        Lasso().predict(data[0])
    model = Lasso()
    with pytest.raises(ValueError, match="beta"):
        model.set_params(beta=-1).fit(*data)
    with pytest.raises(NotFittedError):
        model.predict(data[0])
