"""The layout of kernel machines: support vectors, their coefficients, and the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.known.kernels.functions import RBF, Dot, Kernel, Laplacian, Precomputed, Sigmoid
from atomcast.saving.classes import class_arrays, classes_in
from atomcast.saving.layouts import Atoms, check_decisions, finite, increasing
from atomcast.storage.container import Arrays, text_array, texts_of


class SupportLayout:
    """`KernelSVR`, and what it has in common with `KernelSVC`."""

    atoms_are = "examples"

    def pack(self, estimator: Any) -> Arrays:
        """Support vectors, coefficients and the kernel."""
        return {
            **kernel_arrays(estimator._kernel),
            **point_arrays(estimator.support_vectors_),
            "support": np.asarray(estimator.support_, dtype=np.int64),
            "n_support": np.asarray(estimator.n_support_, dtype=np.int64),
            "dual_coef": np.asarray(estimator.dual_coef_, dtype=np.float64),
            "intercept": np.asarray(estimator.intercept_, dtype=np.float64),
            "n_iter": np.asarray(estimator.n_iter_, dtype=np.int64),
        }

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the fitted attributes."""
        support, dual_coef = _support_in(arrays)
        n_support, machines = arrays["n_support"], self._machines(arrays, len(dual_coef))
        if (n_support < 0).any() or n_support.sum() != len(support):
            raise ValueError("n_support does not count the support vectors of each class")
        estimator._kernel = kernel = kernel_in(arrays, estimator.n_features_in_)
        numbered = isinstance(kernel, Precomputed)
        shape = len(support), 1 if numbered else estimator.n_features_in_
        estimator.support_vectors_ = points = points_in(arrays, shape)
        if numbered and not np.all((points >= 0) & (points < estimator.n_features_in_)):
            raise ValueError("a support vector has no column in a precomputed kernel")
        estimator.support_, estimator.n_support_ = support, n_support
        estimator.dual_coef_ = dual_coef
        estimator.intercept_ = finite(arrays["intercept"], (machines,))
        estimator.n_iter_ = int(arrays["n_iter"])

    def _machines(self, arrays: Arrays, rows: int) -> int:
        """How many machines there are, if that goes with the rows of coefficients."""
        if rows != 1 or arrays["n_support"].shape != (1,):
            raise ValueError(f"a regression has one row of coefficients, not {rows}")
        return 1

    def atoms(self, arrays: Arrays) -> Atoms:
        """The support vectors and their coefficients."""
        support, dual_coef = _support_in(arrays)
        return support, dual_coef[0] if len(dual_coef) == 1 else dual_coef.T


class KernelLayout(SupportLayout):
    """`KernelSVC`, of one machine for all classes, one a class or one for every two."""

    def pack(self, estimator: Any) -> Arrays:
        """Also the classes, and the sigmoids if there are any."""
        arrays = super().pack(estimator) | class_arrays(estimator.classes_)
        if estimator.probability:
            arrays["calibration"] = estimator.calibration_
        return arrays

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the fitted attributes."""
        super().unpack(estimator, arrays)
        estimator.classes_ = classes = classes_in(arrays)
        rows = len(estimator.dual_coef_)
        if estimator.probability:
            decisions = len(classes) if _pairs(classes, rows) else rows
            estimator.calibration_ = finite(arrays["calibration"], (decisions, 2))

    def _machines(self, arrays: Arrays, rows: int) -> int:
        classes = classes_in(arrays)
        if arrays["n_support"].shape != classes.shape:
            raise ValueError("n_support does not say how many there are of each class")
        if _pairs(classes, rows):
            return len(classes) * (len(classes) - 1) // 2
        check_decisions(rows, classes)
        return rows


def _pairs(classes: NDArray[Any], rows: int) -> bool:
    """Whether so many rows of coefficients are those of a machine for every two classes."""
    return 1 < rows == len(classes) - 1


def _support_in(arrays: Arrays) -> Atoms:
    """Global ids of the support vectors, in any order, and a column of coefficients for each."""
    support, dual_coef = arrays["support"], finite(arrays["dual_coef"])
    increasing(np.sort(support))
    if dual_coef.ndim != 2 or dual_coef.shape[1] != len(support):
        raise ValueError("coefficients and support vectors do not go together")
    return support, dual_coef


def kernel_arrays(kernel: Kernel) -> Arrays:
    """The arrays that hold a kernel whose parameters are fixed."""
    if isinstance(kernel, RBF):
        arrays: Arrays = {"kernel.name": text_array(["rbf"]), "kernel.gamma": _number(kernel.gamma)}
        return arrays if kernel.centre is None else arrays | {"kernel.centre": kernel.centre}
    if isinstance(kernel, Laplacian):
        return {"kernel.name": text_array(["laplacian"]), "kernel.gamma": _number(kernel.gamma)}
    if isinstance(kernel, Precomputed):
        return {"kernel.name": text_array(["precomputed"]), "kernel.gamma": _number(1.0)}
    if isinstance(kernel, Dot):
        return {
            "kernel.name": text_array(["sigmoid" if isinstance(kernel, Sigmoid) else "dot"]),
            "kernel.gamma": _number(kernel.gamma),
            "kernel.coef0": _number(kernel.coef0),
            "kernel.degree": np.array(kernel.degree, dtype=np.int64),
        }
    raise ValueError(
        "a model whose kernel is a function of yours cannot be saved, because a file that names "
        'code would have to be trusted: use kernel="rbf", "linear", "poly" or "laplacian"'
    )


def kernel_in(arrays: Arrays, d: int) -> Kernel:
    """The kernel that some arrays hold, for points of length d."""
    (name,) = texts_of(arrays["kernel.name"])
    gamma = float(finite(arrays["kernel.gamma"], ()))
    if not gamma > 0:
        raise ValueError(f"gamma must be positive, got {gamma}")
    if name == "rbf":
        dense = "kernel.centre" in arrays
        return RBF(gamma, finite(arrays["kernel.centre"], (d,)) if dense else None)
    if name == "laplacian":
        return Laplacian(gamma)
    if name == "precomputed":
        return Precomputed()
    if name == "sigmoid":
        return Sigmoid(gamma, float(finite(arrays["kernel.coef0"], ())))
    if name == "dot":
        coef0, degree = float(finite(arrays["kernel.coef0"], ())), int(arrays["kernel.degree"])
        if coef0 < 0 or degree < 1:
            raise ValueError(f"no kernel has coef0={coef0} and degree={degree}")
        return Dot(gamma, coef0, degree)
    raise ValueError(f"there is no kernel {name!r}")


def _number(value: float) -> NDArray[np.float64]:
    return np.array(value, dtype=np.float64)


def point_arrays(points: Any) -> Arrays:
    """The arrays that hold points, dense or sparse."""
    if not sparse.issparse(points):
        return {"vectors": points}
    return {f"vectors.{part}": getattr(points, part) for part in ("data", "indices", "indptr")}


def points_in(arrays: Arrays, shape: tuple[int, int]) -> Any:
    """Support vectors, dense or sparse, in single or double precision."""
    if "vectors" in arrays:
        points = values = arrays["vectors"]
    else:
        values = arrays["vectors.data"]
        parts = values, arrays["vectors.indices"], arrays["vectors.indptr"]
        points = sparse.csr_array(parts, shape=shape)
        points.check_format(full_check=True)
    if values.dtype not in (np.float32, np.float64) or not np.isfinite(values).all():
        raise ValueError(f"finite numbers were expected as support vectors, got {values.dtype}")
    if points.shape != shape:
        raise ValueError(f"{points.shape} support vectors were found, not {shape}")
    return points


LAYOUT, REGRESSION = KernelLayout(), SupportLayout()
