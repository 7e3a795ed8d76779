"""The best weights of several kernel machines over the points that they share.

Machines are independent of each other, and small: two classes of many have few points. Greedy
coordinate descent then takes a few steps a point, each of which costs a row of the kernel matrix.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import run_all
from atomcast.known.active_set import ActiveSet
from atomcast.known.kernels.machine_set import MachineActiveSet
from atomcast.known.kernels.point_set import KernelActiveSet

Floats = NDArray[np.float64]

#: So many steps a point are enough, or rounding is what is left of a machine's gap.
STEPS = 100
#: The relative gap to which the first points are fitted.
FIRST = 0.2


class GreedyDescent:
    """The same for one machine over all points that are known."""

    def __init__(self) -> None:
        self._buffer: NDArray[Any] = np.empty((0, 0))
        self._count = 0

    def fits(self, active: ActiveSet, most: int) -> bool:
        """Whether there are at most so many points, and their square matrix is in the budget."""
        assert isinstance(active, KernelActiveSet)
        return len(active) <= most and 8 * len(active) ** 2 <= active.storage.cache_bytes

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known points."""
        from atomcast.steps.inner._greedy import descend

        assert isinstance(active, KernelActiveSet)
        value = active.value()
        relative = tolerance / value if value > 0 else FIRST
        # In units of the margin, where the objective is the inverse of the sum.
        beta, margins = (part / (value or 1.0) for part in (active.weights, active.image_products))
        matrix, sides = self._matrix(active), np.ones(len(beta))
        descend(matrix, sides, beta, margins, relative, STEPS * len(beta))
        total = float(beta.sum())
        active.install(beta / total, margins / total)

    def _matrix(self, active: KernelActiveSet) -> NDArray[Any]:
        """The augmented kernel between all known points, which only grows."""
        size, count = len(active), self._count
        if size > len(self._buffer):
            larger = np.empty((max(size, 5 * len(self._buffer) // 4),) * 2, active.storage.dtype)
            larger[:count, :count] = self._buffer[:count, :count]
            self._buffer = larger
        matrix, self._count = self._buffer[:size, :size], size
        active.gram.fill_square(np.arange(size), count, matrix)
        return matrix


class MachineSolver:
    """The inner solver of the corrective step for machines that share their points."""

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known points."""
        assert isinstance(active, MachineActiveSet)
        value = active.value()
        relative = min(tolerance / value, FIRST) if value > 0 else FIRST
        weights, products = active.weights.copy(), active.image_products.copy()
        run_all([
            partial(_improve, active, m, relative, weights, products)
            for m in np.flatnonzero(active.gaps() > relative).tolist()
        ])  # fmt: skip
        active.install(weights, products)


def _improve(
    active: MachineActiveSet, m: int, tolerance: float, weights: Floats, products: Floats
) -> None:
    """Improve the weights of one machine in place, scaled to a mean margin of one."""
    from atomcast.steps.inner._greedy import descend

    part = active.part(m)
    if not len(part.at):
        return
    beta, margins = weights[part.at], products[part.at]
    descend(active.matrix(part), part.side, beta, margins, tolerance, STEPS * len(beta))
    scale = beta.sum() / float(beta @ margins)
    weights[part.at], products[part.at] = scale * beta, scale * margins
