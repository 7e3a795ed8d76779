"""What estimators accept as data, turned into shards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d
from sklearn.utils.validation import validate_data as validate_by_sklearn

from atomcast.cluster.local import LocalCluster, as_cluster
from atomcast.data._split import SplitShards
from atomcast.data.shards import Shards
from atomcast.data.sparse_format import check_sparse

FORMATS = {"accept_sparse": ["csc", "csr"], "dtype": [np.float64, np.float32]}


def validate_data(estimator: Any, X: Any, *args: Any, **options: Any) -> Any:
    """As in scikit-learn, which converts sparse matrices without looking at their indices."""
    check_sparse(X)
    return validate_by_sklearn(estimator, X, *args, **options)


def features_and_target(
    estimator: Any, X: Any, y: Any, cluster: Any
) -> tuple[Shards, NDArray[np.float64], Any]:
    """Check the data of a regressor; returns the features in shards, the target, the cluster.

    Features that are already `Shards` are taken as they are; the nodes check them on loading.
    """
    if not isinstance(X, Shards):
        X, y = validate_data(estimator, X, y, y_numeric=True, **FORMATS)
        cluster = as_cluster(cluster)
        names = getattr(estimator, "feature_names_in_", None)
        return SplitShards(X, cluster.nodes, names=names), y.astype(np.float64), cluster
    if hasattr(cluster, "place"):  # processes that hold a part each learn of the others'
        X = cluster.place(X)
    if y is None:
        raise ValueError("y is missing: the target must be known to every node")
    y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
    keep_names(estimator, X)
    return X, y, LocalCluster(X.nodes) if cluster is None else as_cluster(cluster)


def keep_names(estimator: Any, shards: Shards, axis: int = 1) -> None:
    """What scikit-learn remembers of arrays and DataFrames, for data in shards."""
    names = shards.column_names(axis)
    estimator.n_features_in_ = shards.count() if axis == 1 else shards.rows(axis)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def features_and_classes(
    estimator: Any, X: Any, y: Any, cluster: Any, **formats: Any
) -> tuple[Shards, NDArray[np.int64], Any]:
    """Check the data of a classifier; returns the features, class numbers, and the cluster.

    Sets `classes_`. Further keywords go to scikit-learn's `validate_data`.
    """
    if isinstance(X, Shards):
        if hasattr(cluster, "place"):
            X = cluster.place(X)
        if y is None:
            raise ValueError("y is missing: the labels must be known to every node")
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"))
        keep_names(estimator, X)
        cluster = LocalCluster(X.nodes) if cluster is None else as_cluster(cluster)
    else:
        X, y = validate_data(estimator, X, y, **{**FORMATS, **formats})
        cluster = as_cluster(cluster)
        X = SplitShards(X, cluster.nodes, names=getattr(estimator, "feature_names_in_", None))
    check_classification_targets(y)
    estimator.classes_, numbers = np.unique(y, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"y has only one class, {estimator.classes_[0]!r}: a classifier needs two or more"
        )
    return X, numbers.astype(np.int64), cluster


def linear_prediction(estimator: Any, X: Any, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product X coef of new data, which may again be in shards."""
    if not isinstance(X, Shards):
        X = validate_data(estimator, X, reset=False, **FORMATS)
        return np.asarray(X @ coef, dtype=np.float64)
    if X.count() != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.count()} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    total = np.zeros((X.rows(), *coef.shape[1:]))
    for i in range(X.nodes):
        shard = X.shard(i)
        total += shard.matrix @ coef[shard.ids]
    return total
