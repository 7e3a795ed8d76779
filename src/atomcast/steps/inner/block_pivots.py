"""Minimisation of a quadratic over few known atoms: guess the face, solve on it, look again.

All atoms that violate optimality join the weights in use at once, the best weights with these signs
follow from one factorisation, and all that come out with another sign leave at once: boldly, in the
same step as others join, or else, where that leads nowhere, until all signs are right. Nothing says
that this ends, but it nearly always does, after a few factorisations, where the careful method of
`corral.py` keeps an inverse up to date at several times the calls of small products. Where sums of
atoms are sums of others, as those of categories are, a tiny ridge tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrs

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.known.gram import DEPENDENT

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: A square that is this share of the largest may be all rounding: the atom begins without weight.
NO_LENGTH = 1e-14
#: Boldly, so many faces are tried after one with fewer wrong signs and missing atoms than all
#: before it, and so many in all if not.
BOLD, MILD = 4, 24
#: Atoms whose merits alone differ by no more than this share of the largest may be copies.
ALIKE = 1e-6
#: Where sums of atoms are sums of others, bends that are larger by this share make weights unique.
RIDGE = 1e-9
TINY = float(np.finfo(np.float64).tiny)
NOBODY: Positions = np.zeros(0, dtype=np.int64)


def minimise_by_pivots(domain: Domain, active: ActiveSet, tolerance: float) -> bool:
    """Set the best weights, to within a gap of `tolerance` over the known atoms, if that is easy.

    Otherwise, nothing is changed.
    """
    weights, slopes = active.weights, active.scores()
    used = np.count_nonzero(weights) > 0
    if not (domain.has_origin or used):
        return False  # there is no face to begin with
    inner, merit = float(weights @ slopes), domain.merit(slopes)
    if domain.gap(inner, float(merit.max())) <= tolerance:
        return True
    gram = active.kept_products
    gram.extend(active)
    found = solutions(domain, gram.matrix, weights.copy(), slopes, tolerance)
    return any(_published(domain, active, new, tolerance) for new in found)


def solutions(
    domain: Domain,
    matrix: Floats,
    weights: Floats,
    slopes: Floats,
    tolerance: float,
    ways: Sequence[int] = (BOLD, MILD),
    ridge: float = 0.0,
) -> Iterator[Floats]:
    """The best weights of a quadratic with this matrix, given its slopes at some weights.

    They come once, or, should rounding have spoilt them, twice; not at all if it is not easy. Where
    they are not unique, a ridge, if one is allowed, says which of them to take.
    """
    used = np.count_nonzero(weights) > 0
    at_zero = slopes - matrix @ weights if used else slopes
    merit, inner = domain.merit(slopes), float(weights @ slopes)
    for most in ways:
        if used or most == MILD:
            level = (tolerance - inner) / domain.scale
            first = _with_violators(domain, weights, slopes, merit, level)
        else:  # the atoms that would do if they had nothing to do with each other
            first = _alone(domain, matrix.diagonal(), slopes, merit)
        found = _pivots(domain, matrix, at_zero, first, most, tolerance, allowed=ridge)
        if found is not None:
            yield found


def penalised_solution(
    domain: Domain,
    matrix: Floats,
    weights: Floats,
    slopes: Floats,
    penalty: float,
    ridge: float = 0.0,
) -> Floats | None:
    """The best weights where a unit of their norm costs so much, given slopes at some weights.

    None if it is not easy.
    """
    at_zero = slopes - matrix @ weights
    signs = _with_violators(domain, weights, slopes, domain.merit(slopes), penalty)
    for most in (BOLD, MILD):
        found = _pivots(domain, matrix, at_zero, signs, most, 0.0, penalty, ridge)
        if found is not None:
            return found
    return None


def _alone(domain: Domain, bends: Floats, slopes: Floats, merit: Floats) -> Floats:
    """The signs of the weights that atoms would have if none had to do with any other.

    At a penalty, each would have the weight (merit - penalty) / bend: with the first k in use, they
    fill the domain where sum(merit / bend) - penalty * sum(1 / bend) is its radius.
    """
    lasting = (bends > NO_LENGTH * bends.max()).nonzero()[0]
    order = lasting[np.argsort(-merit[lasting])]
    best, easy = merit[order], 1.0 / bends[order]
    penalties = (np.cumsum(best * easy) - domain.scale) / np.cumsum(easy)
    chosen = order[best > penalties.max(initial=0.0)]
    signs = np.zeros(len(bends))
    signs[chosen] = domain.signs(slopes[chosen])
    return signs


def _with_violators(
    domain: Domain, weights: Floats, slopes: Floats, merit: Floats, level: float
) -> Floats:
    """The signs of weights, and those that atoms with a merit above a level would enter with."""
    entering = np.where((merit > level) & (weights == 0.0), domain.signs(slopes), 0.0)
    return np.sign(weights) + entering


def _pivots(
    domain: Domain,
    matrix: Floats,
    at_zero: Floats,
    first: Floats,
    most: int,
    tolerance: float,
    penalty: float | None = None,
    allowed: float = 0.0,
) -> Floats | None:
    """The best weights, from a first guess of their signs; None where that is not easy.

    They are within the domain, or, with a penalty on their norm, anywhere.
    """
    sides = np.array([-at_zero, first])  # of the equations on a face
    signs = sides[1]
    slack = tolerance / domain.scale if penalty is None else max(tolerance, 1e-9 * penalty)
    least, left_out, ridge = np.sqrt(DEPENDENT * matrix.diagonal()), NOBODY, 0.0
    seen: set[tuple[float, bytes]] = set()
    left, fewest = most, len(first)
    while left:
        free, known, left = signs.nonzero()[0], (ridge, signs.tobytes()), left - 1
        if not len(free) or known in seen:
            return None  # there is no face, or it comes round again
        seen.add(known)
        sign, whole = signs[free], len(free) == len(signs)
        rows = matrix if whole else matrix[free]
        # As LAPACK wants them, so that nothing is copied: the transpose is the same matrix.
        face = rows.copy().T if whole else rows.take(free, 1).T
        right = sides.take(free, 1).T
        if ridge:
            np.einsum("ii->i", face)[:] *= 1.0 + ridge
        # A lower factor of some dozens of rows takes up to a seventh less time.
        factor, solution, failed = dposv(face, right, True, True, True)
        # Whether equal atoms make it fail is a matter of rounding.
        if failed or (not ridge and np.count_nonzero(factor.diagonal() <= least.take(free))):
            alone = np.abs(at_zero.take(free)) / np.maximum(least.take(free), TINY)
            copies = NOBODY if len(left_out) else free[_copies(alone)]
            if ridge or not (len(copies) or (allowed and not len(left_out))):
                return None
            if len(copies):
                signs[copies], left_out = 0.0, copies
            else:  # sums of atoms are sums of others
                ridge, left, fewest = allowed, min(left, BOLD), len(first)
            continue
        if ridge:  # which is to be of no consequence but for directions that are flat
            rest = sides.take(free, 1).T - rows.take(free, 1) @ solution
            solution = solution + dpotrs(factor, rest, lower=True)[0]
        found, level = _on_face(domain, solution, sign, penalty)
        if whole and penalty is None and not level:
            turned = domain.signs(-found)  # whatever was guessed, if there is room for all of them
            sign = turned if float(turned.dot(found)) <= domain.scale else sign
        kept = found * sign > 0.0
        wrong = len(free) - int(np.count_nonzero(kept))
        if wrong:
            signs[free] = sign * kept
            if most == MILD:
                continue
        slopes = at_zero + found.dot(rows)
        joining = domain.merit(slopes) > level + slack
        joining[free] = False
        if len(left_out) and joining[left_out].any():
            return None  # they are no copies of others, which would do for them
        join = joining.nonzero()[0]
        wrong += len(join)
        if not wrong:
            weights = np.zeros(len(signs))
            weights[free] = found
            if level and penalty is None:
                weights *= domain.scale / float(sign.dot(found))  # but for rounding, that is one
            return weights
        if len(join):
            signs[join] = domain.signs(slopes[join])
        if wrong < fewest and most == BOLD:
            fewest, left = wrong, most
    return None


def _on_face(
    domain: Domain, solution: Floats, sign: Floats, penalty: float | None
) -> tuple[Floats, float]:
    """The best weights on a face, and the merit that all of them have there.

    That is the penalty, or else the multiplier of the ball.
    """
    found, across = solution[:, 0], solution[:, 1]
    level = penalty
    if level is None:
        level = (float(sign.dot(found)) - domain.scale) / float(sign.dot(across))
        level = max(level, 0.0) if domain.has_origin else level
    return (found - level * across if level else found), level


def _copies(alone: Floats) -> Positions:
    """Which of some atoms are perhaps copies of earlier ones: alone, they are just as good.

    Which of them come first is the same on every node, and whatever rounding does.
    """
    order = np.argsort(alone)
    new = np.diff(alone[order], prepend=-np.inf) > ALIKE * alone[order[-1]]
    return np.setdiff1d(order, np.minimum.reduceat(order, new.nonzero()[0]))


def _published(domain: Domain, active: ActiveSet, weights: Floats, tolerance: float) -> bool:
    """Set the weights, if they are as good as their products say."""
    before = active.weights.copy()
    active.set_weights(weights)
    inner, merit = active.inner(), domain.merit(active.scores())
    if domain.gap(inner, float(merit.max())) <= 2.0 * tolerance:
        return True
    active.set_weights(before)
    return False
