"""What a user writes, for the type checker alone: every line says which type it expects."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from atomcast import (
    Checkpoint,
    KernelSVC,
    L1AdaBoost,
    Lasso,
    LassoCV,
    LocalCluster,
    Preparation,
    RayCluster,
    Shards,
    Solver,
    SparseLogisticRegression,
    TimeLimit,
    save_model,
    save_onnx,
)
from atomcast.data import FileShards, LocalShards, SplitShards
from atomcast.loop.callbacks import State
from atomcast.loop.result import Result
from atomcast.loop.trace import Trace
from atomcast.network.disclosure import Disclosure
from atomcast.network.ledger import Ledger

Floats = NDArray[np.float64]


def watch(state: State) -> bool:
    assert_type(state.relative_gap, float)
    return state.round < 100


def regression(X: Floats, y: Floats) -> None:
    solver = Solver(step="corrective", tol=1e-4, callbacks=[TimeLimit(60), Checkpoint("c"), watch])
    model = assert_type(Lasso(beta=16.0, cluster=LocalCluster(nodes=100), solver=solver), Lasso)
    assert_type(model.fit(X, y), Lasso)
    assert_type(model.predict(X), Floats)
    assert_type(LassoCV(cv=5).fit(X, y), LassoCV)
    result = assert_type(model.result_, Result)
    assert_type(result.objective, float)
    assert_type(result.weights, Floats)
    assert_type(result.trace, Trace)
    assert_type(result.trace["gap"], NDArray[Any])
    assert_type(result.report("run.html", model), Path)
    ledger = assert_type(result.ledger, Ledger)
    assert_type(ledger.values, int)
    for one in ledger.disclosures:
        assert_type(one, Disclosure)
        assert_type(one.name, str)
    save_model(model, "model.safetensors")
    save_onnx(model, Path("model.onnx"))


def classification(X: Floats, y: NDArray[np.str_]) -> None:
    assert_type(SparseLogisticRegression(beta=5.0).fit(X, y), SparseLogisticRegression)
    assert_type(SparseLogisticRegression().predict_proba(X), Floats)
    assert_type(L1AdaBoost(0.2, base="stumps").fit(X, y).decision_function(X), Floats)
    assert_type(KernelSVC(C=1.0, cluster=RayCluster(2)).fit(X, y).predict(X), NDArray[Any])


def shards(X: Floats) -> None:
    assert_type(Shards.split(X, nodes=3, by="contiguous"), SplitShards)
    assert_type(Shards.mine(X, names=["a"]), LocalShards)
    tidy = Preparation(impute="median", scale="standard", drop=["name"])
    files = Shards.files({"north": "1.csv"}, prepare={"north": tidy}, align="inner")
    assert_type(files, FileShards)
    assert_type(files.shard(0).ids, NDArray[np.int64])
