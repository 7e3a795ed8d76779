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
FIRST = 0.2


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
    descend(active.matrix(part), part.side, beta, margins, tolerance, MOST_STEPS)
    scale = beta.sum() / float(beta @ margins)
    weights[part.at], products[part.at] = scale * beta, scale * margins
