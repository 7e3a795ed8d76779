"""The best weights of several kernel machines over the points that they share.

Machines are independent of each other, and small: two classes of many have few points. Greedy
coordinate descent then takes a few steps a point, each of which costs a row of the kernel matrix.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from atomcast._threads import run_all
from atomcast.known.active_set import ActiveSet
from atomcast.known.kernels.machine_set import MachineActiveSet
from atomcast.known.kernels.point_set import KernelActiveSet

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: So many steps a point are enough, or rounding is what is left of a machine's gap.
STEPS = 100
#: The relative gap to which the first points are fitted.
FIRST = 0.2
#: On a face, margins may be off by this share of the gap asked for, or after so many corrections.
SHARE, CORRECTIONS = 0.1, 30


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
        _go_to_face(matrix, side, beta, margins, SHARE * tolerance)


def _go_to_face(
    matrix: NDArray[Any], side: Floats, beta: Floats, margins: Floats, enough: float
) -> None:
    """Go to the best weights on a face, on which those at zero, or that would fall below, stay.

    On the face, no margin is off by more than is `enough`.
    """
    from atomcast.known.kernels._loops import row_products

    def image_of(change: Floats) -> Floats:
        image = np.empty(len(beta))
        row_products(matrix, side * change, image)
        return side * image

    used, bound = np.flatnonzero(beta), np.zeros(len(beta))
    short = 1.0 - margins
    while len(used):
        found = _solved(matrix, side, used, short[used], enough)
        if found is None:
            return
        kept = beta[used] + found > 0.0
        if kept.all():
            bound[used] = found
            break
        bound[used[~kept]] = -beta[used[~kept]]
        used, short = used[kept], 1.0 - margins - image_of(bound)
    change, image = bound, image_of(bound)
    slope, bend = float(change @ (1.0 - margins)), float(change @ image)
    length = min(1.0, slope / bend) if slope > 0.0 else 0.0
    np.maximum(beta + length * change, 0.0, out=beta)
    margins += length * image


def _solved(
    matrix: NDArray[Any], side: Floats, used: Positions, short: Floats, enough: float
) -> Floats | None:
    """The change of some weights by which none of their margins falls short any more.

    A factor in the precision of the matrix, and conjugate gradients that make up for it: where
    margin errors cost much, single precision alone leaves much of the way.
    """
    from atomcast.known.kernels._loops import gather_lower, some_products

    own, rows, side = np.zeros((len(used),) * 2, matrix.dtype), used.astype(np.uint64), side[used]
    gather_lower(matrix, rows, 0, own)
    try:  # LAPACK counts by columns: to it, the lower part is the upper one
        factor = linalg.cho_factor(own.T, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:  # by rounding: descent has to do
        return None
    residual, change, whole = side * short, np.zeros(len(used)), np.zeros(len(matrix))
    direction, strength, product = np.zeros(len(used)), np.inf, np.empty(len(used))
    for _ in range(CORRECTIONS):
        towards = linalg.cho_solve(factor, residual.astype(own.dtype), check_finite=False)
        before, strength = strength, float(residual @ towards)
        if not strength > 0.0:
            break
        direction = towards + strength / before * direction
        whole[used] = direction
        some_products(matrix, rows, whole[: used[-1] + 1], product)
        length = strength / float(direction @ product)
        change += length * direction
        residual -= length * product
        if np.abs(residual).max() <= enough:
            break
    return side * change
