"""Signals and dictionaries from files, for the commands that code signals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.commands.estimators import Recipe
from atomcast.commands.named_files import Reading
from atomcast.data import Shards, read_part

Floats = NDArray[np.float64]


def read_signals(
    recipe: Recipe, paths: Sequence[Path], nodes: int | None, target: str, reading: Reading
) -> tuple[Shards, Floats]:
    """The dictionary, or for lack of one an empty place for it on each node; and the signals."""
    if recipe.signals == "parts":
        X = np.concatenate([_matrix(path, reading) for path in paths])
        return Shards.split(np.zeros((nodes or 1, 1)), nodes or 1), X
    if len(paths) == 1:
        return Shards.split(_matrix(paths[0], reading), nodes or 1), _matrix(target, reading)
    return Shards.files(paths, **reading._asdict()), _matrix(target, reading)


def _matrix(path: str | Path, reading: Reading) -> Floats:
    """The rows of a file, dense."""
    part = read_part(Path(path), row_ids=reading.row_ids, n_features=reading.n_features)
    return _dense(part.matrix)


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


def fit_signals(recipe: Recipe, estimator: Any, dictionary: Shards, X: Floats, save: bool) -> None:
    """Learn a dictionary, or code the signals over the one that the nodes hold.

    A coder that is to be saved needs the whole dictionary.
    """
    if recipe.signals == "parts":
        estimator.fit(X)
        return
    estimator.set_params(dictionary=dictionary).fit(X)
    estimator.result_ = estimator.encode(X).result
    if save:
        estimator.components_ = np.zeros((dictionary.count(0), X.shape[1]))
        for i in range(dictionary.nodes):
            shard = dictionary.shard(i, 0)
            estimator.components_[shard.ids] = _dense(shard.matrix)
