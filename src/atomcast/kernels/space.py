"""Distances between examples in the augmented kernel space, <label, label> (k + 1) + 1/C.

Within a class they grow with the distance of the points if the kernel does, and between classes
they fall: of many examples of a class, only the nearest and the farthest point count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.kernels.functions import RBF, Kernel, Laplacian
from atomcast.kernels.labels import Codes, LabelCode
from atomcast.kernels.points import Points, dense_rows
from atomcast.kernels.sums import fill_bit_block
from atomcast.kernels.threads import ranges, run_all, thread_count

Floats = NDArray[np.float64]

#: So many differences in all are worth several threads.
MANY = 1 << 22


@dataclass(frozen=True)
class KernelSpace:
    """Examples at a distance from each other.

    Parameters
    ----------
    points : array or CSR matrix of shape (n, d)
    codes : int array of shape (n,)
        Their classes.
    kernel : Kernel
    code : LabelCode
    lengths : array of shape (n,)
        Their squared lengths in that space.
    compiled : bool
        Whether there are so many that compiling pays.
    bits : array of shape (n, words), optional
        Points of zeros and ones, packed.
    """

    points: Points
    codes: Codes
    kernel: Kernel
    code: LabelCode
    lengths: Floats
    compiled: bool = False
    bits: NDArray[np.uint64] | None = None

    @property
    def width(self) -> int:
        """About how many numbers a point is."""
        if self.bits is not None:
            return self.bits.shape[1]
        if sparse.issparse(self.points):
            return -(-self.points.nnz // max(self.points.shape[0], 1))
        return int(self.points.shape[1])

    def take(self, rows: NDArray[np.int64]) -> KernelSpace:
        """Some of the examples."""
        return replace(
            self,
            points=self.points[rows],
            codes=self.codes[rows],
            lengths=self.lengths[rows],
            bits=None if self.bits is None else self.bits[rows],
        )

    def nearest(self, others: KernelSpace) -> Floats:
        """How far each example is from the nearest of some others, shape (n,)."""
        square = np.full(len(self.codes), np.inf)
        for one_class in np.unique(others.codes).tolist():
            of_class = others
            if np.any(others.codes != one_class):
                of_class = others.take(np.flatnonzero(others.codes == one_class))
            np.minimum(square, self._squares(of_class, one_class), out=square)
        return np.sqrt(np.maximum(square, 0.0))

    def _squares(self, others: KernelSpace, one_class: int) -> Floats:
        """Squared distances from the nearest of some others, all of one class."""
        label = self.code.table[self.codes, one_class]
        if isinstance(self.kernel, RBF | Laplacian):  # all are equally long
            least, most = self._extremes(others)
            alike = np.exp(-self.kernel.gamma * np.where(label > 0, least, most))
            return self.lengths + others.lengths[0] - 2.0 * label * (alike + 1.0)
        block = self.kernel.block(self.points, others.points)
        block = others.lengths - 2.0 * label[:, None] * (block + 1.0)
        return self.lengths + block.min(axis=1)

    def _extremes(self, others: KernelSpace) -> tuple[Floats, Floats]:
        """The smallest and largest distance of points, squared or l1 as the kernel has it."""
        if self.bits is not None and others.bits is not None:
            differing = np.empty((len(self.bits), len(others.bits)), dtype=np.float32)
            steps = np.arange(64 * self.bits.shape[1] + 1)
            fill_bit_block(self.bits, others.bits, steps[None], differing)
        elif self.compiled and not sparse.issparse(self.points):
            return self._compiled_extremes(others.points)
        elif sparse.issparse(self.points) and isinstance(self.kernel, RBF):
            differing = square_distances(self.points, others.points)
        else:
            from scipy.spatial.distance import cdist

            metric = "sqeuclidean" if isinstance(self.kernel, RBF) else "cityblock"
            differing = cdist(dense_rows(self.points), dense_rows(others.points), metric)
        if differing.shape[1] == 1:
            return differing[:, 0], differing[:, 0]
        return differing.min(axis=1), differing.max(axis=1)

    def _compiled_extremes(self, others: Any) -> tuple[Floats, Floats]:
        from atomcast._nearest import squares, sums

        compare = squares if isinstance(self.kernel, RBF) else sums
        n = len(self.points)
        least, most = np.full(n, np.inf), np.zeros(n)
        parts = thread_count() if n * others.size >= MANY else 1
        run_all([
            partial(compare, self.points[part], others, least[part], most[part])
            for part in ranges(n, parts)
        ])  # fmt: skip
        return least, most


def square_distances(X: Any, Z: Any) -> Floats:
    """Between the rows of two sparse matrices, shape (n, m)."""
    products = np.asarray(X @ np.ascontiguousarray(dense_rows(Z).T))
    lengths = [np.asarray(each.multiply(each).sum(axis=1)).ravel() for each in (X, Z)]
    products *= -2.0
    products += lengths[0][:, None] + lengths[1]
    return np.maximum(products, 0.0, out=products)
