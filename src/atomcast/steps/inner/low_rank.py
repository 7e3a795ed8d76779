"""The best weights of a kernel machine whose kernel matrix is nearly of low rank.

Points of two or three features, or a wide kernel, have a matrix K~ = G G' + D up to a small rest,
where G has few columns and D is diagonal. Then the machine is one in as many dimensions as G has
columns, where Newton's method takes a few steps that cost next to nothing. What the rest does to
the margins is made up for: they are computed as they are, and the machine is fitted again to what
they fall short of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

from atomcast.known.columns import grown
from atomcast.known.kernels.rows import Rows

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Ranks that are low, in the matrix of so many times as many points.
RANKS, SMALL = (128, 256, 512), 8
#: So many points at a time are looked at for those that the others are combinations of. Where
#: nearly all of the first ones, as many as the largest rank, are none, it is not low.
SOME, FULL = 64, 0.95
#: Combinations need not be better than this share of 1/C, or than single precision allows.
REST, LEAST = 0.03, 1e-5
#: Newton's method takes so many steps at most, none of them shorter than this.
STEPS, SHORTEST = 50, 1e-6
#: Where the gap does not fall to this share, the rest is too large to be made up for.
FALL = 0.5


class PivotedFactor:
    """A Cholesky factor of the kernel of some rows with pivots, of which many are taken at a time.

    Parameters
    ----------
    rows : Rows
        With a ridge.
    """

    def __init__(self, rows: Rows) -> None:
        assert rows.ridge is not None
        self.rows, self.rank, self.factor = rows, 0, np.empty((0, len(rows)))
        #: What the diagonal of the kernel has beside that of the product of the factors.
        self.rest = rows.kernel_diagonal
        self._start = float(self.rest.max())
        self._enough = max(REST * float(rows.ridge.min()), LEAST)

    @property
    def complete(self) -> bool:
        """Whether next to nothing is left out."""
        return bool(self.rest.max() <= self._enough)

    def reaches(self, most: int) -> bool:
        """Whether a rank of at most so much leaves next to nothing."""
        some = np.linspace(0, len(self.rows) - 1, most).astype(np.int64)
        while not self.complete:
            if self.rank:
                if not self._promising(most):
                    return False
                some = np.sort(np.argpartition(self.rest, -SOME)[-SOME:])
            if not self._grow(some, most):
                return False
        return True

    def inverse(self, at: Positions) -> Callable[[Floats], Floats]:
        """The inverse of the matrix of some points, but for what the rank leaves out."""
        assert self.rows.ridge is not None
        factor = np.ascontiguousarray(self.factor[: self.rank, at])
        weight = 1.0 / (self.rows.ridge + np.maximum(self.rest, 0.0))[at]
        inner = np.eye(self.rank) + (factor * weight) @ factor.T
        solved = linalg.cho_factor(inner, overwrite_a=True, check_finite=False)

        def apply(vector: Floats) -> Floats:
            scaled = weight * vector
            middle = linalg.cho_solve(solved, factor @ scaled, check_finite=False)
            return scaled - weight * (middle @ factor)

        return apply

    def _promising(self, most: int) -> bool:
        """Whether the rest will be small enough if it falls as it has fallen so far."""
        mean = float(np.maximum(self.rest, self._enough).mean())
        wanted, seen = (np.log(self._start / level) for level in (self._enough, mean))
        return bool(self.rank * wanted <= most * seen)

    def _grow(self, some: Positions, most: int) -> bool:
        """Take pivots among some points; False if these are too many, or nearly all at first."""
        rows, rank, known = self.rows, self.rank, self.factor[: self.rank]
        block = rows.between(some) - known[:, some].T @ known[:, some]
        lower, order, new, _ = lapack.dpstrf(block, tol=self._enough, lower=1, overwrite_a=True)
        if rank + new > most or (not rank and new > FULL * most):
            return False
        marks, self.factor = some[order[:new] - 1], grown(self.factor, rank, rank + new)
        across = rows.without_ridge(marks) - known[:, marks].T @ known
        more = linalg.solve_triangular(
            lower[:new, :new], across, lower=True, overwrite_b=True, check_finite=False
        )
        self.factor[rank : rank + new], self.rank = more, rank + new
        self.rest = self.rest - np.einsum("ij,ij->j", more, more)
        return True


@dataclass
class LowRankMachine:
    """A machine with K~ = G G' + D.

    Parameters
    ----------
    factor : array of shape (n, r)
        G, with the sides of the points.
    cost : array of shape (n,)
        The inverse of D.
    """

    factor: Floats
    cost: Floats

    @classmethod
    def of(cls, found: PivotedFactor, side: Floats) -> LowRankMachine:
        """That of a factor."""
        ridge = found.rows.ridge + np.maximum(found.rest, 0.0)
        return cls(np.ascontiguousarray((found.factor[: found.rank] * side).T), 1.0 / ridge)

    def margins(self, beta: Floats) -> Floats:
        """K~ beta."""
        return self.factor @ (beta @ self.factor) + beta / self.cost

    def fitted(self, beta: Floats, aim: Floats) -> Floats:
        """The weights at which no margin falls short of its aim, from others near them.

        In the primal: min |w|^2 / 2 + sum(cost max(0, aim - G w)^2) / 2, beta = cost max(0, ...).
        """
        factor, cost, used = self.factor, self.cost, np.zeros(len(beta), dtype=bool)
        inner, w = np.eye(factor.shape[1]), np.zeros(factor.shape[1])
        # The first step goes to the best weights where those stand that are not zero.
        short, free, value = aim, beta > 0.0, np.inf
        for _ in range(STEPS):
            for sign, changed in ((1.0, free & ~used), (-1.0, used & ~free)):
                part = factor[changed]
                inner += sign * part.T @ (cost[changed, None] * part)
            used, slope = free, np.where(free, cost * short, 0.0) @ factor - w
            towards = linalg.solve(inner, slope, assume_a="pos", check_finite=False)
            image, length = factor @ towards, 1.0
            while (found := self._value(w + length * towards, short - length * image)) > value:
                length *= 0.5
                if length < SHORTEST:
                    return cost * np.maximum(short, 0.0)
            w, short, value = w + length * towards, short - length * image, found
            free = short > 0.0
            if length == 1.0 and np.array_equal(free, used):
                break
        return cost * np.maximum(short, 0.0)

    def _value(self, w: Floats, short: Floats) -> float:
        short = np.maximum(short, 0.0)
        return 0.5 * float(w @ w) + 0.5 * float(short @ (self.cost * short))


def descend_by_rank(
    found: PivotedFactor, side: Floats, beta: Floats, margins: Floats, tolerance: float
) -> bool:
    """Improve weights and their margins in place; whether the relative gap is small in the end."""
    rows, low = found.rows, LowRankMachine.of(found, side)
    gap, last = relative_gap(beta, margins), np.inf
    while gap > tolerance:
        if gap > FALL * last:
            return False
        better = low.fitted(beta, 1.0 - margins + low.margins(beta))
        image = margins + side * rows.combined(side * (better - beta))
        last, gap = gap, relative_gap(better, image)
        if gap >= last:
            return False
        beta[:], margins[:] = better, image
    return True


def relative_gap(beta: Floats, margins: Floats) -> float:
    """The gap of a machine as a share of its objective."""
    square = float(beta @ margins)
    return 2.0 * (1.0 - float(margins.min()) * float(beta.sum()) / square) if square > 0 else np.inf
