"""Minimisation of a quadratic over few known atoms: guess the face, solve on it, look again.

All atoms that violate optimality join the weights in use at once, the best weights with these signs
follow from one factorisation, and all that come out with another sign leave at once: boldly, in the
same step as others join, or else, where that leads nowhere, until all signs are right. Nothing says
that this ends, but it nearly always does, after a few factorisations, where the careful method of
`corral.py` keeps an inverse up to date at several times the calls of small products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet

Floats = NDArray[np.float64]

#: So many faces are tried boldly, and so many if they are not.
BOLD, MILD = 10, 24


def minimise_by_pivots(domain: Domain, active: ActiveSet, tolerance: float) -> bool:
    """Set the best weights, to within a gap of `tolerance` over the known atoms, if that is easy.

    Otherwise, nothing is changed.
    """
    weights, slopes = active.weights, active.scores()
    used = bool(weights.any())
    if not (domain.has_origin or used):
        return False  # there is no face to begin with
    inner, merit = float(weights @ slopes), domain.merit(slopes)
    if domain.gap(inner, float(merit.max())) <= tolerance:
        return True
    gram = active.kept_products
    gram.extend(active)
    matrix = gram.matrix
    at_zero = slopes - matrix @ weights if used else slopes
    signs = np.sign(weights)
    joining = (merit > (tolerance - inner) / domain.scale) & (signs == 0.0)
    signs[joining] = domain.signs(slopes[joining])
    # From nothing, the atoms that would do if they had nothing to do with each other.
    alone = None if used else -at_zero / np.maximum(matrix.diagonal(), np.finfo(np.float64).tiny)
    guess = signs if alone is None else np.sign(domain.project(active.ids, alone))
    for first, most in ((guess.copy(), BOLD), (signs, MILD)):
        found = _pivots(domain, matrix, at_zero, first, most, tolerance)
        if found is not None and _published(domain, active, found, tolerance):
            return True
    return False


def penalised_norm(domain: Domain, active: ActiveSet, penalty: float) -> float | None:
    """The norm of the best weights of known atoms where a unit of it costs so much, if it is easy.

    That is the radius of the ball with the same solution. Nothing is changed.
    """
    gram, weights, slopes = active.kept_products, active.weights, active.scores()
    gram.extend(active)
    at_zero = slopes - gram.matrix @ weights
    signs = np.sign(weights)
    joining = (domain.merit(slopes) > penalty) & (signs == 0.0)
    signs[joining] = domain.signs(slopes[joining])
    for most in (BOLD, MILD):
        found = _pivots(domain, gram.matrix, at_zero, signs.copy(), most, 0.0, penalty)
        if found is not None:
            return float(np.abs(found).sum())
    return None


def _pivots(
    domain: Domain,
    matrix: Floats,
    at_zero: Floats,
    signs: Floats,
    most: int,
    tolerance: float,
    penalty: float | None = None,
) -> Floats | None:
    """The best weights, from a first guess of their signs; None where that is not easy.

    They are within the domain, or, with a penalty on their norm, anywhere.
    """
    for _ in range(most):
        free = signs.nonzero()[0]
        if not len(free):
            return None
        sign = signs[free]
        found = _on_face(matrix, at_zero, free, sign, domain, penalty)
        if found is None:
            return None
        wrong = free[found * sign <= 0.0]
        signs[wrong] = 0.0
        if len(wrong) and most == MILD:
            continue
        weights = np.zeros(len(signs))
        weights[free] = found
        slopes = at_zero + matrix @ weights
        if penalty is None:
            level = (tolerance - float(weights @ slopes)) / domain.scale
        else:
            level = (1.0 + 1e-9) * penalty
        joining = (domain.merit(slopes) > level) & (weights == 0.0)
        if not (len(wrong) or joining.any()):
            return weights
        signs[joining] = domain.signs(slopes[joining])
    return None


def _on_face(
    matrix: Floats,
    at_zero: Floats,
    free: NDArray[np.int64],
    sign: Floats,
    domain: Domain,
    penalty: float | None,
) -> Floats | None:
    """The best weights of some atoms on the face of these signs, whatever signs they come out with.

    None where they are not independent.
    """
    right = np.array([-at_zero[free], sign]).T
    # As LAPACK wants them, so that nothing is copied: the transpose is the same matrix.
    face = matrix.take(free, 0).take(free, 1).T
    _, solution, failed = dposv(face, right, overwrite_a=True, overwrite_b=True)
    if failed:
        return None
    down: Floats = solution[:, 0]
    across = solution[:, 1]
    if penalty is not None:
        return down - penalty * across
    level = (float(sign @ down) - domain.scale) / float(sign @ across)
    if level > 0.0 or not domain.has_origin:
        down = down - level * across
        down *= domain.scale / float(sign @ down)  # but for rounding, that is one
    return down


def _published(domain: Domain, active: ActiveSet, weights: Floats, tolerance: float) -> bool:
    """Set the weights, if they are as good as their products say."""
    before = active.weights.copy()
    active.set_weights(weights)
    inner, merit = active.inner(), domain.merit(active.scores())
    if domain.gap(inner, float(merit.max())) <= 2.0 * tolerance:
        return True
    active.set_weights(before)
    return False
