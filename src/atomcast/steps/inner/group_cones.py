"""Minimisation of a quadratic over a ball of the group norm where descent by groups is stuck.

Columns that all but coincide leave a valley so narrow that a group which moves alone, or weights
that are scaled into the ball, leave it. The interior-point method of `interior_point.py` moves all
groups at once and needs no scaling, however badly the quadratic is conditioned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.group_ball import BlockRanges
from atomcast.steps.inner.cone import Cones, Norms
from atomcast.steps.inner.interior_point import minimise_in_ball

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: The method ends at this share of the tolerance: its own gap is not quite that of the weights.
CLOSER = 0.05


class OwnWeights(Norms):
    """Coefficients that are the weights themselves, all of one node."""

    @staticmethod
    def of(groups: Positions, c: Floats) -> OwnWeights:
        """The weights of these groups, shape (k,), which increase; c are weights of groups."""
        k, starts = len(groups), np.flatnonzero(np.append(True, np.diff(groups) != 0))
        return OwnWeights(np.eye(k), np.zeros(k, dtype=np.int64), starts, c[groups[starts]])

    def curvature(self, scale: Floats, shrink: Floats, along: Floats) -> Floats:
        """The same, of which only the blocks of the groups are not zero."""
        group = self.group
        bent = np.outer(-(scale * shrink)[group] * along, along)
        bent[group[:, None] != group] = 0.0
        bent[np.diag_indices_from(bent)] += scale[group]
        return bent[None]


def descend_in_cones(
    matrix: Floats, at_zero: Floats, weights: Floats, blocks: BlockRanges, tolerance: float
) -> tuple[Floats, bool]:
    """The best weights of the known groups, and whether their gap is the tolerance.

    Parameters
    ----------
    matrix, at_zero : arrays of shape (k, k) and (k,)
        The Hessian, and the slopes at zero.
    weights : array of shape (k,)
        In the ball; to begin near.
    """

    def merit_and_gap(weights: Floats) -> tuple[Floats, float]:
        slopes = at_zero + matrix @ weights
        merit = blocks.norms(slopes) / blocks.c
        return merit, float(weights @ slopes) + blocks.beta * float(merit.max())

    def best(chosen: Positions, start: Floats) -> Floats:
        """The best weights of some groups; the others have none."""
        found, scale = np.zeros_like(start), merit_and_gap(start)[1]
        found[chosen] = minimise_in_ball(
            matrix[np.ix_(chosen, chosen)],
            at_zero[chosen],
            Cones(OwnWeights.of(blocks.block[chosen], blocks.c)),
            blocks.beta,
            start[None, chosen],
            CLOSER * tolerance,
            scale,
        )[0]
        return found

    everywhere = best(np.arange(len(weights)), weights)
    merit, gap = merit_and_gap(everywhere)
    # Inside the cones, no group is quite zero: those should be whose merit is less than the best,
    # by a larger share than they have of the norm.
    shares = blocks.c * blocks.norms(everywhere) / blocks.beta
    used = (shares >= 1.0 - merit / max(float(merit.max()), 1e-300))[blocks.block]
    if used.any() and not used.all():
        sparse = best(np.flatnonzero(used), everywhere)
        if (there := merit_and_gap(sparse)[1]) <= max(gap, tolerance):
            return sparse, there <= tolerance
    return everywhere, gap <= tolerance
