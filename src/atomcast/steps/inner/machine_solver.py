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
from atomcast.steps.inner.machine_face import go_to_face

Floats = NDArray[np.float64]

#: So many steps a point are enough, or rounding is what is left of a machine's gap.
STEPS = 100
#: The relative gap to which the first points are fitted.
FIRST = 0.2
#: On a face, margins may be off by this share of the gap asked for.
SHARE = 0.1


class GreedyDescent:
    """The same for one machine over all points that are known."""

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known points."""
        assert isinstance(active, KernelActiveSet)
        assert active.gram.matrix is not None
        value = active.value()
        relative = tolerance / value if value > 0 else FIRST
        # In units of the margin, where the objective is the inverse of the sum.
        beta, margins = (part / (value or 1.0) for part in (active.weights, active.image_products))
        descend(active.gram.matrix, np.ones(len(beta)), beta, margins, relative)
        total = float(beta.sum())
        active.install(beta / total, margins / total)


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
    part = active.part(m)
    if not len(part.at):
        return
    beta, margins = weights[part.at], products[part.at]
    descend(active.matrix(part), part.side, beta, margins, tolerance)
    scale = beta.sum() / float(beta @ margins)
    weights[part.at], products[part.at] = scale * beta, scale * margins


def descend(
    matrix: NDArray[Any], side: Floats, beta: Floats, margins: Floats, tolerance: float
) -> None:
    """Improve weights and their margins, K~ beta, in place, until the relative gap is small.

    Once coordinate descent has taken as long as a Newton step on the weights that are not zero
    would, such a step is taken: where margin errors cost much, a few of these save thousands of
    steps. K~ is a kernel matrix with signs, side_i side_j matrix_ij, or the first part of one.
    """
    from atomcast.steps.inner._greedy import greedy_steps

    left = STEPS * len(beta)
    while left > 0:
        taken, enough = greedy_steps(matrix, side, beta, margins, tolerance, left)
        if enough:
            return
        left -= taken
        go_to_face(matrix, side, beta, margins, SHARE * tolerance)
