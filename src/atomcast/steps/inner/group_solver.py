"""Minimisation of a quadratic over the ball of the group norm, for the known groups.

Accelerated projected gradient steps find which groups are not zero; Newton steps on the
optimality conditions of these groups and of the multiplier of the ball do the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.group_ball import Blocks, GroupBall
from atomcast.known.active_set import ActiveSet
from atomcast.known.gram import Gram

Floats = NDArray[np.float64]

#: Gradient steps between two attempts to finish by Newton steps, and how many attempts.
STRIDE, ATTEMPTS = 25, 400
NEWTON_STEPS = 12


class GroupSolver:
    """The best weights of the known groups, to a given gap."""

    def __init__(self, domain: GroupBall, gram: Gram) -> None:
        self.domain = domain
        self.gram = gram

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put the best weights over all known groups into the active set."""
        if not len(active):
            return
        self.gram.extend(active)
        matrix, blocks = self.gram.matrix, Blocks(active.ids, self.domain)
        linear = active.scores() - matrix @ active.weights
        w = blocks.project(active.weights.copy())
        best, least = w, blocks.gap(w, linear + matrix @ w)
        bound = min(float(np.linalg.norm(matrix)), float(np.abs(matrix).sum(axis=1).max()))
        if bound <= 0.0 or least <= tolerance:
            return
        for _ in range(ATTEMPTS):
            w = descend(matrix, linear, blocks, w, bound)
            for point in (w, polish(matrix, linear, blocks, w)):
                gap = blocks.gap(point, linear + matrix @ point)
                if gap < least:
                    best, least = point, gap
            if least <= tolerance:
                break
            w = best if blocks.gap(w, linear + matrix @ w) > 2.0 * least else w
        active.set_weights(best)


def descend(matrix: Floats, linear: Floats, blocks: Blocks, w: Floats, bound: float) -> Floats:
    """Accelerated projected gradient steps, with a restart where momentum leads uphill."""
    ahead, t = w, 1.0
    for _ in range(STRIDE):
        new = blocks.project(ahead - (linear + matrix @ ahead) / bound)
        if float((ahead - new) @ (new - w)) > 0.0:
            t = 1.0
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead = new + (t - 1.0) / faster * (new - w)
        w, t = new, faster
    return w


def polish(matrix: Floats, linear: Floats, blocks: Blocks, w: Floats) -> Floats:
    """Newton steps on the conditions of optimality for the blocks that are not zero."""
    used = np.flatnonzero((blocks.norms(w) > 0.0)[blocks.block])
    if not len(used):
        return w
    block = blocks.block[used]
    x, part = w[used], matrix[np.ix_(used, used)]
    inside = blocks.size(w) < blocks.beta * (1.0 - 1e-10)
    gradient = linear[used] + part @ x
    multiplier = 0.0 if inside else max(-float(x @ gradient) / blocks.beta, 0.0)
    for _ in range(NEWTON_STEPS):
        squares = np.bincount(block, x * x, minlength=len(blocks.c))
        length = np.sqrt(squares)[block]
        if not np.all(length > 0.0):
            return w
        normal = blocks.c[block] * x / length
        bent = multiplier * blocks.c[block] / length
        hessian = part + np.diag(bent)
        hessian -= np.where(block[:, None] == block, np.outer(bent * x / length**2, x), 0.0)
        residual = gradient + multiplier * normal
        excess = float(np.sum(normal * x)) - blocks.beta
        if inside:
            change = np.linalg.lstsq(hessian, -residual, rcond=1e-13)[0]
        else:
            system = np.block([[hessian, normal[:, None]], [normal[None, :], np.zeros((1, 1))]])
            target = -np.append(residual, excess)
            solution = np.linalg.lstsq(system, target, rcond=1e-13)[0]
            change, multiplier = solution[:-1], max(multiplier + float(solution[-1]), 0.0)
        x = x + change
        gradient = linear[used] + part @ x
        if float(np.abs(change).max()) <= 1e-15 * float(np.abs(x).max()):
            break
    result = np.zeros_like(w)
    result[used] = x
    return blocks.project(result) if np.all(np.isfinite(result)) else w
