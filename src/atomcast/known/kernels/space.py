"""Distances between examples in the augmented kernel space, <label, label> (k + 1) + 1/C.

Within a class they grow with the distance of the points if the kernel does, and between classes
they fall: of many examples of a class, only the nearest and the farthest point count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.known.kernels.functions import RBF, Kernel, Laplacian
from atomcast.known.kernels.labels import Codes, LabelCode
from atomcast.known.kernels.points import Points, dense_rows
from atomcast.known.kernels.sums import fill_bit_block

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Rounding to single precision, of half a unit in the last place.
SINGLE = 6e-8
#: Twice what a product may lose below the smallest number of single precision, and more.
LOST = 2.0**-147


@dataclass(frozen=True)
class KernelSpace:
    """Examples at a distance from each other.

    Parameters
    ----------
    points : array or CSR matrix of shape (n, d), or bits of shape (n, words)
    codes : int array of shape (n,)
        Their classes.
    kernel : Kernel
    code : LabelCode
    lengths : array of shape (n,)
        Their squared lengths in that space.
    how : str
        "bits" if the points are zeros and ones, packed; "compiled" if there are so many that
        compiling pays; else "plain".
    """

    points: Points
    codes: Codes
    kernel: Kernel
    code: LabelCode
    lengths: Floats
    how: str = "plain"

    @property
    def width(self) -> int:
        """About how many numbers a point is."""
        if sparse.issparse(self.points):
            return -(-self.points.nnz // max(self.points.shape[0], 1))
        return int(self.points.shape[1])

    def take(self, rows: Rows) -> KernelSpace:
        """Some of the examples."""
        points, codes, lengths = self.points[rows], self.codes[rows], self.lengths[rows]
        return KernelSpace(points, codes, self.kernel, self.code, lengths, self.how)

    def nearest(self, others: KernelSpace) -> Floats:
        """How far each example is from the nearest of some others, shape (n,)."""
        if len(others.codes) == 1:
            return _root(self._squares(others, int(others.codes[0])))
        square = np.full(len(self.codes), np.inf)
        for rows, mine in self._by_class.values():
            code = int(mine.codes[0])
            theirs = {code: others._by_class[code]} if code in others._by_class else {}
            if not (theirs and self._own_class_first):
                theirs = others._by_class
            parts = [mine._squares(part, one_class) for one_class, (_, part) in theirs.items()]
            square[rows] = np.min(parts, axis=0)
        return _root(square)

    @cached_property
    def _by_class(self) -> dict[int, tuple[Rows, KernelSpace]]:
        """The examples of each class: which they are, and themselves."""
        split = {}
        for code in np.unique(self.codes).tolist():
            rows = np.flatnonzero(self.codes == code)
            split[code] = rows, self if len(rows) == len(self.codes) else self.take(rows)
        return split

    @property
    def _own_class_first(self) -> bool:
        """Whether any example of one's own class is nearer than all others, as k is in [0, 1]."""
        # At a squared distance of D - 2 or less, D being the squared lengths; others at D or more.
        alike = np.ptp(1.0 / self.code.costs) <= 2.0 and not self.code.weighted
        return isinstance(self.kernel, RBF | Laplacian) and bool(alike)

    def _squares(self, others: KernelSpace, one_class: int) -> Floats:
        """Squared distances from the nearest of some others, all of one class."""
        label = self.code.table[self.codes, one_class]
        if isinstance(self.kernel, RBF | Laplacian) and not sparse.issparse(self.points):
            # All are equally long, and k falls with the distance of the points.
            alike = np.exp(-self.kernel.gamma * self._extremes(others, label < 0))
            return self.lengths + others.lengths[0] - 2.0 * label * (alike + 1.0)
        block = self.kernel.block(self.points, others.points)
        block = others.lengths - 2.0 * label[:, None] * (block + 1.0)
        return self.lengths + block.min(axis=1)

    def _extremes(self, others: KernelSpace, far: NDArray[np.bool_]) -> Floats:
        """The distance of the nearest or farthest point, squared or l1 as the kernel has it."""
        differing: NDArray[Any]
        if self.how == "compiled":
            return self._compiled_extremes(others, far)
        if self.how == "bits":
            differing = np.empty((len(self.points), len(others.points)), dtype=np.float32)
            steps = np.arange(64 * self.points.shape[1] + 1)
            fill_bit_block(self.points, others.points, steps[None], differing)
        else:
            from scipy.spatial.distance import cdist

            metric = "sqeuclidean" if isinstance(self.kernel, RBF) else "cityblock"
            differing = cdist(dense_rows(self.points), dense_rows(others.points), metric)
        if differing.shape[1] == 1:
            return differing[:, 0].astype(np.float64)
        return np.where(far, differing.max(axis=1), differing.min(axis=1)).astype(np.float64)

    def _compiled_extremes(self, others: KernelSpace, far: NDArray[np.bool_]) -> Floats:
        from atomcast._nearest import square_distances, square_extremes, sum_extremes

        points, theirs, extreme = self.points, others.points, np.where(far, 0.0, np.inf)
        if isinstance(self.kernel, Laplacian):
            least, most = np.full(len(points), np.inf), np.zeros(len(points))
            sum_extremes(points, theirs, least, most)
            return np.where(far, most, least)
        if len(theirs) == 1:
            return np.asarray(square_distances(points, theirs[0]))
        (x, x_norms), (z, z_norms) = self._short, others._short
        # A sum of d products in single precision, of factors that have been rounded to it, or
        # that have been lost because they are below what it can hold.
        d = points.shape[1]
        slack = (self._unit**2, SINGLE * (d + 8), d * LOST)
        square_extremes(x @ z.T, points, theirs, x_norms, z_norms, slack, far, extreme)
        return extreme

    @property
    def _unit(self) -> float:
        """About the inverse of the kernel's width, and a power of two, so that it rounds nothing.

        Points that are neither equal nor far apart for the kernel are then of ordinary size.
        """
        assert isinstance(self.kernel, RBF)
        return float(2.0 ** np.floor(np.log2(self.kernel.gamma) / 2.0))

    @cached_property
    def _short(self) -> tuple[NDArray[np.float32], Floats]:
        """The points in single precision, around a common centre, and their squared lengths.

        Both are in units of the kernel.
        """
        centre = getattr(self.kernel, "centre", None)
        with np.errstate(over="ignore", invalid="ignore"):  # no numbers: looked at closely
            rows = (dense_rows(self.points) - (0.0 if centre is None else centre)) * self._unit
            norms = np.einsum("ij,ij->i", rows, rows)
            return rows.astype(np.float32), norms


def _root(square: Floats) -> Floats:
    return np.sqrt(np.maximum(square, 0.0))
