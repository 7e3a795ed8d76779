"""The best weights of several kernel machines over the points that they share.

Machines are independent of each other, and small: two classes of many have few points. Greedy
coordinate descent then takes a few steps a point, each of which costs a row of the kernel matrix.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import run_all
from atomcast.known.active_set import LEAST_UNIT, ActiveSet
from atomcast.known.kernels.machine_set import MachineActiveSet
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.rows import Rows
from atomcast.steps.inner.low_rank import (
    RANKS,
    SMALL,
    PivotedFactor,
    descend_by_rank,
    relative_gap,
)
from atomcast.steps.inner.machine_face import go_to_face
from atomcast.steps.inner.machine_pivots import machine_weights
from atomcast.steps.inner.projected_newton import ProjectedNewton
from atomcast.steps.inner.refining import refine

Floats = NDArray[np.float64]

#: Machines of so few points, by the sum of their cubes, are solved face by face.
EASY = 300**3
#: So many steps a point are enough, or rounding is what is left of a machine's gap.
STEPS = 100
#: The relative gap to which the first points are fitted, if there are others.
FIRST_GAP = 0.2
#: On a face, margins may be off by this share of the gap asked for.
SHARE = 0.1
#: Up to so many points are never divided, nor are they where more than this share is likely to
#: matter: those that fall short by no less than minus this share of what the worst one does.
FEW, MOST, SLACK = 512, 0.6, 0.5
#: They are divided once the gap is no larger than this: before, it is hard to tell which matter.
SOON = 0.5
#: Rank r is looked for after r^2 steps divided by this.
STEPS_FOR = 4
#: Descent on some points ends where the gap has fallen to this share: then others matter.
FALL = 0.03


class GreedyDescent:
    """The same for one machine over all points that are known.

    Parameters
    ----------
    otherwise : ProjectedNewton
        For points whose rows do not fit, if others are slow to compute, or errors are dear.
    """

    def __init__(self, otherwise: ProjectedNewton) -> None:
        self._otherwise = otherwise

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known points."""
        assert isinstance(active, KernelActiveSet)
        aim, factor = relative(active, tolerance), None

        def improve() -> float:
            nonlocal factor
            rows = active.gram.all_rows
            if rows is None:
                return self._otherwise.improve(active, aim)
            factor = _improve_alone(active, rows, aim, factor)
            return aim

        refine(active, improve)


class MachineSolver:
    """The inner solver of the corrective step for machines that share their points."""

    def __init__(self) -> None:
        #: Whether all points there are came at once: few are then solved face by face.
        self.at_once = False

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known points."""
        assert isinstance(active, MachineActiveSet)
        aim = min(relative(active, tolerance), FIRST_GAP)
        if not (self.at_once and _solve_faces(active, aim)):
            refine(active, partial(_improve_all, active, aim))


def relative(active: KernelActiveSet, tolerance: float) -> float:
    """A tolerance as a share of the objective, which is the least there is before the first."""
    value = active.value()
    return tolerance / value if value > 0 else min(tolerance / LEAST_UNIT, FIRST_GAP)


def _improve_alone(
    active: KernelActiveSet, rows: Rows, aim: float, factor: PivotedFactor | None
) -> PivotedFactor | None:
    """Improve the weights of the only machine, by a factor of its matrix if one is known."""
    # In units of the margin, where the objective is the inverse of the sum.
    value = active.value() or 1.0
    beta, margins = (part / value for part in (active.weights, active.image_products))
    side = np.ones(len(beta))
    own = factor is not None and factor.rows.matrix is rows.matrix
    if not (own and factor and descend_by_rank(factor, side, beta, margins, aim)):
        factor = descend(rows, side, beta, margins, aim)
    total = float(beta.sum())
    active.install(beta / total, margins / total)
    return factor


def _solve_faces(active: MachineActiveSet, aim: float) -> bool:
    """Set the best weights of all machines face by face, if that is easy; whether it was.

    Descent takes less time, but for the first time, when it waits seconds for a compiler.
    """
    parts = [active.part(m) for m in range(active.machines.count)]
    whole = active.gram.matrix if active.gram.kept and active.precise else None
    if whole is None or sum(len(part.at) ** 3 for part in parts) > EASY:
        return False
    weights, products = active.weights.copy(), active.image_products.copy()
    for part in (part for part in parts if len(part.at)):
        matrix = whole.take(part.points, 0).take(part.points, 1)
        matrix *= part.side
        matrix *= part.side[:, None]
        found = machine_weights(matrix, 0.4 * aim)
        if found is None:
            return False
        weights[part.at], products[part.at] = found
    active.install(weights, products)
    return True


def _improve_all(active: MachineActiveSet, aim: float) -> float:
    """Improve the weights of the machines whose gaps are above the aim, which is returned."""
    weights, products = active.weights.copy(), active.image_products.copy()
    run_all([
        partial(_improve, active, m, aim, weights, products)
        for m in np.flatnonzero(active.gaps() > aim).tolist()
    ])  # fmt: skip
    active.install(weights, products)
    return aim


def _improve(
    active: MachineActiveSet, m: int, tolerance: float, weights: Floats, products: Floats
) -> None:
    """Improve the weights of one machine in place, scaled to a mean margin of one."""
    part = active.part(m)
    if not len(part.at):
        return
    beta, margins = weights[part.at], products[part.at]
    descend(active.rows(part), part.side, beta, margins, tolerance)
    scale = beta.sum() / float(beta @ margins)
    weights[part.at], products[part.at] = scale * beta, scale * margins


def descend(
    rows: Rows, side: Floats, beta: Floats, margins: Floats, tolerance: float
) -> PivotedFactor | None:
    """Improve weights and their margins, K~ beta, in place, until the relative gap is small.

    Of many points, most will never carry weight: once the gap is not large any more, descent goes
    on with those that do and those that violate optimality, or nearly so, in rows that are shorter.
    All margins tell whether that was enough. K~ is a kernel matrix with signs, side_i side_j
    matrix_ij. Returns its factor if it is of low rank.
    """
    left, count, all_at_once = STEPS * len(beta), len(beta), len(beta) < FEW
    aim = tolerance if all_at_once else max(SOON, tolerance)
    if not all_at_once and rows.ridge is not None:
        taken, factor = _try_ranks(rows, side, beta, margins, aim)
        left -= taken
        if factor and descend_by_rank(factor, side, beta, margins, tolerance):
            return factor
    left -= _descend_on(rows, side, beta, margins, aim, left)
    while left > 0 and (gap := relative_gap(beta, margins)) > tolerance:
        short = 1.0 - margins
        likely = (beta > 0.0) | (short > -SLACK * max(float(short.max()), tolerance))
        some = np.flatnonzero(likely)
        if all_at_once or len(some) > MOST * count:
            left -= max(_descend_on(rows, side, beta, margins, tolerance, left), count)
            continue
        part, own, old = side[some], beta[some], beta.copy()
        aim = max(0.9 * tolerance, FALL * gap)
        taken = _descend_on(rows.at(some), part, own, margins[some], aim, left)
        left -= max(taken, count)
        beta[some] = own
        margins += side * rows.combined(side * (beta - old))
    return None


def _try_ranks(
    rows: Rows, side: Floats, beta: Floats, margins: Floats, aim: float
) -> tuple[int, PivotedFactor | None]:
    """Descend to a first gap; where that takes long, see whether the matrix is of low rank.

    The more steps were taken, the larger a rank is worth looking for. Returns the number of steps,
    and the factor if it is found.
    """
    from atomcast.steps.inner._greedy import greedy_steps

    steps, factor = 0, PivotedFactor(rows)
    for rank in (rank for rank in RANKS if SMALL * rank <= len(beta)):
        most = rank**2 // STEPS_FOR
        taken, enough = greedy_steps(*rows.parts, side, beta, margins, aim, most)
        steps += taken
        if not enough and taken < most:
            go_to_face(rows, side, beta, margins, SHARE * aim)
        if taken < most:
            break
        if factor.reaches(rank):
            return steps, factor
    return steps, None


def _descend_on(
    rows: Rows, side: Floats, beta: Floats, margins: Floats, tolerance: float, most: int
) -> int:
    """The same on all points of the rows; returns the number of steps.

    Once coordinate descent has taken as long as a Newton step on the weights that are not zero
    would, such a step is taken: where margin errors cost much, a few of these save thousands of
    steps.
    """
    from atomcast.steps.inner._greedy import greedy_steps

    left = most
    while left > 0:
        taken, enough = greedy_steps(*rows.parts, side, beta, margins, tolerance, left)
        left -= taken
        if enough:
            break
        go_to_face(rows, side, beta, margins, SHARE * tolerance)
    return most - left
