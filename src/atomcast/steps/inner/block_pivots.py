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


def penalised_norm(domain: Domain, active: ActiveSet, penalty: float) -> float | None:
    """The norm of the best weights of known atoms where a unit of it costs so much, if it is easy.

    That is the radius of the ball with the same solution. Nothing is changed.
    """
    gram, weights, slopes = active.kept_products, active.weights, active.scores()
    gram.extend(active)
    at_zero = slopes - gram.matrix @ weights
    for face in range(2 * FACES):
        signs = np.sign(weights)
        joining = (domain.merit(slopes) > (1.0 + 1e-9) * penalty) & (signs == 0.0)
        if face and not joining.any():
            return float(np.abs(weights).sum())
        signs[joining] = domain.signs(slopes[joining])
        found = _on_face(gram.matrix, at_zero, signs, domain, penalty)
        if found is None:
            return None
        weights = found
        slopes = at_zero + gram.matrix @ weights
    return None


def _on_face(
    matrix: Floats, at_zero: Floats, signs: Floats, domain: Domain, penalty: float | None = None
) -> Floats | None:
    """The best weights with some of these signs, and zeros; None where there is no such face.

    They are within the domain, or, with a penalty on their norm, anywhere.
    """
    while True:
        free = signs.nonzero()[0]
        if not len(free):
            return None
        sign = signs[free]
        right = np.array([-at_zero[free], sign]).T
        # As LAPACK wants them, so that nothing is copied: the transpose is the same matrix.
        face = matrix[free[:, None], free].T
        _, solution, failed = dposv(face, right, overwrite_a=True, overwrite_b=True)
        if failed:
            return None
        down, across = solution.T
        level = (float(sign @ down) - domain.scale) / float(sign @ across)
        if penalty is not None:
            down = down - penalty * across
        elif level > 0.0 or not domain.has_origin:
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
