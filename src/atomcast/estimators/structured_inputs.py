"""What `StructuredSVM` accepts as data: examples of one or more rows, and their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from atomcast.data._split import SplitShards
from atomcast.data.shards import Shards
from atomcast.estimators.inputs import (
    ROW_FORMATS,
    class_codes,
    examples_and_labels,
    placed_rows,
    validated,
)
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.simulation.local import as_cluster
from atomcast.structures import Chain, MultiClass, OutputModel
from atomcast.structures.structured_examples import Outputs, OwnOutputs

Lengths = NDArray[np.int64]

#: Models of outputs that are labels, by name.
LABELS: dict[Any, type[MultiClass]] = {"multiclass": MultiClass, "chain": Chain}


@dataclass(frozen=True)
class Given:
    """Data as the solver takes it."""

    model: Any
    shards: Shards
    outputs: Outputs
    cluster: Any


def checked_model(model: Any) -> None:
    """Raise ValueError unless this is the name of a model of outputs, or one."""
    known = isinstance(model, str) and model in LABELS
    if not known and (isinstance(model, str | type) or not isinstance(model, OutputModel)):
        raise ValueError(
            f"model must be {' or '.join(map(repr, LABELS))}, or an object with d, joint_feature, "
            f"loss and decode (atomcast.structures.OutputModel), got {model!r}"
        )


def given(estimator: Any, X: Any, y: Any, sample_weight: Any, lengths: Any, classes: Any) -> Given:
    """Check the data of a fit."""
    kind = LABELS.get(estimator.model) if isinstance(estimator.model, str) else None
    if is_listed(X):
        X, sizes = flattened(X)
        y = y if kind is None else joined(y, sizes)
        lengths = sizes
    if estimator.model == "multiclass":
        shards, y, cluster = examples_and_labels(estimator, X, y, estimator.cluster)
        sizes = checked_lengths("multiclass", lengths, len(y))
    else:
        shards, sizes, cluster = _whole_examples(estimator, X, lengths)
    weights = None
    if sample_weight is not None:
        weights = checked_sample_weight(sample_weight, len(sizes))
    if kind is None:
        outputs = list(y)
        _check_count(len(outputs), len(sizes), "outputs", "examples")
        return Given(estimator.model, shards, _outputs(shards, sizes, outputs, weights), cluster)
    y = column_or_1d(y)
    _check_count(len(y), int(sizes.sum()), "labels", "rows")
    check_classification_targets(y)
    codes = class_codes(estimator, y, classes, shards).astype(np.int64)
    model = kind(len(estimator.classes_), estimator.n_features_in_)
    return Given(model, shards, _outputs(shards, sizes, _split(codes, sizes), weights), cluster)


def _whole_examples(estimator: Any, X: Any, lengths: Any) -> tuple[Shards, Lengths, Any]:
    """Rows in shards that hold whole examples, how many rows each has, and the cluster."""
    if isinstance(X, Shards):
        X, cluster = placed_rows(estimator, X, estimator.cluster)
        return X, checked_lengths(estimator.model, lengths, X.count(axis=0)), cluster
    X = validated(estimator, X, **ROW_FORMATS)
    sizes = checked_lengths(estimator.model, lengths, X.shape[0])
    cluster = as_cluster(estimator.cluster)
    rows_of_nodes = [int(part.sum()) for part in np.array_split(sizes, cluster.nodes)]
    return SplitShards(X, cluster.nodes, by=rows_of_nodes), sizes, cluster


def checked_lengths(model: Any, lengths: Any, rows: int) -> Lengths:
    """How many rows each example has, shape (n,); by default one, but for chains."""
    if lengths is None:
        if isinstance(model, str) and model == "chain":
            raise ValueError(
                "lengths is missing: say how many rows each sequence has, e.g. lengths=[7, 4], or "
                "give X as a list of arrays, one for each sequence"
            )
        return np.ones(rows, dtype=np.int64)
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iuf" or not np.all(sizes == np.rint(sizes)):
        sizes = np.zeros(1)
    if np.any(sizes < 1):
        raise ValueError(
            "lengths must be a list of positive whole numbers, one for each example, got "
            f"{lengths!r}"
        )
    if isinstance(model, str) and model == "multiclass" and np.any(sizes != 1):
        raise ValueError(
            'lengths must be 1 where model="multiclass", a class for each row; for sequences use '
            'model="chain"'
        )
    _check_count(int(sizes.sum()), rows, "rows in all by lengths", "rows in X")
    return sizes.astype(np.int64)


def is_listed(X: Any) -> bool:
    """Whether examples are given one by one, as a list of arrays with two dimensions."""
    return (
        isinstance(X, list | tuple)
        and len(X) > 0
        and all(getattr(x, "ndim", None) == 2 or np.ndim(x) == 2 for x in X)
    )


def flattened(X: Sequence[Any]) -> tuple[Any, Lengths]:
    """The rows of a list of examples, one after the other, and how many each has."""
    arrays = [x if sparse.issparse(x) else np.asarray(x) for x in X]
    for i, x in enumerate(arrays):
        if x.shape[1] != arrays[0].shape[1] or not x.shape[0]:
            raise ValueError(
                f"example {i} of X has the shape {x.shape}, but example 0 {arrays[0].shape}: all "
                "must have as many columns, and one or more rows"
            )
    sizes = np.array([x.shape[0] for x in arrays])
    if any(sparse.issparse(x) for x in arrays):
        return sparse.vstack(arrays, format="csr"), sizes
    return np.concatenate(arrays), sizes


def joined(y: Any, sizes: Lengths) -> NDArray[Any]:
    """The labels of a list of examples, one after the other."""
    labels = [np.asarray(part) for part in y]
    _check_count(len(labels), len(sizes), "examples in y", "examples in X")
    for i, (part, size) in enumerate(zip(labels, sizes, strict=True)):
        if part.shape != (size,):
            raise ValueError(
                f"example {i} has {size} rows in X, but labels of the shape {part.shape} in y: "
                "give one label for each row"
            )
    return np.concatenate(labels)


def _split(codes: Lengths, sizes: Lengths) -> list[Lengths]:
    return np.split(codes, np.cumsum(sizes)[:-1])


def _outputs(shards: Shards, sizes: Lengths, outputs: Sequence[Any], weights: Any) -> Outputs:
    return (OwnOutputs if shards.kind == "mine" else Outputs)(sizes, outputs, weights)


def _check_count(count: int, expected: int, what: str, of: str) -> None:
    if count != expected:
        raise ValueError(f"there are {count} {what}, but {expected} {of}: both must be the same")
