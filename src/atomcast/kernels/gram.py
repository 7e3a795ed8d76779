"""The augmented kernel between known points, kept within a budget of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.kernels.functions import Kernel, Laplacian, RBF
from atomcast.kernels.labels import Codes, LabelCode
from atomcast.kernels.points import Points, is_binary
from atomcast.kernels.sums import MOST_BITS, BinarySums

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Blocks with more values than this are worth compiled code, where there is any.
LARGE_BLOCK = 1 << 20
#: Up to so many points, the matrix is kept in double precision whatever was asked for.
FULL_PRECISION_UP_TO = 4096
#: Rows are computed and widened in groups of this many.
GROUP = 512


class AugmentedKernel:
    """K~ = <y_i, y_j> (k(x_i, x_j) + 1) + delta_ij / C between points that everybody knows.

    Parameters
    ----------
    kernel : Kernel
    code : LabelCode
    cache_bytes : int
        As long as the matrix fits in so many bytes it is kept; beyond, rows are computed anew.
    dtype : float32 or float64
        The precision in which the matrix is kept once it is large; a small one is kept in full.
    """

    def __init__(self, kernel: Kernel, code: LabelCode, cache_bytes: int, dtype: Any) -> None:
        self.kernel = kernel
        self.code = code
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        self._large_dtype = np.dtype(dtype)
        self.cache_bytes = cache_bytes
        self.count = 0
        self.diagonal: Floats = np.zeros(0)
        self._points: Points = None
        self._labels: Codes = np.zeros(0, dtype=np.uint8)
        self._matrix: NDArray[Any] | None = np.empty((0, 0), dtype=self.dtype)

    @property
    def matrix(self) -> NDArray[Any] | None:
        """The matrix, shape (count, count), or None if it does not fit in the budget."""
        return None if self._matrix is None else self._matrix[: self.count, : self.count]

    def extend(self, points: Points, labels: Codes) -> None:
        """Take in all points known now; the first `count` of them are the ones known before."""
        old, self.count = self.count, len(labels)
        self._points, self._labels = points, labels
        own = self.kernel.diagonal(points[old:]) + 1.0 + self.code.ridge(labels[old:])
        if not np.all(own > 0):
            raise not_positive(f"the product of a point with itself is {own.min() - 1.0:.3g}")
        self.diagonal = np.concatenate([self.diagonal, own])
        self._make_room()
        if self._matrix is None:
            return
        for start in range(old, self.count, GROUP):
            stop = min(start + GROUP, self.count)
            rows = self._computed(np.arange(start, stop), stop)
            self._matrix[start:stop, :stop] = rows
            self._matrix[:start, start:stop] = rows[:, :start].T

    def _make_room(self) -> None:
        if self._matrix is None or self.count <= len(self._matrix):
            return
        if self.count > FULL_PRECISION_UP_TO:
            self.dtype = self._large_dtype
        if self.count**2 * self.dtype.itemsize > self.cache_bytes:
            self._matrix = None
            return
        # Memory is only taken when it is written to, so that room to grow costs nothing, and
        # growing in large steps hardly ever copies.
        most = int(np.sqrt(self.cache_bytes / self.dtype.itemsize))
        size = min(max(self.count, 4 * len(self._matrix), 64), most)
        if self.count <= FULL_PRECISION_UP_TO:
            size = min(size, FULL_PRECISION_UP_TO)
        larger = np.empty((size, size), dtype=self.dtype)
        larger[: len(self._matrix), : len(self._matrix)] = self._matrix
        self._matrix = larger

    def _computed(self, positions: Positions, width: int) -> NDArray[Any]:
        """Rows of the matrix up to column `width`, computed from the points."""
        rows = kernel_block(self.kernel, self._points[positions], self._points[:width], self.dtype)
        rows += 1
        table = self.code.table.astype(self.dtype)
        rows *= table[self._labels[positions]][:, self._labels[:width]]
        rows[np.arange(len(positions)), positions] = self.diagonal[positions]
        return rows

    def rows(self, positions: Positions) -> NDArray[Any]:
        """Some rows of the matrix, shape (m, count)."""
        if self._matrix is not None:
            return self._matrix[positions, : self.count]
        return self._computed(positions, self.count)

    def times(self, vector: Floats) -> Floats:
        """The product of the matrix with a vector, shape (count,), summed in double precision."""
        used = np.flatnonzero(vector)
        result = np.zeros(self.count)
        for start in range(0, len(used), GROUP):
            group = used[start : start + GROUP]
            result += vector[group] @ self.rows(group).astype(np.float64, copy=False)
        return result


def kernel_block(kernel: Kernel, X: Points, Z: Points, dtype: Any) -> NDArray[Any]:
    """The kernel between two sets of points, by bits where that is possible and worth it."""
    large = X.shape[0] * Z.shape[0] >= LARGE_BLOCK and X.shape[1] <= MOST_BITS
    if large and isinstance(kernel, RBF | Laplacian) and is_binary(X):
        nothing = np.zeros(X.shape[0], dtype=np.uint8)
        return BinarySums(X, kernel, LabelCode(2, np.ones(2)), nothing).block(Z, dtype)
    return kernel.block(X, Z, dtype)


def not_positive(symptom: str) -> ValueError:
    """The error for a kernel that is no kernel."""
    return ValueError(
        f"the kernel is not positive semidefinite on this data: {symptom}; use a positive "
        'semidefinite kernel, such as kernel="rbf"'
    )
