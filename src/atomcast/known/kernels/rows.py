"""The part of a kernel matrix that belongs to some points, of which only some rows are needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


class RowRecipe(NamedTuple):
    """How the rows of a matrix that are not there yet come about, as compiled loops take it.

    Parameters
    ----------
    diagonal : array of shape (n,)
        Of the matrix.
    done : bool array of shape (n,), or (0,)
        Which rows are there; nothing if all are.
    slot : int array of shape (n + 1,), or (0,)
        Where each row stands, or -1: the next place then, which comes last. Rows that are needed
        soon after each other are then neighbours, and memory that no row needs is not touched.
    points : array of shape (d, n)
        In single precision and in units of the kernel, which is exp(-|x - z|^2).
    codes : uint8 array of shape (n,)
        The class of each point.
    other : float32
        The product of two labels that differ.
    owner : int array of shape (m,), or (0,)
        Where there is no room for all rows, which one stands in each place; nothing if there is.
    stamp : int array of shape (m + 1,), or (0,)
        When each place was last asked for, which comes last: the row that was not for longest makes
        room for the next.
    """

    diagonal: Floats
    done: NDArray[np.bool_]
    slot: Positions
    points: NDArray[np.float32]
    codes: NDArray[np.uint8]
    other: Any
    owner: Positions
    stamp: Positions

    @classmethod
    def filled_as_needed(
        cls,
        diagonal: Floats,
        points: NDArray[np.float32],
        codes: NDArray[np.uint8],
        other: Any,
        room: int,
    ) -> RowRecipe:
        """That of a matrix of which no row is there yet, with room for some."""
        count, short = len(codes), room < len(codes)
        slot, done = np.full(count + 1, -1), np.zeros(count, dtype=np.bool_)
        slot[-1] = 0
        owner, stamp = np.zeros(short * room, np.int64), np.zeros(short * (room + 1), np.int64)
        return cls(diagonal, done, slot, points, codes, other, owner, stamp)

    @classmethod
    def whole(cls, diagonal: Floats) -> RowRecipe:
        """That of a matrix of which all rows are there."""
        nothing = np.empty((0, 0), np.float32)
        codes, done, slot = np.empty(0, np.uint8), np.empty(0, np.bool_), np.empty(0, np.int64)
        return cls(diagonal, done, slot, nothing, codes, np.float32(1.0), slot, slot)


class Rows:
    """Rows of a matrix at some points, each taken out of it when it is first needed.

    Whoever descends coordinate by coordinate needs few of them, many times, and short.

    Parameters
    ----------
    matrix : array of shape (m, m)
        Symmetric.
    points : array of shape (k,)
        Increasing positions. If they are the first k ones, nothing is taken out.
    recipe : RowRecipe, optional
        Where not all rows of the matrix are there.
    ridge : array of shape (k,), optional
        What the diagonal has beside the kernel.
    """

    def __init__(
        self,
        matrix: NDArray[Any],
        points: Positions,
        recipe: RowRecipe | None = None,
        ridge: Floats | None = None,
    ) -> None:
        count, self.ridge = len(points), ridge
        if recipe is None:
            recipe = RowRecipe.whole(matrix.diagonal().astype(np.float64))
        self.matrix, self.points, self.recipe = matrix, points.astype(np.uint64), recipe
        self.values, self.place = matrix, np.arange(count + 1)
        if len(recipe.done) == count:
            self.place = recipe.slot
        elif count and points[-1] >= count:
            # What is not filled takes no memory.
            self.values, self.place = np.empty((count, count), matrix.dtype), np.full(count + 1, -1)
            self.place[count] = 0

    def __len__(self) -> int:
        return len(self.points)

    @property
    def parts(self) -> tuple[Any, Any, Any, Any, Any]:
        """What compiled loops take."""
        return self.matrix, self.points, self.values, self.place, self.recipe

    @property
    def room(self) -> int:
        """How many rows can be there at a time."""
        return len(self.recipe.owner) or len(self)

    def at(self, some: Positions) -> Rows:
        """The same at some of the points.

        Where there is not room for all rows, these take the place of the others, which are lost.
        """
        ridge = None if self.ridge is None else self.ridge[some]
        if len(self.recipe.owner):
            return self._instead(some, ridge)
        return Rows(self.matrix, self.points[some].astype(np.int64), self.recipe, ridge)

    def _instead(self, some: Positions, ridge: Floats | None) -> Rows:
        """Rows of some points in the memory of these."""
        old, count = self.recipe, len(some)
        old.done[:], old.slot[:], old.stamp[:] = False, -1, 0
        old.slot[-1] = 0
        room = min(self.matrix.size // count, count)
        matrix = self.matrix.reshape(-1)[: room * count].reshape(room, count)
        points = np.ascontiguousarray(old.points[:, some])
        recipe = RowRecipe.filled_as_needed(
            old.diagonal[some], points, old.codes[some], old.other, room
        )
        return Rows(matrix, np.arange(count), recipe, ridge)

    def between(self, some: Positions) -> Floats:
        """The part at some rows and columns, without the ridge, in double precision."""
        recipe, at = self.recipe, self.points[some]
        if len(recipe.done):
            x, codes = recipe.points[:, at].astype(np.float64), recipe.codes[at]
            squares = np.einsum("ij,ij->j", x, x)
            distances = np.maximum(squares[:, None] + squares - 2.0 * x.T @ x, 0.0)
            values = np.where(codes[:, None] == codes, 1.0, float(recipe.other))
            values *= np.exp(-distances) + 1.0
        else:
            values = self.matrix[np.ix_(at, at)].astype(np.float64)
        np.fill_diagonal(values, self.kernel_diagonal[some])
        return values

    def without_ridge(self, some: Positions) -> Floats:
        """Some rows of the kernel alone, in double precision, shape (m, k)."""
        values = np.empty((len(some), len(self)))
        for start in range(0, len(some), self.room):
            part = slice(start, start + self.room)
            values[part] = self.values[self.places(some[part]), : len(self)]
        values[np.arange(len(some)), some] = self.kernel_diagonal[some]
        return values

    @property
    def kernel_diagonal(self) -> Floats:
        """The diagonal without the ridge, shape (k,)."""
        assert self.ridge is not None
        diagonal: Floats = self.recipe.diagonal[self.points] - self.ridge
        return diagonal

    def places(self, used: Positions) -> NDArray[np.uint64]:
        """Where some rows stand among `values`, taken out if they were not yet.

        They may be no more than there is room for.
        """
        from atomcast.known.kernels._row_loops import fetch

        fetch(*self.parts, used)
        return self.place[used].astype(np.uint64)

    def combined(self, weights: Floats) -> Floats:
        """The sum of all rows times their weights, of which many may be zero, shape (k,)."""
        from atomcast.known.kernels._row_loops import combined

        used, out = np.flatnonzero(weights), np.empty(len(self))
        combined(*self.parts, used, weights[used], out)
        return out
