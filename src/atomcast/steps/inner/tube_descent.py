"""The best weights of a kernel regression over many points that are known.

Where errors are cheap, coordinate descent on two weights at a time takes a few steps a point, each
of which costs two rows of the kernel matrix; where they are dear, it leads Newton's method to the
piece of the objective on which the minimum is, or close to it.
"""

from __future__ import annotations

import math

import numpy as np

from atomcast.known.active_set import LEAST_UNIT, ActiveSet
from atomcast.known.kernels.rows import Rows
from atomcast.known.kernels.target_set import TargetActiveSet
from atomcast.steps.inner.low_rank import RANKS, SMALL
from atomcast.steps.inner.projected_newton import LowRank
from atomcast.steps.inner.tube_newton import Inverses, Memory, TubeNewton
from atomcast.steps.inner.tube_pivots import Tube, tube_weights

#: Weights are at least this exact, as a share of the objective.
ROUGH = 1e-2
#: Up to so many points, compiled code is not worth its while.
FEW = 500
#: A gap may be larger than it should by this share.
SLACK = 0.1
#: If weights can make up for rounding with this share of what is allowed, they should.
LEFT = 0.5
#: So many steps a point are enough: rounding may be what is left. A rank r is looked for after r^2
#: steps divided by this.
STEPS, STEPS_FOR = 100, 8


class TubeDescent:
    """The inner solver of the corrective step for regression.

    Parameters
    ----------
    count : float
        How many points there are in all: each may contribute such a part of the tolerance.
    memory : mapping
        What the solver of the same run, in another process, had gathered.
    """

    def __init__(self, count: float, memory: Memory) -> None:
        self._count = count
        self._low_rank = LowRank(memory)

    def memory(self) -> Memory:
        """What another process needs to go on in the same way."""
        return self._low_rank.memory()

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Set the best weights, to within a gap of `tolerance` over the known points."""
        assert isinstance(active, TargetActiveSet)
        # The bound on the gap may be so large that what it allows would spoil the weights.
        aim = min(tolerance / (abs(active.value()) or LEAST_UNIT), ROUGH)
        self._improve(active, aim)
        if self._is_enough(active, aim):
            return
        # What rounding takes away, weights have to make up for; if that is much, better values do.
        left = self._left(active, aim)
        if left > LEFT:
            self._improve(active, left**2 * aim)
        if not self._is_enough(active, aim) and active.sharpen():
            self._improve(active, aim)

    def _is_enough(self, active: TargetActiveSet, aim: float) -> bool:
        """Whether the gap within the known points is small, also if rounding is as bad as it may.

        That is measured where it could matter.
        """

        def gap() -> float:
            return self._count * float(np.abs(active.scores()).max())

        most = (1.0 + SLACK) * aim * abs(active.value())
        rounded = active.slack is not None
        if rounded and gap() > most:
            active.measure_rounding()
        return not rounded or gap() <= most

    def _left(self, active: TargetActiveSet, aim: float) -> float:
        """The share of what slopes may be off by that rounding leaves."""
        most = aim * abs(active.value()) / self._count
        used = 0.0 if active.slack is None else float((active.costs * active.slack**2).max())
        return 1.0 - math.sqrt(0.5 * used / most) if most else 0.0

    def _improve(self, active: TargetActiveSet, aim: float) -> None:
        """Set better weights, to within a share of the objective but for rounding."""
        if len(active) <= FEW and not active.weights.any() and _pivots(active):
            return
        inverses = Inverses(active.gram, self._low_rank)
        rows = None if len(active) <= FEW else active.gram.all_rows
        if rows is None or not self._descend(active, rows, aim, inverses):
            TubeNewton(self._count, inverses).minimise(active, aim)

    def _descend(self, active: TargetActiveSet, rows: Rows, aim: float, inverses: Inverses) -> bool:
        """Set weights by descent; whether they are good enough.

        Where it takes long, and the matrix is of low rank, Newton's method is quick.
        """
        from atomcast.steps.inner._tube_steps import tube_steps

        targets, beta = active.targets, active.weights.copy()
        slope, enough = active.image_products - targets, False
        points = targets, active.costs, float(active.epsilon)
        for rank in (*RANKS, 0):
            if not rank:
                most = STEPS * len(beta)
            elif SMALL * rank <= len(beta):
                most = rank**2 // STEPS_FOR
            else:
                continue
            taken, enough = tube_steps(*rows.parts, *points, beta, slope, self._count, aim, most)
            if enough or taken < most or inverses.are_low(rank):
                break
        active.install(beta, slope + targets)
        return bool(enough)


def _pivots(active: TargetActiveSet) -> bool:
    """Set the best weights of few points, drawn at random, if that is easy; whether it was."""
    gram, n = active.gram, len(active)
    if not (gram.kept and gram.precise) or gram.matrix is None:
        return False
    tube = Tube(gram.matrix[:n, :n], gram.ridge, active.targets, float(active.epsilon))
    found = tube_weights(tube)
    if found is None:
        return False
    active.install(found[0], found[1])
    return True
