"""Minimisation of a quadratic over few known atoms: guess the face, solve on it, look again.

All atoms that violate optimality join the weights in use at once, the best weights with these signs
follow from one factorisation, and all that come out with another sign leave at once. Nothing says
that this ends, but it nearly always does, after two or three factorisations, where the careful
method of `corral.py` keeps an inverse up to date at several times the calls of small products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet

Floats = NDArray[np.float64]

#: So many faces are guessed before the careful method has to do.
FACES = 6


def minimise_by_pivots(domain: Domain, active: ActiveSet, tolerance: float) -> bool:
    """Set the best weights, to within a gap of `tolerance` over the known atoms, if that is easy.

    Otherwise, nothing is changed.
    """
    weights, slopes = active.weights, active.scores()
    if not (domain.has_origin or weights.any()):
        return False  # there is no face to begin with
    gram = active.kept_products
    gram.extend(active)
    at_zero = slopes - gram.matrix @ weights
    for _ in range(FACES):
        inner, merit = float(weights @ slopes), domain.merit(slopes)
        if domain.gap(inner, float(merit.max())) <= tolerance:
            return _published(domain, active, weights, tolerance)
        signs = np.sign(weights)
        joining = (merit > (tolerance - inner) / domain.scale) & (signs == 0.0)
        signs[joining] = domain.signs(slopes[joining])
        found = _on_face(gram.matrix, at_zero, signs, domain)
        if found is None:
            return False
        weights = found
        slopes = at_zero + gram.matrix @ weights
    return False


def _on_face(matrix: Floats, at_zero: Floats, signs: Floats, domain: Domain) -> Floats | None:
    """The best weights with some of these signs, and zeros; None where there is no such face."""
    while True:
        free = signs.nonzero()[0]
        if not len(free):
            return None
        sign = signs[free]
        right = np.array([-at_zero[free], sign]).T
        _, solution, failed = dposv(matrix[free[:, None], free], right)
        if failed:
            return None
        down, across = solution.T
        level = (float(sign @ down) - domain.scale) / float(sign @ across)
        if level > 0.0 or not domain.has_origin:
            down = down - level * across
            down *= domain.scale / float(sign @ down)  # but for rounding, that is one
        kept = down * sign > 0.0
        if kept.all():
            weights = np.zeros(len(signs))
            weights[free] = down
            return weights
        signs[free[~kept]] = 0.0


def _published(domain: Domain, active: ActiveSet, weights: Floats, tolerance: float) -> bool:
    """Set the weights, if they are as good as their products say."""
    before = active.weights.copy()
    active.set_weights(weights)
    inner, merit = active.inner(), domain.merit(active.scores())
    if domain.gap(inner, float(merit.max())) <= 2.0 * tolerance:
        return True
    active.set_weights(before)
    return False
