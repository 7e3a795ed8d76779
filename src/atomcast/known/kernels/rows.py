"""The part of a kernel matrix that belongs to some points, of which only some rows are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


class Rows:
    """Rows of a matrix at some points, each taken out of it when it is first needed.

    Whoever descends coordinate by coordinate needs few of them, many times, and short.

    Parameters
    ----------
    matrix : array of shape (m, m)
        Symmetric.
    points : array of shape (k,)
        Increasing positions. If they are the first k ones, nothing is taken out.
    """

    def __init__(self, matrix: NDArray[Any], points: Positions) -> None:
        count = len(points)
        self.matrix, self.points = matrix, points.astype(np.uint64)
        self.values, self.place = matrix, np.arange(count + 1)
        if count and points[-1] >= count:
            # What is not filled takes no memory.
            self.values, self.place = np.empty((count, count), matrix.dtype), np.full(count + 1, -1)
            self.place[count] = 0

    def __len__(self) -> int:
        return len(self.points)

    @property
    def parts(self) -> tuple[Any, Any, Any, Any]:
        """What compiled loops take."""
        return self.matrix, self.points, self.values, self.place

    def at(self, some: Positions) -> Rows:
        """The same at some of the points."""
        return Rows(self.matrix, self.points[some].astype(np.int64))

    def places(self, used: Positions) -> NDArray[np.uint64]:
        """Where some rows stand among `values`, taken out if they were not yet."""
        from atomcast.known.kernels._row_loops import fetch

        fetch(*self.parts, used)
        return self.place[used].astype(np.uint64)

    def combined(self, weights: Floats) -> Floats:
        """The sum of all rows times their weights, of which many may be zero, shape (k,)."""
        from atomcast.known.kernels._row_loops import combined

        used, out = np.flatnonzero(weights), np.empty(len(self))
        combined(*self.parts, used, weights[used], out)
        return out
