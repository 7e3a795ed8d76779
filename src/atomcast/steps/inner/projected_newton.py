"""Minimise alpha' K~ alpha over the simplex when many points are known.

Up to scale this is min beta' K~ beta / 2 - 1' beta over beta >= 0, with alpha = beta / sum(beta):
the margin of one instead of the sum of one. A projected Newton method: on the points that carry
weight or want to, the Newton equation is solved by conjugate gradients; the step is projected on
the bounds, with an exact line search. A low-rank part of the kernel, from points spread over those
known, together with 1/C makes a preconditioner: a kernel matrix is nearly of low rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from atomcast._threads import ranges, run_all
from atomcast.known.active_set import ActiveSet
from atomcast.known.kernels.kernel_matrix import AugmentedKernel
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.steps.inner.refining import refine

Floats = NDArray[np.float64]
Single = NDArray[np.float32]
Positions = NDArray[np.int64]
Memory = Mapping[str, NDArray[Any]]

NOTHING: Memory = MappingProxyType({})
#: Rank of the preconditioner.
RANK = 512
#: So many of its rows at a time are in double precision.
ROWS = 1024
#: How often points may be bound within a step, and what share of it may simply be cut off.
PIVOTS, NEGLIGIBLE = 8, 0.01
#: A Newton equation is solved to this residual, relatively, or for so many steps, or until no
#: point violates optimality by more than this share of what the tolerance allows.
RESIDUAL, MOST_STEPS, SHARE = 0.1, 40, 0.5


class ProjectedNewton:
    """The inner solver of the corrective step for large sets of kernel atoms."""

    def __init__(self, memory: Memory = NOTHING) -> None:
        self.products = 0
        self._enough = 0.0
        self._low_rank = LowRank(memory)

    def memory(self) -> Memory:
        """What another process needs to go on in the same way."""
        return self._low_rank.memory()

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put weights over all known atoms into the active set, within `tolerance` of the best.

        The tolerance is a duality gap within the known atoms.
        """
        assert isinstance(active, KernelActiveSet)
        refine(active, partial(self.improve, active, 0.0, tolerance))

    def improve(self, active: KernelActiveSet, aim: float, tolerance: float = 0.0) -> float:
        """The same but for rounding of kernel values, or to a share `aim` of the objective.

        Returns that share.
        """
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
            enough = max(tolerance, aim * value)
            if gap <= enough or stalled == 3:
                break
            self._enough = SHARE * enough * total / 2.0
            beta, products = self._step(gram, beta, products)
        total = float(beta.sum())
        active.install(beta / total, products / total)
        return max(tolerance / active.value(), aim)

    def _step(self, gram: AugmentedKernel, beta: Floats, products: Floats) -> tuple[Floats, Floats]:
        """One Newton step on the free points, projected, with an exact line search."""
        slope = products - 1.0
        change, image = self._direction(gram, beta, slope)
        if not change @ slope < 0:  # projecting can spoil descent: a gradient step never does
            change = np.maximum(beta - slope / gram.diagonal, 0.0) - beta
            image = self._times(gram, change)
        downhill, bend = -float(change @ slope), float(change @ image)
        # A full step that descends is taken as it is: it leaves weights at exactly zero.
        length = 1.0 if bend <= 1.8 * downhill else downhill / bend
        return np.maximum(beta + length * change, 0.0), products + length * image

    def _direction(
        self, gram: AugmentedKernel, beta: Floats, slope: Floats
    ) -> tuple[Floats, Floats]:
        """The Newton step on the free points, and its product with the matrix.

        Points that it would take below zero are bound there and the equation is solved again:
        only to cut them off would upset the balance of the classes.
        """
        free = self._foreseen(gram, beta, slope)
        cut = np.where(free, 0.0, -beta)
        change = image = np.zeros(len(beta))
        for _ in range(PIVOTS):
            change, image = self._newton(gram, slope, change, image, cut, free)
            below = free & (beta + change < 0)
            cut = np.where(below, -(beta + change), 0.0)
            if float(cut.sum()) <= NEGLIGIBLE * float(np.abs(change).sum()):
                break
            free &= ~below
        if cut.any():
            change, image = change + cut, image + self._times(gram, cut)
        # Points that are bound are so exactly: they end with no weight at all.
        return np.where(below | ~free, -beta, change), image

    def _foreseen(self, gram: AugmentedKernel, beta: Floats, slope: Floats) -> NDArray[np.bool_]:
        """The points that stay free, as far as the low-rank approximation can tell for little."""
        free = (beta > 0) | (slope < 0)
        for _ in range(PIVOTS):
            cut = np.where(free, 0.0, -beta)
            change = self._low_rank.solved(gram, -slope, cut, free)
            below = free & (beta + change < 0)
            if float(-(beta + change)[below].sum()) <= NEGLIGIBLE * float(np.abs(change).sum()):
                break
            free = free & ~below
        return free

    def _times(self, gram: AugmentedKernel, vector: Floats) -> Floats:
        self.products += 1
        return gram.times(vector)

    def _newton(
        self,
        gram: AugmentedKernel,
        slope: Floats,
        change: Floats,
        image: Floats,
        cut: Floats,
        free: NDArray[np.bool_],
    ) -> tuple[Floats, Floats]:
        """Take a cut from some points, and improve the step on the free ones to make up for it.

        By preconditioned conjugate gradients, after a step that goes along with the cut.
        """
        first = self._low_rank.solved(gram, -(slope + image), cut, free)
        change, image = change + first, image + self._times(gram, first)
        precondition = self._low_rank.preconditioner(gram, free)
        residual = np.where(free, -(slope + image), 0.0)
        target = RESIDUAL * float(np.linalg.norm(np.where(free, slope, 0.0)))
        towards = precondition(residual)
        direction, strength = towards, float(residual @ towards)
        for _ in range(MOST_STEPS):
            if float(np.linalg.norm(residual)) <= target or not strength > 0:
                break
            if float(np.abs(residual).max()) <= self._enough:
                break
            product = self._times(gram, direction)
            length = strength / float(direction @ product)
            change = change + length * direction
            image = image + length * product
            residual = residual - np.where(free, length * product, 0.0)
            towards = precondition(residual)
            strength, before = float(residual @ towards), strength
            direction = towards + strength / before * direction
        return change, image


class LowRank:
    """A low-rank approximation G G' of K~ without 1/C, by the Nystroem method.

    Its landmarks are spread over the first few thousand points; later points only add rows.

    Parameters
    ----------
    memory : dict of arrays
        Where the approximation of the same run, in another process, had come to.
    """

    def __init__(self, memory: Memory = NOTHING) -> None:
        self._memory = memory if "low_rank.inner" in memory else NOTHING
        #: How many points had rows each time that some were added; the first have the landmarks.
        self._ends: list[int] = []
        self._marks: Positions = np.zeros(0, dtype=np.int64)
        self._lower: Floats = np.zeros((0, 0))
        self._factor: Single = np.zeros((0, 0), dtype=np.float32)
        self._inverse: Single = np.zeros(0, dtype=np.float32)
        self._free: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._inner: Floats = np.zeros((0, 0))
        self._last: Callable[[Floats], Floats] | None = None

    def memory(self) -> Memory:
        """In which batches rows were added, and what was summed over which points.

        The sums are updated from round to round, and have their own rounding in them.
        """
        if not self._ends:
            return self._memory
        return {
            "low_rank.ends": np.array(self._ends),
            "low_rank.free": self._free,
            "low_rank.inner": self._inner,
        }

    def _recall(self, gram: AugmentedKernel) -> None:
        """Come to where the memory says; the factor itself follows from the points."""
        memory, self._memory = self._memory, NOTHING
        free, inner = memory["low_rank.free"], memory["low_rank.inner"]
        ends = memory["low_rank.ends"].tolist()
        if ends != sorted(ends) or not 0 < ends[0] <= ends[-1] == len(free) <= gram.count:
            raise ValueError(f"rows up to {ends} for {len(free)} points, {gram.count} known")
        self._choose_marks(gram, ends[0])
        if len(self._marks) < RANK and len(free) < gram.count:
            return  # new points come with new landmarks
        if inner.shape != self._inner.shape:
            raise ValueError(f"a low-rank part of shape {inner.shape}, not {self._inner.shape}")
        for start, end in zip([0, *ends], ends, strict=False):
            self._add_rows(gram, start, end)
        self._free, self._inner = free.copy(), inner.copy()

    def _update(self, gram: AugmentedKernel) -> None:
        """Approximate the matrix of all points known now."""
        if self._memory:
            self._recall(gram)
        old = len(self._factor)
        if old == gram.count:
            return
        if len(self._marks) < RANK:
            old = self._choose_marks(gram, gram.count)
        self._add_rows(gram, old, gram.count)

    def _add_rows(self, gram: AugmentedKernel, old: int, stop: int) -> None:
        """Extend the factor by the rows of the points from `old` to `stop`."""
        self._ends.append(stop)
        factors, inverses = [self._factor[:old]], [self._inverse[:old]]
        for start in range(old, stop, ROWS):
            part = np.arange(start, min(start + ROWS, stop))
            across = gram.between(part, self._marks).T
            rows = linalg.solve_triangular(self._lower, across, lower=True, check_finite=False).T
            rest = gram.diagonal[part] - np.einsum("ij,ij->i", rows, rows)
            factors.append(rows.astype(np.float32))
            inverses.append((1.0 / np.maximum(rest, gram.ridge[part])).astype(np.float32))
        self._factor, self._inverse = np.concatenate(factors), np.concatenate(inverses)
        self._free = np.concatenate([self._free, np.zeros(stop - old, dtype=bool)])

    def _choose_marks(self, gram: AugmentedKernel, count: int) -> int:
        """Take landmarks of the first points; returns how many rows remain valid: none."""
        self._ends, rank = [], max(min(RANK, count // 4), 1)
        self._marks = np.linspace(0, count - 1, rank).astype(np.int64)
        self._lower = lower_factor(gram.between(self._marks, self._marks), 1e-6)
        self._factor = np.zeros((0, rank), dtype=np.float32)
        self._free = np.zeros(0, dtype=bool)
        self._inner = np.eye(rank)
        return 0

    def _let(self, free: NDArray[np.bool_]) -> None:
        """Follow changes of the free points, at the cost of those that changed."""
        for sign, rows in ((1.0, free & ~self._free), (-1.0, self._free & ~free)):
            if rows.any():
                part = self._factor[rows]
                self._inner += sign * ((part * self._inverse[rows, None]).T @ part)
        self._free = free.copy()

    def solved(
        self, gram: AugmentedKernel, residual: Floats, cut: Floats, free: NDArray[np.bool_]
    ) -> Floats:
        """A cut from points that are not free, and the approximate answer of the free ones."""
        precondition = self.preconditioner(gram, free)
        if cut.any():
            middle = self._factor.T @ cut.astype(np.float32)
            residual = residual - self._factor @ middle
        return cut + precondition(residual)

    def preconditioner(
        self, gram: AugmentedKernel, free: NDArray[np.bool_]
    ) -> Callable[[Floats], Floats]:
        """The inverse of G G' + (1/C and what G leaves out), on the free points."""
        grew = len(self._factor) != gram.count
        self._update(gram)
        if self._last is not None and not grew and np.array_equal(free, self._free):
            return self._last
        self._let(free)
        factor, inverse = self._factor, np.where(free, self._inverse, np.float32(0))
        solved = lower_factor(self._inner), True

        # Four parts, whatever the number of threads, so that all nodes round alike.
        parts = ranges(len(factor), 4)

        def apply(vector: Floats) -> Floats:
            scaled = vector.astype(np.float32) * inverse
            sums, back = np.empty((len(parts), factor.shape[1]), "f"), np.empty(len(factor), "f")
            run_all([partial(np.dot, scaled[p], factor[p], sums[k]) for k, p in enumerate(parts)])
            middle = linalg.cho_solve(solved, sums.sum(axis=0), check_finite=False).astype("f")
            run_all([partial(np.dot, factor[p], middle, back[p]) for p in parts])
            return (scaled - inverse * back).astype(np.float64)

        self._last = apply
        return apply

    def on(self, gram: AugmentedKernel, at: Positions) -> Callable[[Floats], Floats]:
        """The same as a function of what the free points alone have."""
        free = np.zeros(gram.count, dtype=bool)
        free[at] = True
        apply = self.preconditioner(gram, free)

        def restricted(vector: Floats) -> Floats:
            whole = np.zeros(gram.count)
            whole[at] = vector
            return apply(whole)[at]

        return restricted


def lower_factor(matrix: Floats, ridge: float = 0.0) -> Floats:
    """The Cholesky factor of a matrix with a ridge, by default none, as a share of its diagonal.

    Where rounding has left the matrix indefinite, the ridge is as large as it takes: a
    preconditioner need not be exact.
    """
    mean, ones = float(np.abs(np.diag(matrix)).mean()), np.eye(len(matrix))
    for attempt in (ridge, *np.logspace(-10, 2, 7)):
        try:
            return linalg.cholesky(matrix + attempt * mean * ones, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
    raise ValueError(
        "the kernel matrix of the points has no meaning in double precision: rescale the features "
        'of X, for example by sklearn.preprocessing.StandardScaler, or use kernel="rbf"'
    )


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
