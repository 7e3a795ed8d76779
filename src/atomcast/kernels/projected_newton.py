"""Minimise alpha' K~ alpha over the simplex when many points are known.

Up to scale this is min beta' K~ beta / 2 - 1' beta over beta >= 0, with alpha = beta / sum(beta):
the margin of one instead of the sum of one. A projected Newton method: on the points that carry
weight or want to, the Newton equation is solved by conjugate gradients; the step is projected on
the bounds, with an exact line search. A low-rank part of the kernel, from points spread over those
known, together with 1/C makes a preconditioner: a kernel matrix is nearly of low rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from atomcast.active_set import ActiveSet
from atomcast.kernels.active_set import KernelActiveSet
from atomcast.kernels.gram import AugmentedKernel

Floats = NDArray[np.float64]
Single = NDArray[np.float32]

#: Rank of the preconditioner.
RANK = 512
#: A Newton equation is solved to this residual, relatively, or for so many steps.
RESIDUAL, MOST_STEPS = 0.01, 60


class ProjectedNewton:
    """The inner solver of the corrective step for large sets of kernel atoms."""

    def __init__(self) -> None:
        self.products = 0
        self._low_rank = LowRank()

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put weights over all known atoms into the active set, within `tolerance` of the best.

        The tolerance is a duality gap within the known atoms.
        """
        assert isinstance(active, KernelActiveSet)
        gram = active.gram
        beta, products = _started(active)
        least, stalled = np.inf, 0
        for _ in range(1000):
            beta, products = _rescaled(beta, products)
            total = float(beta.sum())
            value = float(beta @ products) / total**2
            gap = 2.0 * (value - float(products.min()) / total)
            # Rounding can leave nothing to gain although the gap is above the tolerance.
            stalled = 0 if value < least * (1 - 1e-14) else stalled + 1
            least = min(least, value)
            if gap <= tolerance or stalled == 3:
                break
            beta, products = self._step(gram, beta, products)
        total = float(beta.sum())
        active.install(beta / total, products / total)

    def _step(self, gram: AugmentedKernel, beta: Floats, products: Floats) -> tuple[Floats, Floats]:
        """One Newton step on the free points, projected, with an exact line search."""
        slope = products - 1.0
        # A point is bound if a step along its own coordinate would take all its weight.
        bound = beta * gram.diagonal <= slope
        emptied = np.where(bound, -beta, 0.0)
        right = -(slope + gram.times(emptied)) if np.any(emptied) else -slope
        direction = emptied + self._newton(gram, np.where(bound, 0.0, right), ~bound)
        change = np.maximum(beta + direction, 0.0) - beta
        if not change @ slope < 0:  # projecting can spoil descent: a gradient step never does
            change = np.maximum(beta - slope / gram.diagonal, 0.0) - beta
        image = gram.times(change)
        self.products += 2
        downhill, bend = -float(change @ slope), float(change @ image)
        # A full step that descends is taken as it is: it leaves weights at exactly zero.
        length = 1.0 if bend <= 1.8 * downhill else downhill / bend
        return np.maximum(beta + length * change, 0.0), products + length * image

    def _newton(self, gram: AugmentedKernel, right: Floats, free: NDArray[np.bool_]) -> Floats:
        """Solve the Newton equation on the free points by preconditioned conjugate gradients."""
        precondition = self._low_rank.preconditioner(gram, free)
        solution, residual = np.zeros(len(right)), right.copy()
        target = RESIDUAL * float(np.linalg.norm(right))
        towards = precondition(residual)
        direction, strength = towards, float(residual @ towards)
        for _ in range(MOST_STEPS):
            self.products += 1
            image = np.where(free, gram.times(direction), 0.0)
            length = strength / float(direction @ image)
            solution += length * direction
            residual -= length * image
            if float(np.linalg.norm(residual)) <= target:
                break
            towards = precondition(residual)
            strength, before = float(residual @ towards), strength
            direction = towards + strength / before * direction
        return solution


class LowRank:
    """A low-rank approximation G G' of K~ without 1/C, by the Nystroem method; grows with it."""

    def __init__(self) -> None:
        self._landmarks: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._factor: Single = np.zeros((0, 0), dtype=np.float32)

    def _update(self, gram: AugmentedKernel) -> None:
        if len(self._factor) == gram.count:
            return
        rank = min(RANK, gram.count // 4)
        marks = np.linspace(0, gram.count - 1, rank).astype(np.int64)
        rows = gram.rows(marks)
        ridge = gram.ridge
        rows[np.arange(rank), marks] -= ridge[marks]
        corner = rows[:, marks]
        corner[np.diag_indices(rank)] += 1e-6 * float(np.trace(corner)) / rank
        factor = linalg.cholesky(corner, lower=True, check_finite=False)
        self._factor = linalg.solve_triangular(factor, rows, lower=True, check_finite=False).T
        self._factor = np.ascontiguousarray(self._factor, dtype=np.float32)

    def preconditioner(self, gram: AugmentedKernel, free: NDArray[np.bool_]):  # type: ignore[no-untyped-def]
        """The inverse of G G' + (1/C and what G leaves out), on the free points."""
        self._update(gram)
        factor = self._factor
        lengths = np.einsum("ij,ij->i", factor, factor)
        rest = np.maximum(gram.diagonal - lengths, gram.ridge)
        inverse = np.where(free, 1.0 / rest, 0.0).astype(np.float32)
        inner = (factor * inverse[:, None]).T @ factor
        inner[np.diag_indices(len(inner))] += 1.0
        solved = linalg.cho_factor(inner, lower=True, check_finite=False)

        def apply(vector: Floats) -> Floats:
            scaled = vector.astype(np.float32) * inverse
            middle = linalg.cho_solve(solved, factor.T @ scaled, check_finite=False)
            return (scaled - inverse * (factor @ middle)).astype(np.float64)

        return apply


def _started(active: KernelActiveSet) -> tuple[Floats, Floats]:
    """The current weights and their products, or those of the first point alone."""
    if np.any(active.weights):
        return active.weights.copy(), active.image_products.copy()
    beta = np.zeros(len(active))
    beta[0] = 1.0
    return beta, active.gram.rows(np.arange(1))[0]


def _rescaled(beta: Floats, products: Floats) -> tuple[Floats, Floats]:
    """The multiple of the weights that is best: where the mean margin is one."""
    factor = float(beta.sum()) / float(beta @ products)
    return factor * beta, factor * products
