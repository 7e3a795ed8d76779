"""Foresight where the curvature changes: a Newton step for each look at all atoms.

How far a step goes is a matter of the curvature, not of the atoms that it is about. So it is no use
to find the best weights of those that have joined before others join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import FEW, ExplicitActiveSet
from atomcast.steps.batches import FreeBatches
from atomcast.steps.foresight import View
from atomcast.steps.inner.newton import STALLED, Newton
from atomcast.steps.inner.penalised_newton import penalised_weights
from atomcast.steps.step import OwnAtoms

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: As many atoms join as are in use, but at least so many, and no more than these in all.
LEAST, MANY = 16, 1024
#: Nearly all that are known are in use if it is more than this share.
ALL = 0.95
#: So many looks are taken; beside a penalty, until the gap is this share of what is good enough.
LOOKS, SMALL = 50, 0.1
TINY = float(np.finfo(np.float64).tiny)


def foresee_bent(
    replica: Replica, own: OwnAtoms, free: FreeBatches, newton: Newton
) -> float | None:
    """Let atoms join until the gap is small enough, or they are many, or steps no longer go far.

    Returns the gap before, if any has joined.
    """
    view, domain, first, stalled = View(replica, own), replica.domain, None, 0
    active = view.active
    for _ in range(LOOKS):
        if stalled == STALLED or len(active) >= MANY:
            break
        best, target, inner = view.look(), replica.target, active.inner()
        gap = domain.gap(inner, best)
        if not gap > target or active.value() - active.lower_bound <= target:
            break
        used = int(np.count_nonzero(active.weights))
        count = free.size(0, 0.0, gap / replica.unit) if first is None else max(used, LEAST)
        if view.join((target - inner) / domain.scale, min(count, room(len(active), used)), MANY):
            view.agreement(best)  # or what is wrong with them
        if not len(active):
            break  # the gap is above the tolerance by rounding alone
        chosen, slopes = None, view.slopes
        if first is None:
            first, chosen = gap, likely(active, domain.scale, domain.merit(slopes))
        stalled = 0 if newton.improve(active, slopes, stalled > 0, chosen) else stalled + 1
    return first


def foresee_bent_at(replica: Replica, own: OwnAtoms, penalty: float) -> float | None:
    """The same where a unit of the norm of the weights costs so much, instead of being bounded.

    Weights may then be longer than the domain lets them be. Returns the gap of the penalised form
    that is left, if it is small; None where there are faster ways to find the weights.
    """
    view, tol = View(replica, own), replica.tol
    active = view.active
    for _ in range(LOOKS):
        best, norm = view.look(), float(np.abs(active.weights).sum())
        enough = SMALL * tol.gap(active.value() + penalty * norm)
        gap = active.inner() + norm * penalty
        level = penalty + (enough / norm if norm else 0.0)
        if best <= level and gap <= enough:
            return gap
        if len(active) >= MANY:
            return None
        used = int(np.count_nonzero(active.weights))
        count = min(max(used, 2 * LEAST), room(len(active), used))
        if view.join(level, count, MANY):
            view.agreement(best)  # or what is wrong with them
        relative = 0.0 if tol.absolute else tol.value
        weights = penalised_weights(replica.domain, active, penalty, relative, steps=1)
        if weights is None:
            return None
        active.set_weights(weights)
    return None


def room(known: int, used: int) -> int:
    """How many may join those that are known.

    Of more than a few, the best weights may take a compiler: not before these are not enough,
    unless so many of the known ones are in use that they will hardly be.
    """
    return (FEW if used <= ALL * known and known < FEW else MANY) - known


def likely(active: ExplicitActiveSet, scale: float, merit: Floats) -> Positions:
    """Which of the first atoms would be in use if none had to do with another; the best come first.

    Each would take the weight that is best for it alone beside a penalty, the one with which they
    fill a ball of that radius.
    """
    curvature = active.objective.curvature(active.image)
    lengths = active.lengths(np.full(active.objective.d, 0.0) + curvature.diagonal)
    bend = 1.0 / np.maximum(lengths, TINY)
    # With the first k in use, the norm is sum(merit / length) - penalty * sum(1 / length).
    levels = ((merit * bend).cumsum() - scale) / bend.cumsum()
    return (~(merit < levels.max())).nonzero()[0]
