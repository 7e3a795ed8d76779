"""Sums of kernel values in double precision, where the rounding of those that are kept could show.

Kernel values in single precision are off by little, but weights of hundreds multiply that. A bound
that holds for all points is often ten times too large: where it does not rule rounding out, that is
measured, in a few sums, and those that the gap depends on are taken anew if it is not small.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: So many sums tell the errors of all: none is likely to be off by more than so many times the
#: largest of theirs.
SAMPLE, TIMES = 32, 3.0
#: Errors of a smaller share of the gap do not show in it; and, where the smallest sums are exact,
#: those of a smaller share in their mean do not. Where they are larger than the gap, any sum may
#: be the smallest: then all are exact.
NOTHING, SHARE = 1e-3, 0.1
#: A bound on errors of a smaller share of the gap says all without a look at any.
CLEAR = 0.03


def corrected(
    rough: Floats,
    level: float,
    exact: Callable[[Positions], Floats],
    needed: NDArray[np.bool_] | None = None,
    best: float = np.inf,
    bound: float = np.inf,
) -> bool:
    """Replace sums by exact ones, in place, where that may change by how much one is below a level.

    Parameters
    ----------
    rough : array of shape (n,)
    level : float
    exact : function
        From increasing positions to their sums.
    needed : bool array of shape (n,), optional
        Sums whose mean is the level: where errors are not small, these are to be exact, too.
    best : float
        A sum that is known: others are of interest only below it.
    bound : float
        What no error is likely to exceed.

    Returns
    -------
    bool
        Whether any were replaced.
    """
    least = float(rough.min(initial=np.inf))
    gap = level - min(least, best)
    if not len(rough) or bound <= CLEAR * gap or least - bound > best:
        return False
    needed = np.zeros(len(rough), dtype=bool) if needed is None else needed
    # Those that were needed before are more exact than others.
    slack = TIMES * max(_error(rough, exact, kind) for kind in (needed, ~needed))
    if slack <= NOTHING * gap or least - slack > best:
        return False
    chosen = rough <= min(least + 2.0 * slack, best + slack)
    if slack > SHARE * gap:
        chosen |= needed
    at = np.arange(len(rough)) if slack > gap else np.flatnonzero(chosen)
    rough[at] = exact(at)
    return True


def _error(rough: Floats, exact: Callable[[Positions], Floats], kind: NDArray[np.bool_]) -> float:
    """The largest error of sums of a kind, in a sample of them."""
    at = np.flatnonzero(kind)
    if not len(at):
        return 0.0
    some = at[np.unique(np.linspace(0, len(at) - 1, SAMPLE).astype(np.int64))]
    return float(np.abs(exact(some) - rough[some]).max())
