"""The layout of models of many kernels: the functions in use, and their examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomcast.estimators.view_inputs import Holders
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.view_kernels import FittedKernel, ViewKernel
from atomcast.saving.classes import class_arrays, classes_in
from atomcast.saving.kernel_layout import point_arrays, points_in
from atomcast.saving.layouts import Atoms, finite, increasing
from atomcast.storage.container import Arrays, text_array, texts_of


class ViewLayout:
    """`MultipleKernelClassifier` and `MultipleKernelRegressor`."""

    atoms_are = "kernels"

    def pack(self, estimator: Any) -> Arrays:
        """Weights and names of all kernels, and each function in use with its examples."""
        arrays: Arrays = {
            "kernel.weights": np.asarray(estimator.kernel_weights_, dtype=np.float64),
            "kernel.names": text_array(estimator.kernel_names_),
            "radius": np.array([estimator.beta_, min(estimator.C_, np.finfo(float).max)]),
            "views": np.concatenate(estimator.views_).astype(np.int64),
            "views.sizes": np.array([len(view) for view in estimator.views_], dtype=np.int64),
        }
        if hasattr(estimator, "classes_"):
            arrays |= class_arrays(estimator.classes_)
        else:
            arrays["intercept"] = np.asarray(estimator.intercept_, dtype=np.float64)
        holders = Holders(estimator._training)
        for k, function in enumerate(estimator.functions_):
            own = _function_arrays(function, holders.examples(function))
            arrays |= {f"{k}.{name}": array for name, array in own.items()}
        return arrays

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the fitted attributes."""
        ids, _ = self.atoms(arrays)
        estimator.kernel_weights_ = finite(arrays["kernel.weights"])
        estimator.kernel_names_ = texts_of(arrays["kernel.names"])
        sizes, columns = arrays["views.sizes"], arrays["views"]
        n = estimator.n_features_in_
        if not np.array_equal(np.sort(columns), np.arange(n)) or sizes.sum() != n:
            raise ValueError(f"views are not a partition of {n} columns")
        estimator.views_ = np.split(columns, np.cumsum(sizes)[:-1])
        estimator.beta_, estimator.C_ = finite(arrays["radius"], (2,)).tolist()
        outputs = 1
        if "intercept" in arrays:
            estimator.intercept_ = float(finite(arrays["intercept"], ()))
        else:
            estimator.classes_ = classes_in(arrays)
            outputs = 1 if len(estimator.classes_) == 2 else len(estimator.classes_)
        estimator._training = None
        parts = [_named(arrays, f"{k}.") for k in range(len(ids))]
        estimator.functions_ = [_function_in(part, n, outputs) for part in parts]

    def atoms(self, arrays: Arrays) -> Atoms:
        """The kernels in use and their shares."""
        weights = finite(arrays["kernel.weights"])
        if weights.ndim != 1 or len(weights) != len(texts_of(arrays["kernel.names"])):
            raise ValueError("kernels and their names do not go together")
        ids = np.flatnonzero(weights)
        return ids, weights[ids]

    def atom_names(self, arrays: Arrays) -> list[str]:
        """The names of all kernels."""
        return texts_of(arrays["kernel.names"])


def _function_arrays(function: FittedKernel, points: Any) -> Arrays:
    spec = function.kernel.spec
    if spec is not None and callable(spec.kernel):
        raise ValueError(
            "a model with a kernel that is a function of yours cannot be saved, because a file "
            'that names code would have to be trusted: use "rbf", "linear", "poly", "laplacian", '
            'or kernels="precomputed"'
        )
    about = [function.gamma, function.scale, function.constant]
    about += [1.0, 0.0] if spec is None else [float(spec.degree), float(spec.coef0)]
    arrays: Arrays = {
        "name": text_array(["precomputed" if spec is None else str(spec.kernel)]),
        "about": np.nan_to_num(np.array(about, dtype=np.float64)),
        "columns": np.asarray(function.columns, dtype=np.int64),
        "dual": np.asarray(function.dual, dtype=np.float64),
    }
    return arrays if points is None else arrays | point_arrays(points)


def _function_in(arrays: Arrays, features: int, outputs: int) -> FittedKernel:
    """A function from its arrays, for so many features, classes or numbers to predict."""
    (name,) = texts_of(arrays["name"])
    gamma, scale, constant, degree, coef0 = finite(arrays["about"], (5,)).tolist()
    columns, dual = increasing(arrays["columns"]), finite(arrays["dual"])
    if not len(columns) or not 0 <= columns[0] <= columns[-1] < features:
        raise ValueError(f"a view has columns outside 0 ... {features - 1}")
    if dual.ndim != 2 or dual.shape[1] != outputs or not scale > 0.0:
        raise ValueError(f"coefficients of shape {dual.shape} do not give {outputs} values")
    if name == "precomputed":
        if len(columns) != len(dual):
            raise ValueError("a view of kernel values does not have a column for each example")
        return FittedKernel(columns, ViewKernel(None), np.nan, scale, constant, dual)
    spec = KernelSpec(name, gamma or "scale", int(degree), coef0)
    points = points_in(arrays, (len(dual), len(columns)))
    return FittedKernel(columns, ViewKernel(spec), gamma or np.nan, scale, constant, dual, points)


def _named(arrays: Arrays, prefix: str) -> Arrays:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


LAYOUT = ViewLayout()
