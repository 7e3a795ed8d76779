"""Minimise alpha' K~ alpha over the simplex when there are many known points.

A decomposition method on two levels: a working set of the points with the lowest and the highest
slopes is solved by sequential minimal optimisation on a small matrix that stays in cache, and only
then are the products K~ alpha of all points brought up to date, by one pass over the rows of the
working set. Where half of all points carry weight, this needs a tenth of the memory traffic of
pairs chosen from all points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.active_set import ActiveSet
from atomcast.kernels.active_set import KernelActiveSet

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Points in a working set.
WORKING_SET = 512
#: A working set is solved until its gap is this share of what it was.
INNER_SHARE = 0.1


class Decomposition:
    """The inner solver of the corrective step for large sets of kernel atoms."""

    def __init__(self, working_set: int = WORKING_SET) -> None:
        self.working_set = working_set
        self.passes = 0

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put weights over all known atoms into the active set, within `tolerance` of the best.

        The tolerance is a duality gap within the known atoms.
        """
        assert isinstance(active, KernelActiveSet)
        weights, products = active.weights.copy(), active.image_products.copy()
        if not np.any(weights):
            weights[0], products = 1.0, active.gram.rows(np.arange(1))[0].astype(np.float64)
        least = np.inf
        stalled = 0
        for _ in range(100_000):
            value = float(weights @ products)
            gap = 2.0 * (value - float(products.min()))
            if gap <= tolerance or stalled == 50:
                break
            self._improve(active, weights, products, 0.5 * tolerance)
            # Rounding can leave nothing to gain although the gap is above the tolerance.
            stalled = 0 if value < least else stalled + 1
            least = min(least, value)
        weights /= weights.sum()
        active.install(weights, products)

    def _improve(
        self, active: KernelActiveSet, weights: Floats, products: Floats, tolerance: float
    ) -> None:
        """Solve for one working set, and bring all products up to date."""
        from atomcast.kernels._pair_loops import add_rows, solve_pairs, square_of

        self.passes += 1
        chosen = self._working_set(weights, products)
        matrix = active.gram.matrix
        if matrix is None:
            rows = active.gram.rows(chosen)
            small = np.ascontiguousarray(rows[:, chosen], dtype=np.float64)
        else:
            small = np.empty((len(chosen), len(chosen)))
            square_of(matrix, chosen, small)
        new, slopes = weights[chosen], products[chosen]
        carried = slopes[new > 0]
        spread = float(carried.max() - slopes.min())
        solve_pairs(
            small, new, slopes, max(INNER_SHARE * spread, 0.5 * tolerance), 20 * len(chosen)
        )
        change = new - weights[chosen]
        moved = np.flatnonzero(change)
        weights[chosen] = new
        if matrix is None:
            products += change[moved] @ rows[moved].astype(np.float64, copy=False)
        else:
            add_rows(matrix, chosen[moved], change[moved], products)

    def _working_set(self, weights: Floats, products: Floats) -> Positions:
        """Half of it the lowest slopes, half the highest of those that carry weight."""
        half = self.working_set // 2
        if len(weights) <= self.working_set:
            return np.arange(len(weights))
        low = np.argpartition(products, half)[:half]
        carried = np.flatnonzero(weights)
        if len(carried) > half:
            carried = carried[np.argpartition(-products[carried], half)[:half]]
        return np.union1d(low, carried)
