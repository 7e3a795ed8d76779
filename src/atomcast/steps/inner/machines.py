"""The best weights of several kernel machines over the points that they share.

Machines are independent of each other, and small: two classes of many have few points. Greedy
coordinate descent then takes a few steps a point, each of which costs a row of the kernel matrix.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import run_all
from atomcast.known.active_set import ActiveSet
from atomcast.known.kernels.machine_set import MachineActiveSet

Floats = NDArray[np.float64]

#: Steps after which rounding must be what is left of a machine's gap.
MOST_STEPS = 10_000_000
#: The relative gap to which the first points are fitted.
FIRST = 0.05


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
            for m in range(active.machines.count)
        ])  # fmt: skip
        active.install(weights, products)


def _improve(
    active: MachineActiveSet, m: int, tolerance: float, weights: Floats, products: Floats
) -> None:
    """Improve the weights of one machine in place, scaled to a mean margin of one."""
    from atomcast.steps.inner._greedy import descend

    part = active.part(m)
    beta, margins = weights[part.at], products[part.at]
    if not len(beta) or _gap(beta, margins) <= tolerance:
        return
    matrix = active.matrix(part)
    descend(matrix, part.side, beta, margins, tolerance, MOST_STEPS)
    beta *= beta.sum() / float(beta @ margins)
    weights[part.at], products[part.at] = beta, part.products(matrix, beta)


def _gap(beta: Floats, margins: Floats) -> float:
    """The relative duality gap of a machine within the known points."""
    square = float(beta @ margins)
    return 2.0 * (1.0 - float(margins.min()) * float(beta.sum()) / square) if square else np.inf
