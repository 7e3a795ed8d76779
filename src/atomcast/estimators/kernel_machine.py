"""What kernel machines have in common: the kernel, and sums over their support vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from atomcast._checks import check_count, check_positive
from atomcast.data.matrices import cut
from atomcast.data.shards import Shards
from atomcast.estimators.inputs import ROW_FORMATS, validated
from atomcast.estimators.solving import SolvedEstimator
from atomcast.known.kernels.functions import Gamma, Kernel, KernelSpec
from atomcast.known.kernels.kernel_matrix import kernel_block
from atomcast.known.kernels.point_set import SupportVectors

Floats = NDArray[np.float64]

#: Kernel values that prediction computes at a time.
PIECE = 1 << 20


class SupportSum:
    """A sum over support vectors; in a dataclass, these attributes would be parameters."""

    support_vectors_: Any
    dual_coef_: Floats
    intercept_: Floats
    _kernel: Kernel


@dataclass(eq=False, repr=False)
class KernelMachine(SupportSum, SolvedEstimator):
    """A machine with support vectors, which are examples; parameters are those of `KernelSVC`."""

    C: float = 1.0
    _: KW_ONLY
    kernel: str | Callable[[Any, Any], Any] = "rbf"
    gamma: Gamma = "mean-distance"
    degree: int = 3
    coef0: float = 0.0
    cache_bytes: int = 2**31

    usual_tol = 1e-3

    def _kernel_spec(self, cost: str) -> KernelSpec:
        """The kernel, if it and C, which is a cost of something, are in order."""
        check_positive("C", self.C, cost)
        check_count("cache_bytes", self.cache_bytes, "memory for kernel values", minimum=0)
        return KernelSpec(self.kernel, self.gamma, self.degree, self.coef0)

    def _check_square(self, shards: Shards, sample_weight: Any) -> None:
        """Refuse a precomputed kernel that is none."""
        if self.kernel != "precomputed":
            return
        n, columns = shards.count(axis=0), shards.rows(axis=0)
        if sparse.issparse(shards.matrix) or (n != columns and shards.kind != "mine"):
            raise ValueError(
                'X must be a square matrix with kernel="precomputed", dense, with a row and a '
                f"column for each example, got {n} rows and {columns} columns"
            )
        if sample_weight is not None and not np.all(sample_weight):
            raise ValueError(
                'sample_weight has zeros, but rows of a kernel="precomputed" belong to its '
                "columns: leave these examples out of both"
            )

    def _keep_vectors(self, content: SupportVectors, order: NDArray[np.int64]) -> Any:
        """Keep kernel and support vectors, of a precomputed kernel their numbers; returns them."""
        self._kernel, points = content.kernel, content.taken(order)
        numbered = self.kernel == "precomputed"
        self.support_vectors_ = points[:, -1:].copy() if numbered else points
        return points

    @property
    def gamma_(self) -> float:
        """The gamma that was used."""
        check_is_fitted(self)
        return float(getattr(self._kernel, "gamma", np.nan))

    def _values(self, X: Any) -> Floats:
        """What each machine says of new examples, shape (n_samples, n_machines)."""
        check_is_fitted(self)
        if not isinstance(X, Shards):
            return self._decision(validated(self, X, reset=False, **ROW_FORMATS))
        values = np.zeros((X.count(axis=0), len(self.intercept_)))
        for i in range(X.nodes):
            shard = X.shard(i, axis=0)
            values[shard.ids] = self._decision(shard.matrix)
        return values

    def _decision(self, X: Any) -> Floats:
        points, intercept = self.support_vectors_, self.intercept_
        values = np.empty((X.shape[0], len(intercept)))
        height = max(PIECE // max(points.shape[0], 1), 1)
        for start in range(0, X.shape[0], height):
            rows = slice(start, start + height)
            new = cut(X, start, min(start + height, X.shape[0]), 0)
            if sparse.issparse(points) and not sparse.issparse(new):
                new = sparse.csr_array(new)
            block = kernel_block(self._kernel, new, points, np.float64)
            values[rows] = intercept + self._combined(block)
        return values

    def _combined(self, block: Floats) -> Floats:
        """The sums of kernel values with all support vectors, one for each machine."""
        return np.asarray(block @ self.dual_coef_.T)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
