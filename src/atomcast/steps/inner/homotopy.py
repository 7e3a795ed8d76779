"""Minimisation of a quadratic over known atoms: from face to face, on a way that is known exactly.

The best weights within a ball are piecewise linear in its radius, and in the slopes at which atoms
come in. So from the weights of a smaller ball, or from those that were the best before some atoms
came, a straight line leads to the next face, where an atom comes in or leaves; and so on to the
best weights of today. A face costs a few products with the inverse of its Gram matrix, which is
kept from radius to radius: that is little where few atoms come in or leave, however hard it is to
tell by descent which do.
"""

from __future__ import annotations

import numpy as np

from atomcast.domains.balls import Domain
from atomcast.known import gram
from atomcast.known.active_set import ActiveSet
from atomcast.known.gram import Face

#: The way may cross so many faces for each known atom.
FACES = 4
#: The inverse has to be changed by no more than this share of its rows, or it is made anew.
CHANGED = 0.2


def minimise_by_homotopy(domain: Domain, active: ActiveSet, tolerance: float) -> bool:
    """Set the best weights, to within a gap of `tolerance` over the known atoms, if the way is easy.

    Otherwise, the weights are no worse than before.
    """
    from atomcast.steps.inner._homotopy import follow

    known = active.kept_products
    known.extend(active)
    face = known.face = known.face or Face()
    face.make_room(len(known.buffer))
    signed = bool(domain.merit(np.ones(1))[0] > 0.0)
    for attempt in range(2):
        weights, slopes = active.weights.copy(), active.scores()
        used = np.flatnonzero(weights)
        common = np.count_nonzero(weights[face.chosen[: face.size]])
        changed = face.size + len(used) - 2 * common
        if attempt or changed > CHANGED * len(used):
            face.set(known.matrix, used)
        size = follow(
            known.buffer, face.inverse, face.chosen, face.size, slopes, weights, domain.scale,
            signed, FACES * len(active),
        )  # fmt: skip
        face.size = max(size, 0)
        before, value = active.weights.copy(), active.value()
        active.set_weights(_within(domain, weights))
        inner, best = active.inner(), float(domain.merit(active.scores()).max())
        if min(domain.gap(inner, best), active.value() - active.lower_bound) <= 2.0 * tolerance:
            return True
        if not active.value() <= value:
            active.set_weights(before)
    return False


def _within(domain: Domain, weights: gram.Floats) -> gram.Floats:
    """The weights, scaled into the ball if rounding has led out of it."""
    norm = float(np.abs(weights).sum())
    return weights if norm <= domain.scale else weights * (domain.scale / norm)
