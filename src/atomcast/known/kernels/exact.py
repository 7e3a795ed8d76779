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

#: So many sums of a kind tell the errors of all: none is likely to be off by more than so many
#: times the largest of theirs.
SAMPLE, TIMES = 16, 4.0
#: Errors of a smaller share of the gap do not show in it; and, where the smallest sums are exact,
#: those of a smaller share in the mean of all do not.
NOTHING, SHARE = 1e-3, 0.1
#: A bound on errors of a smaller share of the gap says all without a look at any.
CLEAR = 0.03


def corrected(
    rough: Floats,
    level: float,
    exact: Callable[[Positions], Floats],
    best: float = np.inf,
    bound: float = np.inf,
    share: float = SHARE,
    first: int = 0,
) -> int:
    """Replace sums by exact ones, in place, where that may change by how much one is below a level.

    Parameters
    ----------
    rough : array of shape (n,)
    level : float
    exact : function
        From increasing positions to their sums.
    best : float
        A sum that is known: others are of interest only below it.
    bound : float
        What no error is likely to exceed.
    share : float
        If errors are a larger share of the gap, all sums are replaced; else the smallest ones.
    first : int
        So many sums were exact once, and are probably less off than those after them.

    Returns
    -------
    int
        How many were replaced.
    """
    least = float(rough.min(initial=np.inf))
    gap = level - min(least, best)
    if not len(rough) or bound <= CLEAR * gap or least - bound > best:
        return 0
    some = np.concatenate([spread(0, first), spread(first, len(rough))])
    slack = TIMES * float(np.abs(exact(some) - rough[some]).max())
    if slack <= NOTHING * gap or least - slack > best:
        return 0
    smallest = np.flatnonzero(rough <= min(least + 2.0 * slack, best + slack))
    at = np.arange(len(rough)) if slack > share * gap else smallest
    rough[at] = exact(at)
    return len(at)


def spread(start: int, stop: int) -> Positions:
    """Some positions, spread over a range."""
    return np.arange(start, stop, max((stop - start) // SAMPLE, 1))
