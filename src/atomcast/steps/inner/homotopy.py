"""Minimisation of a quadratic over known atoms: from face to face, on a way that is known exactly.

The best weights within a ball are piecewise linear in its radius, and in the slopes at which atoms
come in. So from the weights of a smaller ball, or from those that were the best before some atoms
came, a straight line leads to the next face, where an atom comes in or leaves; and so on to the
best weights of today. A face costs a few products with the inverse of its Gram matrix, which is
kept from radius to radius: that is little where few atoms come in or leave, however hard it is to
tell by descent which do.
"""

from __future__ import annotations

import math

import numpy as np

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.gram import Face, Floats

#: The way may cross so many faces for each known atom.
FACES = 4
#: The inverse has to be changed by no more than this share of its rows, or it is made anew.
CHANGED = 0.2
#: A loss that is no more than this share of that without weights is as good as none.
PERFECT = 1e-14
#: So many times sweeps go over columns that have little to do with each other for the gap to be
#: less than half of what it was.
SWEEPS = 2
TINY = 1e-300


def is_near(domain: Domain, active: ExplicitActiveSet, tolerance: float) -> bool:
    """Whether the way from face to face seems to take fewer operations than sweeps would.

    A face takes as many as there are entries in its inverse, and in its columns of the Gram matrix.
    Atoms that violate optimality come in, and the inverse has to be that of the weights at hand.
    Sweeps and steps on faces are the more, the smaller the tolerance is beside the gap, and the
    nearer the columns in use are to be as many as they have entries: the bound is that of conjugate
    gradients for columns which are drawn at random, and half of those that come in stay.

    An inverse that nobody needs again takes longer than a few faces of `block_pivots.py` do.
    """
    assert active.columns is not None
    known = active.kept_products
    if not (known.lasting or active.sweepable):
        return False
    weights, slopes = active.weights, active.scores()
    inner, merit = float(weights @ slopes), domain.merit(slopes)
    level, gap = -inner / domain.scale, domain.gap(inner, float(merit.max()))
    d, stored, used = active.objective.d, active.columns.stored, int(np.count_nonzero(weights))
    violators = (merit > level) & (weights == 0.0)
    coming = min(int(np.count_nonzero(violators)), d)
    size, staying = min(used + coming, d), min(used + coming / 2, d)
    behind = min(used if known.face is None else _changes(known.face, weights), used / 3)
    new = len(active) - known.count
    way = (coming + behind) * size * (size + len(active)) + new * stored
    sweeps = SWEEPS * math.log(max(gap / max(tolerance, TINY), math.e))
    return bool(way * (1.0 - math.sqrt(staying / (d + 1))) ** 1.5 < sweeps * stored)


def _changes(face: Face, weights: Floats) -> int:
    """By how many rows the inverse of a face is not that of the weights in use."""
    common = np.count_nonzero(weights[face.chosen[: face.size]])
    return int(face.size + np.count_nonzero(weights) - 2 * common)


def minimise_by_homotopy(domain: Domain, active: ExplicitActiveSet, tolerance: float) -> bool:
    """Set the best weights, to a gap of `tolerance` over the known atoms, if the way is easy.

    Otherwise, the weights are no worse than before.
    """
    from atomcast.steps.inner._homotopy import follow

    known = active.kept_products
    known.extend(active)
    face = known.face = known.face or Face()
    face.make_room(len(known.buffer))
    perfect = PERFECT * active.objective.value(np.zeros(active.objective.d))
    signed = bool(domain.merit(np.ones(1))[0] > 0.0)
    rank = active.objective.d - (active.objective.curvature(active.image).rank_one is not None)
    before = active.weights.copy(), active.value()
    lost = False
    for attempt in range(2):
        if lost:  # from where the weights were there is no way: there is one from zero
            active.set_weights(np.zeros(len(active)))
        weights, slopes = active.weights.copy(), active.scores()
        used = np.flatnonzero(weights)
        if attempt or _changes(face, weights) > CHANGED * len(used):
            face.set(known.matrix, used)
        size = follow(
            known.buffer, face.inverse, face.chosen, face.size, rank, slopes, weights,
            domain.scale, signed, FACES * len(active),
        )  # fmt: skip
        face.size, lost = max(size, 0), size < 0
        active.set_weights(_within(domain, weights))
        gap = domain.gap(active.inner(), float(domain.merit(active.scores()).max()))
        if gap <= 2.0 * tolerance or active.value() - active.lower_bound <= perfect:
            return True
    if not active.value() <= before[1]:
        active.set_weights(before[0])
    return False


def _within(domain: Domain, weights: Floats) -> Floats:
    """The weights, scaled into the ball if rounding has led out of it."""
    norm = float(np.abs(weights).sum())
    return weights if norm <= domain.scale else weights * (domain.scale / norm)
