"""Weights of kernel machines whose gap is small in double precision, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from atomcast.known.kernels.point_set import KernelActiveSet

#: A gap may be larger than it should by this share.
SLACK = 0.1
#: How often weights are improved with margins that were corrected, before kernel values are.
REFINEMENTS = 4
#: Each time, the gap should fall to this share.
FALL = 0.5


def refine(active: KernelActiveSet, improve: Callable[[], float]) -> None:
    """Improve weights until their gap within the known points is small, and truly so.

    Where rounding of kernel values shows in the gap, products are corrected and weights improved
    from there, as iterative refinement does for linear equations. Where that is not enough, kernel
    values are computed in double precision if these fit in memory; else the gap stays as it is.

    Parameters
    ----------
    active : KernelActiveSet
    improve : function
        Installs better weights, and returns the relative gap that it tried for.
    """
    last = np.inf
    for _ in range(1 + REFINEMENTS):
        enough = (1.0 + SLACK) * improve()
        rounded, gap = active.correct(enough), active.known_gap()
        if gap <= enough:
            return
        if not rounded or gap > FALL * last:  # improving is what rounding spoils
            break
        last = gap
    if not active.precise and active.sharpen():
        # Weights that rounding has led astray are no good start.
        active.install(np.zeros(len(active)), np.zeros(len(active)))
        improve()
