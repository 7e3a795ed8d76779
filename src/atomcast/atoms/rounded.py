"""Columns rounded to a byte an entry: what bounds all scores with an eighth of the reading.

Scoring a large dense matrix takes as long as reading it. But of nearly all atoms it is enough to
know that they are not among the best, and for that a rough copy will do: a column a = u q + e,
where q are whole numbers up to 127 and e is what rounding changes, has a score a . g that differs
from u q . g by at most |e| |g|. Both u and |e| are found once. Those few whose bounds leave it open
are then read as they are, so that nothing depends on the copy but how much is read.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import ranges, run_all, thread_count

Floats = NDArray[np.float64]

#: So many columns of a matrix in row order are turned at a time: few enough to stay in cache.
TILE = 64
#: A product in single precision may be off by this much of the lengths, for each of its terms.
SINGLE = 2.0**-24


class RoundedColumns:
    """The columns of a matrix of shape (d, n), of either order and precision, a byte an entry."""

    def __init__(self, matrix: NDArray[Any]) -> None:
        d, n = matrix.shape
        self._whole = np.empty((n, d), dtype=np.int8)
        self._unit, lost, kept = np.empty(n), np.empty(n), np.empty(n)
        self._parts = ranges(n, thread_count())
        found = (self._whole, self._unit, lost, kept)
        run_all([partial(_round, matrix, found, part) for part in self._parts])
        # Sums of d products in any order, of a vector that is rounded, too; and of this bound.
        self._off = (lost + (d + 4) * SINGLE * kept) * (1.0 + 1e-6)

    def bounds(self, vector: Floats) -> tuple[Floats, Floats]:
        """The product of each column with a vector, and how far it may be off; shape (n,) each."""
        from atomcast.atoms._rounded_loops import products

        size = float(np.linalg.norm(vector))
        if not 1e-150 < size < 1e150:  # squares would be lost
            return np.zeros(len(self._unit)), np.full(len(self._unit), np.inf)
        short = (vector / size).astype(np.float32)
        found = np.empty(len(self._unit), dtype=np.float32)
        run_all([partial(products, self._whole[p], short, found[p]) for p in self._parts])
        return found * (size * self._unit), size * self._off


def _round(matrix: NDArray[Any], found: tuple[NDArray[Any], ...], part: slice) -> None:
    """Round some of the columns."""
    from atomcast.atoms._rounded_loops import round_rows, transpose

    if matrix.flags.f_contiguous:
        round_rows(matrix.T[part], *(array[part] for array in found))
        return
    rows = np.empty((TILE, matrix.shape[0]), dtype=matrix.dtype)
    for start in range(part.start, part.stop, TILE):
        tile = slice(start, min(start + TILE, part.stop))
        turned = rows[: tile.stop - tile.start]
        transpose(matrix[:, tile], turned)
        round_rows(turned, *(array[tile] for array in found))
