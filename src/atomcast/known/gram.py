"""The Gram matrix of the known atoms, and the inverse of a part of it, both updated in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dposv, dpotrf, dpotri

if TYPE_CHECKING:
    from atomcast.known.active_set import ActiveSet

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: No matrix of products is made for more weights than these, with which it takes 2 GiB.
MOST_WEIGHTS = 1 << 14
#: A direction that keeps less than this share of its squared length counts as dependent.
DEPENDENT = 1e-11
#: One that keeps more than this is independent without a closer look,
SAFE = 1e-6
#: and one that keeps less than so many times what rounding makes is not.
NOISY = 100.0
#: So many rows of a matrix are turned at a time.
STRIP = 64
NOTHING: Floats = np.zeros((0, 0))


class Gram:
    """The products A' H A of the known atoms under a fixed curvature H; grows with the atoms."""

    def __init__(self) -> None:
        self.count = 0
        self._buffer = np.empty((0, 0))
        #: The inverse of the part that belongs to the last face, if anybody has kept it.
        self.face: Face | None = None
        #: Whether one problem after the other is about these atoms, so that it is worth keeping.
        self.lasting = False

    @property
    def buffer(self) -> Floats:
        """The Gram matrix with room for more; nothing is said of what is in there."""
        return self._buffer

    @property
    def matrix(self) -> Floats:
        """The Gram matrix, shape (count, count)."""
        return self._buffer[: self.count, : self.count]

    def extend(self, active: ActiveSet) -> None:
        """Add the rows and columns of the atoms that have come since the last call."""
        old, new = self.count, len(active)
        if old == new:
            return
        if new > len(self._buffer):
            side = max(new, min(2 * len(self._buffer), MOST_WEIGHTS), 64)
            larger = np.empty((side, side))
            larger[:old, :old] = self.matrix
            self._buffer = larger
        products = active.products(old, new)
        self._buffer[:new, old:new] = products
        self._buffer[old:new, :old] = products[:old].T
        self.count = new


class Face:
    """The inverse of a part of a Gram matrix, in buffers that compiled code changes in place."""

    def __init__(self) -> None:
        self.size = 0
        self.chosen: Positions = np.empty(0, dtype=np.int64)
        self.inverse = np.empty((0, 0))

    def make_room(self, side: int) -> None:
        """Let the buffers be as large as this."""
        if side > len(self.chosen):
            inverse, chosen = np.empty((side, side)), np.empty(side, dtype=np.int64)
            inverse[: self.size, : self.size] = self.inverse[: self.size, : self.size]
            chosen[: self.size] = self.chosen[: self.size]
            self.inverse, self.chosen = inverse, chosen

    def set(self, gram: Floats, chosen: Positions) -> None:
        """Invert the part of a Gram matrix that belongs to some positions."""
        self.size = k = len(chosen)
        self.chosen[:k] = chosen
        if k:
            self.inverse[:k, :k] = inverted(gram[np.ix_(chosen, chosen)])


class Inverse:
    """The inverse of a positive definite matrix that gains and loses rows, in O(k^2) for each."""

    def __init__(self) -> None:
        self.size = 0
        self._buffer = np.empty((0, 0))

    @property
    def matrix(self) -> Floats:
        """The inverse, shape (size, size)."""
        return self._buffer[: self.size, : self.size]

    def _resize(self, size: int) -> None:
        if size > len(self._buffer):
            larger = np.empty((max(size, 2 * len(self._buffer), 64),) * 2)
            larger[: self.size, : self.size] = self.matrix
            self._buffer = larger
        self.size = size

    def set(self, matrix: Floats) -> None:
        """Take over an inverse that was computed elsewhere, shape (size, size)."""
        self._buffer, self.size = np.array(matrix), len(matrix)

    def append(
        self, across: Floats, corner: Floats, old: Callable[[], Floats] = lambda: NOTHING
    ) -> Positions:
        """Add rows to the matrix: products with the old rows, and among themselves.

        Returns which of the new rows, in order, were independent of the others and added.

        Parameters
        ----------
        across : array of shape (size, m)
        corner : array of shape (m, m)
        old : callable
            Returns the matrix of the old rows, where there are any.
        """
        projected = self.matrix @ across
        schur = corner - across.T @ projected
        if not clearly_independent(schur, corner.diagonal()):
            return self._append_doubtful(old(), across, corner)
        size = self.size
        corner_inverse = solved(schur, np.eye(len(schur)))
        corner_inverse = 0.5 * (corner_inverse + corner_inverse.T)
        side = projected @ corner_inverse
        self._resize(size + len(schur))
        self._buffer[:size, :size] += side @ projected.T
        self._buffer[:size, size : self.size] = -side
        self._buffer[size : self.size, :size] = -side.T
        self._buffer[size : self.size, size : self.size] = corner_inverse
        return np.arange(len(schur))

    def _append_doubtful(self, old: Floats, across: Floats, corner: Floats) -> Positions:
        """The same for rows that all but depend on each other, afresh.

        Products with an inverse lose as many digits as the inverse is large beside what it is an
        inverse of; those with a factor do not.
        """
        factor, failed = dpotrf(old, lower=True) if len(old) else (old, 0)
        if failed:  # rounding made it singular
            projected = self.matrix @ across
            schur = corner - across.T @ projected
        else:
            half = solve_triangular(factor, across, lower=True, check_finite=False)
            projected = solve_triangular(factor.T, half, check_finite=False)
            schur = corner - half.T @ half
        lengths = corner.diagonal()
        # A rest is a product of the row, less a mix of old ones, with itself: so large are the
        # terms of that, and their rounding.
        terms = (np.sqrt(old.diagonal()) @ np.abs(projected) + np.sqrt(lengths)) ** 2
        kept = independent_rows(schur, lengths, terms)
        if len(kept):
            across, corner = across[:, kept], corner[np.ix_(kept, kept)]
            self.set(inverted(np.block([[old, across], [across.T, corner]])))
        return kept

    def remove(self, rows: Positions) -> Positions:
        """Remove rows; returns the order in which the remaining ones now stand."""
        order = np.arange(self.size)
        last = self.size
        for row in np.sort(rows)[::-1]:
            last -= 1
            if row != last:  # swap to the end: O(k), where closing the hole would be O(k^2)
                swap = [row, last]
                self._buffer[swap, : self.size] = self._buffer[swap[::-1], : self.size]
                self._buffer[: self.size, swap] = self._buffer[: self.size, swap[::-1]]
                order[swap] = order[swap[::-1]]
        side = self._buffer[:last, last : self.size]
        corner = self._buffer[last : self.size, last : self.size]
        self._buffer[:last, :last] -= side @ solved(corner, side.T)
        self.size = last
        return order[:last]


def solved(matrix: Floats, right: Floats) -> Floats:
    """The solution of equations with a positive definite matrix, for one or more right sides."""
    _factor, solution, failed = dposv(matrix, right)
    if failed:  # rounding made it singular; its user notices and starts afresh
        solution = np.linalg.pinv(matrix, hermitian=True) @ right
    return solution


def inverted(matrix: Floats) -> Floats:
    """The inverse of a positive definite matrix."""
    factor, failed = dpotrf(matrix, lower=True)
    inverse, failed = (factor, failed) if failed else dpotri(factor, lower=True, overwrite_c=True)
    if failed:
        return solved(matrix, np.eye(len(matrix)))
    for k in range(0, len(inverse), STRIP):  # the other half; all at once would miss the cache
        inverse[k : k + STRIP, k + STRIP :] = inverse[k + STRIP :, k : k + STRIP].T
        corner = np.tril(inverse[k : k + STRIP, k : k + STRIP])
        inverse[k : k + STRIP, k : k + STRIP] = corner + np.tril(corner, -1).T
    return inverse


def clearly_independent(schur: Floats, lengths: Floats) -> bool:
    """Whether all rows of a Schur complement are independent, without a closer look."""
    factor, failed = dpotrf(schur)
    return not failed and bool((factor.diagonal() ** 2 > SAFE * lengths).all())


def independent_rows(schur: Floats, lengths: Floats, terms: Floats) -> Positions:
    """Rows of a Schur complement, taken greedily in order, that are safely independent.

    `lengths` are those of the rows before they were projected, `terms` the sizes of what was
    subtracted: where that cancels, rounding leaves a rest of any row.
    """
    rest, kept, mixes = schur.copy(), [], np.eye(len(schur))
    sizes = np.sqrt(np.maximum(terms, 0.0))
    for j in range(len(schur)):
        # What is left of a row is the product of a mix of rows with itself.
        noise = np.finfo(float).eps * float(np.abs(mixes[j]) @ sizes) ** 2
        if rest[j, j] > max(DEPENDENT * lengths[j], NOISY * noise):
            kept.append(j)
            ratio = rest[j + 1 :, j] / rest[j, j]
            rest[j + 1 :] -= np.outer(ratio, rest[j])
            mixes[j + 1 :] -= np.outer(ratio, mixes[j])
    return np.array(kept, dtype=np.int64)
