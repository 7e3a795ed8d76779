"""Which atoms must be read: those that may be proposed, or be the best, as far as bounds tell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.held import BoundedAtoms
from atomcast.loop.replica import Replica
from atomcast.messages.proposals import TIE, Request

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


def scores_that_count(
    atoms: BoundedAtoms, replica: Replica, request: Request, known: Positions
) -> tuple[Floats, int] | None:
    """Scores that lead to the same proposals and the same gap as those of all atoms would.

    They are exact wherever an atom may be proposed, may be the best or is known. What stands for
    the others is so small that they are not, whatever their score is within its bounds.

    Parameters
    ----------
    atoms : BoundedAtoms
        Those of one node.
    replica : Replica
        Its domain must be `steady`.
    request : Request
    known : array of shape (k,)
        Positions of the atoms that were broadcast, which partial sums are about.

    Returns
    -------
    tuple (array of shape (n,), int), or None where it is quicker to find all scores
        The scores, and how many atoms were left unread.
    """
    bounds = atoms.bounds(replica)
    if bounds is None:
        return None
    scores, off = bounds
    merit = replica.domain.merit(scores)
    most, least = merit + off, merit - off
    open_to = most >= _below(float(least.max()))
    level, count = request.threshold, max(request.count, request.candidates)
    if not request.known_too:
        least[known] = -np.inf
    if len(least) > count:
        level = max(level, _below(float(np.partition(least, -count)[-count])))
    open_to |= most >= level
    open_to[known] = True
    columns = np.flatnonzero(open_to)
    exact = atoms.read(replica, columns)
    if exact is None:
        return None
    scores[columns] = exact
    return scores, len(scores) - len(columns)


def _below(merit: float) -> float:
    """A merit that does not tie with this one."""
    return merit - 4 * TIE * abs(merit)
