"""Minimisation of a quadratic over a ball of the group norm where descent by groups is stuck.

Norms of groups that add up to beta at most make a ball. The weights of which
sum_g ||w_g||^2 / t_g is at most beta^2, for shares t_g of one, are an ellipsoid inside it, by the
inequality of Cauchy and Schwarz; and with the shares of the present weights, it has these on its
border or inside. The best weights of an ellipsoid follow from one eigendecomposition, however badly
the quadratic is conditioned: each step stays in the ball, and none leads up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.group_ball import BlockRanges

Floats = NDArray[np.float64]

#: So many ellipsoids are tried; a group that should have no weight keeps ever less of it.
STEPS = 20


def descend_by_ellipsoids(
    matrix: Floats, at_zero: Floats, weights: Floats, blocks: BlockRanges, tolerance: float
) -> tuple[Floats, bool]:
    """Better weights of the groups in use, and whether their gap over all groups is the tolerance.

    Parameters
    ----------
    matrix, at_zero : arrays of shape (k, k) and (k,)
        The Hessian, and the slopes at zero.
    weights : array of shape (k,)
        In the ball.
    """
    for _ in range(STEPS):
        norms = blocks.c * blocks.norms(weights)
        axes = np.sqrt(norms / max(float(norms.sum()), 1e-300)) / blocks.c
        stretch = axes[blocks.block]
        used = np.flatnonzero(stretch)
        inside = stretch[used, None] * matrix[np.ix_(used, used)] * stretch[used]
        weights = np.zeros_like(weights)
        weights[used] = stretch[used] * _best_in_ball(
            inside, -stretch[used] * at_zero[used], blocks.beta
        )
        slopes = at_zero + matrix @ weights
        steepest = float(np.max(blocks.norms(slopes) / blocks.c))
        if float(weights @ slopes) + blocks.beta * steepest <= tolerance:
            return weights, True
    return weights, False


def _best_in_ball(matrix: Floats, right: Floats, radius: float) -> Floats:
    """The x of at most this length that minimises x' matrix x / 2 - right' x.

    The length of (matrix + shift)^-1 right falls with the shift; its inverse is concave, so that
    Newton's method rises to the shift with the right length.
    """
    bends, turn = np.linalg.eigh(matrix)
    bends = np.maximum(bends, 1e-16 * max(float(bends[-1]), 1e-300))
    right = turn.T @ right
    shift = 0.0
    for _ in range(100):
        point = right / (bends + shift)
        length = float(np.linalg.norm(point))
        if length <= (1.0 + 1e-13) * radius:
            break
        slope = float(np.sum(point * point / (bends + shift)))
        shift += (length / radius - 1.0) * length * length / slope
    return turn @ (point * min(1.0, radius / max(length, 1e-300)))
