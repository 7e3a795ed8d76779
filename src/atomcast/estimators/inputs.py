"""What estimators accept as data, turned into shards."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from atomcast._checks import check_in_scale
from atomcast.cluster.mpi.rank_shards import RankShards
from atomcast.data._split import SplitShards
from atomcast.data.alignment import check_any, explain_difference, row_digest
from atomcast.data.finite import check_finite, surely_finite
from atomcast.data.matrices import file_map
from atomcast.data.prepared import together
from atomcast.data.shards import Shards
from atomcast.data.sparse_format import check_sparse, is_sparse
from atomcast.data.tables import is_table, refuse_bad_columns, refuse_ids
from atomcast.loop.session import Cluster
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.simulation.local import LocalCluster, as_cluster

#: What may be said of matrices that need none of scikit-learn's conversions.
PLAIN = {"accept_sparse", "dtype", "y_numeric", "multi_output", "reset"}
FORMATS = {"accept_sparse": ["csc", "csr"], "dtype": [np.float64, np.float32]}
#: The same where nodes hold rows.
ROW_FORMATS = {**FORMATS, "accept_sparse": "csr"}
#: Floats below this that are whole numbers are just these.
WHOLE = 2.0**53


def validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Do scikit-learn's checks, and say what is wrong with a data frame of its column.

    Parameters and result are those of `validate_data`, which converts sparse matrices without
    looking at their indices: here, these are checked first. Of a file that is mapped into memory,
    every node checks the values that are its own: a process that looked at all of them would have
    the whole file in memory.
    """
    if isinstance(y, str) and hasattr(estimator, "preparation_"):
        X = together(estimator.preparation_).matrix(X, "X")
        return check_array(X, **{k: v for k, v in options.items() if k != "reset"})
    check_sparse(X)
    if _is_plain(estimator, X, y, options):
        return X if isinstance(y, str) else (X, y)
    if not isinstance(y, str):
        vars(estimator).pop("preparation_", None)  # of an earlier fit
        options.setdefault("ensure_all_finite", file_map(X) is None)
    if is_table(X):
        refuse_ids(X)
    try:
        checked = validate_data(estimator, X, y, **options)
    except ValueError:
        if is_table(X):
            refuse_bad_columns(X, missing=options.get("ensure_all_finite") == "allow-nan")
        raise
    if not isinstance(y, str):
        check_same_index(X, y)
    return checked


def _looked_at(X: Any, options: dict[str, Any]) -> bool:
    """Whether `validated` has looked for NaN and infinity in all of X."""
    return options.get("ensure_all_finite", True) is True and file_map(X) is None


def _is_plain(estimator: Any, X: Any, y: Any, options: dict[str, Any]) -> bool:
    """Whether plain matrices are right as they are; if so, notes what scikit-learn would.

    Its own checks take longer than small models take to be fitted, or to predict.
    """
    target = not isinstance(y, str)
    if options.keys() - PLAIN or not _is_matrix(X, options["accept_sparse"]):
        return False
    if not target:
        known = getattr(estimator, "n_features_in_", None)
        return X.shape[1] == known and not hasattr(estimator, "feature_names_in_")
    if type(y) is not np.ndarray or y.shape != X.shape[:1]:
        return False
    plain = "biuf" if "y_numeric" in options else "biufU"
    if y.dtype.kind not in plain or (y.dtype.kind == "f" and not surely_finite(y)):
        return False
    for name in ("preparation_", "feature_names_in_"):  # of an earlier fit
        vars(estimator).pop(name, None)
    estimator.n_features_in_ = X.shape[1]
    return True


def _is_matrix(X: Any, formats: str | list[str]) -> bool:
    """Whether X is an array or, in one of these formats, a sparse matrix of finite numbers."""
    values = X
    if is_sparse(X):
        if X.ndim != 2 or X.format not in formats or X.format not in ("csc", "csr"):
            return False
        values = X.data[: X.indptr[-1]]
    elif type(X) is not np.ndarray or X.ndim != 2:
        return False
    floats = X.dtype in (np.float64, np.float32)
    return floats and 0 not in X.shape and surely_finite(values)


def check_classes(y: Any) -> None:
    """Raise ValueError, as scikit-learn does, unless these are classes, and few of them."""
    if _plain_classes(y) is None:
        check_classification_targets(y)


def _plain_classes(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    """What `classes_of` says of labels that are classes beyond doubt; None of others.

    scikit-learn's own look at them takes longer than small models take to be fitted.
    """
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "biufU":
        return None
    found = classes, _ = classes_of(y)
    if 2 * len(classes) > len(y):
        return None
    whole = y.dtype.kind != "f" or np.all((abs(classes) < WHOLE) & (classes.round() == classes))
    return found if whole else None


def classes_of(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes of some labels in order, and the number of each label's class."""
    if y.dtype == np.int64 and y.size:  # numbers that are near each other need no sorting, either
        lowest = int(y.min())
        if int(y.max()) - lowest < len(y):
            counts = np.bincount(y - lowest)
            return counts.nonzero()[0] + lowest, ((counts > 0).cumsum() - 1)[y - lowest]
    if y.dtype.kind in "biuf":  # two are told apart without sorting
        two = np.array([y.min(), y.max()], dtype=y.dtype)
        second = y == two[1]
        if two[0] < two[1] and np.all(second | (y == two[0])):
            return two, second.astype(np.int64)
    classes, numbers = np.unique(y, return_inverse=True)
    return classes, numbers.astype(np.int64)


def check_same_index(X: Any, y: Any, axis: int = 1) -> None:
    """Raise ValueError if rows of pandas data, or of shards with row ids, have another label in y.

    Without labels on both sides nothing can be compared.
    """
    labels: Any = getattr(y, "index", None)
    if not hasattr(labels, "equals"):  # no pandas; the index of a list is a method
        return
    rows: Any = getattr(X, "index", None)
    if isinstance(X, Shards):
        rows = X.row_labels(labels.name, axis)
    if rows is None or callable(rows):
        return
    equal = rows.equals if hasattr(rows, "equals") else partial(_same_ids, rows)
    if not equal(labels):
        raise ValueError(
            f"the index of y differs from that of X ({explain_difference(labels, rows)}), so that "
            "rows may not belong together: bring y into the order of X, e.g. by y.loc[X.index], "
            "or give y.to_numpy() if its order is right as it is"
        )


def _same_ids(ids: Any, others: Any) -> bool:
    return row_digest(ids) == row_digest(others)


def check_dense(y: Any) -> None:
    """Raise TypeError if a target is a sparse matrix."""
    if is_sparse(y):
        raise TypeError("y is a sparse matrix, but it must be an array: give y.toarray()")


def as_numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """A target in double precision, if it is one of finite numbers; else a ValueError."""
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numeric, got the type {y.dtype}: {error}") from None
    if not surely_finite(numbers):  # in objects, scikit-learn has not looked for it
        check_array(numbers, ensure_2d=False, input_name="y")
    return numbers


def features_and_target(
    estimator: Any, X: Any, y: Any, cluster: Any, multi_output: bool = False, **formats: Any
) -> tuple[Shards, NDArray[np.float64], Any]:
    """Check the data of a regressor; returns the features in shards, the target, the cluster.

    With `multi_output`, there may be several targets, the columns of y. Further keywords go to
    `validated`.
    """
    formats |= {"y_numeric": True, "multi_output": multi_output}
    shards, y, cluster = _features(estimator, X, y, cluster, np.float64, **formats)
    return shards, as_numbers(y), cluster


def features_and_classes(
    estimator: Any, X: Any, y: Any, cluster: Any, **formats: Any
) -> tuple[Shards, NDArray[np.int64], Any]:
    """Check the data of a classifier; returns the features, class numbers, and the cluster.

    Sets `classes_`. Further keywords go to `validated`.
    """
    shards, y, cluster = _features(estimator, X, y, cluster, None, **formats)
    found = _plain_classes(y)
    if found is None:
        check_classification_targets(y)
    estimator.classes_, numbers = found or classes_of(y)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"y has only one class, {estimator.classes_[0]!r}: a classifier needs two or more"
        )
    return shards, numbers, cluster


def _features(
    estimator: Any, X: Any, y: Any, cluster: Any, kind: Any, **formats: Any
) -> tuple[Shards, NDArray[Any], Any]:
    """The features in shards, the target of a kind of numbers, or of any kind, and the cluster.

    Features that are already `Shards` are taken as they are; the nodes check them on loading.
    """
    if not isinstance(X, Shards):
        check_dense(y)
        X, y = validated(estimator, X, y, **FORMATS, **formats)
        cluster = as_cluster(cluster)
        names = getattr(estimator, "feature_names_in_", None)
        shards = SplitShards.of_checked(X, cluster.nodes, names)
        shards.finite = _looked_at(X, formats)
        return shards, y, cluster
    if isinstance(cluster, Cluster):  # processes that hold a part each learn of the others'
        X = cluster.place(X)
    if y is None:
        raise ValueError("y is missing: the target or the classes must be known to every node")
    check_any(X.count(), axis=1)
    check_same_index(X, y)
    check_dense(y)
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    y = y if kind is None else as_numbers(y)
    y = y if formats.get("multi_output") else column_or_1d(y)
    keep_names(estimator, X)
    return X, y, LocalCluster(X.nodes) if cluster is None else as_cluster(cluster)


def examples_and_labels(
    estimator: Any, X: Any, y: Any, cluster: Any
) -> tuple[Shards, NDArray[Any], Any]:
    """Check the data of a classifier whose nodes hold rows; returns them, labels, the cluster."""
    X, y, cluster = _examples(estimator, X, y, cluster, "label")
    check_classes(y)
    return X, y, cluster


def examples_and_targets(
    estimator: Any, X: Any, y: Any, cluster: Any
) -> tuple[Shards, NDArray[np.float64], Any]:
    """The same of a regressor, with a number for each row."""
    X, y, cluster = _examples(estimator, X, y, cluster, "target", y_numeric=True)
    y = as_numbers(y)
    check_in_scale("y", y)
    return X, y, cluster


def _examples(
    estimator: Any, X: Any, y: Any, cluster: Any, what: str, **formats: Any
) -> tuple[Shards, NDArray[Any], Any]:
    """Rows in shards, what is known of each, and the cluster."""
    if not isinstance(X, Shards):
        X, y = validated(estimator, X, y, **ROW_FORMATS, **formats)
        cluster = as_cluster(cluster)
        shards = SplitShards.of_checked(X, cluster.nodes)
        shards.finite = _looked_at(X, formats)
        return shards, y, cluster
    if y is None:
        raise ValueError(f"y is missing: every node must know the {what}s of its examples")
    check_same_index(X, y, axis=0)
    y = column_or_1d(y)
    X, cluster = placed_rows(estimator, X, cluster)
    count = X.count(axis=0)
    if X.kind != "mine":
        check_any(count, axis=0)
        check_any(X.rows(axis=0), axis=1)
    if len(y) != count:
        whose = "this process's X" if X.kind == "mine" else "X"
        raise ValueError(f"y has {len(y)} {what}s, but {whose} has {count} rows: give one for each")
    return X, y, cluster


def placed_rows(estimator: Any, X: Shards, cluster: Any) -> tuple[Shards, Any]:
    """Rows in shards as the processes of the cluster know them, and the cluster.

    With Shards.mine, labels are those of this process's rows, which it can count.
    """
    if X.kind != "mine" and isinstance(cluster, Cluster):
        X = cluster.place(X)
    keep_names(estimator, X, axis=0)
    return X, LocalCluster(X.nodes) if cluster is None else as_cluster(cluster)


def class_codes(estimator: Any, y: NDArray[Any], classes: Any, shards: Shards) -> NDArray[Any]:
    """The labels of rows as numbers, shape (n,); sets `classes_`."""
    if shards.kind == "mine" and classes is None:
        raise ValueError(
            "classes is missing: with Shards.mine no process sees all labels, so pass the same "
            "fit(X, y, classes=[...]) on every process"
        )
    if classes is None:
        estimator.classes_, codes = classes_of(y)
    else:
        estimator.classes_ = np.unique(np.asarray(classes))
        unseen = np.setdiff1d(y, estimator.classes_)
        if len(unseen):
            raise ValueError(f"y has the label {unseen[0]!r}, which is not in classes={classes!r}")
        codes = np.searchsorted(estimator.classes_, y)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"y has one class only, {estimator.classes_[0]!r}: a classifier needs two or more"
        )
    dtype: Any = np.uint8 if len(estimator.classes_) <= 256 else np.int32
    return codes.astype(dtype)


def keep_names(estimator: Any, shards: Shards, axis: int = 1) -> None:
    """What scikit-learn remembers of arrays and DataFrames, for data in shards."""
    names = shards.column_names(axis)
    estimator.n_features_in_ = shards.count() if axis == 1 else shards.rows(axis)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    vars(estimator).pop("preparation_", None)
    if axis == 1 and shards.prepared is not None:
        estimator.preparation_ = shards.prepared


def linear_prediction(estimator: Any, X: Any, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product X coef of new data, which may again be in shards.

    Where each rank of an MPI job has a part of it, they add up their products.
    """
    cluster: Any = getattr(estimator, "cluster", None)
    own_alone = getattr(getattr(estimator, "result_", None), "partial", False)
    mine = isinstance(X, Shards) and (own_alone or X.kind == "mine")
    if mine and isinstance(cluster, Cluster):
        X = cluster.place(X)
    if own_alone and not isinstance(X, RankShards):
        raise ValueError(
            f"this {type(estimator).__name__} has the coefficients of its own rank alone, for it "
            'was fitted with reveal="never": give X as Shards.mine(X_local) on every rank'
        )
    if not isinstance(X, Shards):
        X = validated(estimator, X, reset=False, **FORMATS)
        return np.asarray(X @ coef, dtype=np.float64)
    X = as_in_fit(estimator, X)
    check_features(estimator, X)
    if isinstance(X, RankShards):
        own = X.shard(X.rank)
        total: NDArray[np.float64] = cluster.total(own.matrix @ coef[own.ids])
        return total
    predicted = X.combine(coef)
    if not surely_finite(predicted):
        for i in range(X.nodes):
            check_finite(X.shard(i))
    return predicted


def as_in_fit(estimator: Any, shards: Shards) -> Shards:
    """New data, prepared as that of the fit was."""
    known = getattr(estimator, "preparation_", None)
    return shards if known is None else shards.prepared_as(known)


def check_features(estimator: Any, shards: Shards) -> None:
    """Raise ValueError, as scikit-learn does for arrays, unless new data has the same features."""
    if not shards.by_name and shards.count() != estimator.n_features_in_:
        raise ValueError(
            f"X has {shards.count()} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def rows_of(shards: Shards, rows: NDArray[np.int64]) -> Shards:
    """The same columns with only some of their rows."""
    if isinstance(shards, RankShards):
        return shards.with_local(shards.local[rows], len(rows))
    return shards[rows]


def rows_that_count(
    shards: Shards, y: NDArray[Any], sample_weight: Any, axis: int = 1
) -> tuple[Shards, NDArray[Any], NDArray[np.float64] | None, NDArray[np.int64] | None]:
    """Rows whose weight is not zero, their targets and weights, and which they are, if not all."""
    if sample_weight is None:
        return shards, y, None, None
    weights = checked_sample_weight(sample_weight, len(y))
    kept = np.flatnonzero(weights)
    if len(kept) == len(y):
        return shards, y, weights, None
    if axis == 0 and (shards.kind == "mine" or isinstance(shards, RankShards)):
        raise ValueError(
            "sample_weight has zeros, but no process knows the rows of the others: leave these "
            "examples out"
        )
    return rows_of(shards, kept), y[kept], weights[kept], kept
