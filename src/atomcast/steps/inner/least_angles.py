"""The whole path of least squares within a growing ball, exact: least angle regression.

The best weights are linear in the radius between corners, at each of which one weight joins those
in use or leaves them. From corner to corner takes a few products with vectors: where a table is
small, all radii together take less time than a round for each, and no compiler is waited for.

While the level of the slopes falls, all that can happen comes nearer at a speed of its own, or goes
away: weights in use to zero, where they leave, and slopes to the level, where weights join. What
arrives first is the next corner; there, one speed changes, and with it the inverse of the products
of the columns in use, by a multiple of the same vector.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy, dsymv, dsyr

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: A column that keeps no more than this share of its square beside those in use depends on them.
DEPENDENT = 1e-9
#: Where the level is this share of the first one, the path ends: what is left is rounding.
NEAR = 1e-9
#: With so many corners a weight, in the mean, the way is lost.
CORNERS = 8
#: Numbers that are arrays already need not be made arrays at every corner.
ZERO, ONE = np.zeros(()), np.ones(())


class LeastAngles:
    """The weights of all radii, found as far as somebody asks for them.

    Parameters
    ----------
    columns : array of shape (d, n)
    target : array of shape (d,)
    signed : bool, default=True
        Whether weights may be negative.
    products : callable, optional
        The products of a column with all columns, if they are known.

    Attributes
    ----------
    lost : bool
        Whether the path could not be followed: columns depend on each other, or seem to.
    """

    def __init__(
        self,
        columns: Floats,
        target: Floats,
        signed: bool = True,
        products: Callable[[int], Floats] | None = None,
    ) -> None:
        rows = np.ascontiguousarray(columns.T)
        self._signed, self._products = signed, products or (lambda column: rows.dot(rows[column]))
        with np.errstate(all="ignore"):
            self._squares = np.einsum("ij,ij->i", rows, rows).tolist()
            slopes: Floats = rows @ target
        # The slope of a column, and for weights below zero that of its opposite.
        slopes = np.concatenate([slopes, -slopes]) if signed else slopes
        first = int(slopes.argmax())
        self._level = max(float(slopes[first]), 0.0)
        #: Of those in use: columns, signs of weights, products of columns with all others times
        #: the signs, and the inverse of products with each other, with room for some more, of
        #: which only what is on and above the diagonal counts.
        self._used, rank = 0, min(columns.shape)
        self._chosen, self._signs = np.zeros(rank, dtype=np.int64), np.zeros(rank)
        self._rows = np.empty((rank, len(rows)))
        self._inverse = np.zeros((0, 0), order="F")
        self._down = np.full(rank, -1.0)
        #: Of weights in use, as many as can be, and of columns that may join, with either sign.
        self._distance = np.concatenate([np.full(rank, math.inf), self._level - slopes])
        self._speed = np.ones(len(self._distance))
        self._rate = np.empty(len(self._distance))
        self._shrinking, self._rising, self._falling = np.split(
            self._speed, [rank, rank + len(rows)]
        )
        #: Radius, level, columns in use, signs and sizes of their weights at each corner.
        self._radii, self._levels = [0.0], [self._level]
        self._corners = [(self._chosen, self._signs, self._distance[:0])]
        self._ended = not self._level > 0.0
        if not self._ended:
            with np.errstate(all="ignore"):  # what is out of scale, gaps will tell
                self._join(rank + first)
        self.lost = not (self._ended or self._used)

    def penalty(self, radius: float) -> float:
        """What the sum of squares falls by, for each unit that the radius grows."""
        self._go(radius)
        return 2.0 * float(np.interp(radius, self._radii, self._levels))

    def norm(self, radius: float) -> float:
        """The norm of the weights: the radius, unless all is explained before."""
        self._go(radius)
        return min(radius, self._radii[-1])

    def weights(self, radii: Iterable[float]) -> Floats:
        """The best weights of some radii, shape (radii, n)."""
        radii = list(radii)
        found = np.zeros((len(radii), len(self._squares)))
        for weights, radius in zip(found, radii, strict=True):
            self._go(radius)
            radius = min(radius, self._radii[-1])
            after = bisect_left(self._radii, radius)
            if after == 0:
                continue
            before = self._radii[after - 1]
            share = (radius - before) / (self._radii[after] - before)
            for corner, part in ((after, share), (after - 1, 1.0 - share)):
                chosen, signs, sizes = self._corners[corner]
                used = len(sizes)
                weights[chosen[:used]] += part * signs[:used] * sizes
        return found

    def _go(self, radius: float) -> None:
        """Find corners until one is as far out as this."""
        with np.errstate(all="ignore"):
            while self._radii[-1] < radius and not (self._ended or self.lost):
                self._next()

    def _next(self) -> None:
        """Go to the next corner."""
        used, level, speed, distance = self._used, self._level, self._speed, self._distance
        along = speed[:used].dot(self._rows[:used])
        np.add(ONE, along, out=self._rising)
        if self._signed:
            np.subtract(ONE, along, out=self._falling)
        # How often each would arrive in a unit, rather than when: what comes first has the largest,
        # and what goes away one below zero.
        rate = np.divide(speed, distance, out=self._rate)
        first = int(rate.argmax())
        soonest, leaves = rate.item(first), first < len(self._chosen)
        if math.isnan(soonest):  # it keeps the level, as a copy of one in use does
            self.lost = leaves
            self._leave_out((first - len(self._chosen)) % len(self._squares))
            return
        self._ended = soonest * (level - NEAR * self._levels[0]) <= 1.0
        step = level if self._ended else 1.0 / soonest
        daxpy(speed, distance, a=-step)
        np.maximum(distance, ZERO, out=distance)
        if not self._ended:
            distance[first] = 0.0  # whatever rounding says
        self._level = level - step
        sizes = distance[:used]
        self._levels.append(self._level)
        self._radii.append(-float(self._down[:used].dot(sizes)))
        self._corners.append((self._chosen, self._signs, sizes.copy()))
        if not self._ended:
            self._leave(first) if leaves else self._join(first)

    def _join(self, place: int) -> None:
        """Let one more weight be in use."""
        used, rank, speed = self._used, len(self._chosen), self._speed.item(place)
        down, atom = divmod(place - rank, len(self._squares))
        sign = -1.0 if down else 1.0
        self._leave_out(atom)
        if used == rank:
            return
        if used == len(self._inverse):
            self._make_room()
        row, across = self._rows[used], np.zeros(len(self._inverse))
        np.multiply(self._products(atom), sign, out=row)
        np.multiply(row[self._chosen[:used]], self._signs[:used], out=across[:used])
        beside = dsymv(1.0, self._inverse, across)
        rest = self._squares[atom] - float(across.dot(beside))
        if not rest > DEPENDENT * self._squares[atom]:
            return
        self._chosen[used], self._signs[used] = atom, sign
        self._distance[used] = self._speed[used] = 0.0
        self._used += 1
        beside[used] = -1.0
        self._turn(1.0 / rest, beside, speed)

    def _leave_out(self, atom: int) -> None:
        """Let a column not join any more: it is in use, or depends on those that are."""
        self._distance[len(self._chosen) + atom :: len(self._squares)] = math.inf

    def _leave(self, place: int) -> None:
        """Let a weight be out of use: the last one takes its place."""
        inverse = self._inverse
        gone = inverse[place].copy()
        gone[:place] = inverse[:place, place]
        self._turn(-1.0 / gone[place], gone, self._speed.item(place))
        self._used = last = self._used - 1
        # But for rounding, it has the slope of those in use, and will have less than they have.
        sides = self._distance[len(self._chosen) + self._chosen[place] :: len(self._squares)]
        sides[:] = 2.0 * self._level
        sides[0 if self._signs[place] > 0.0 else 1] = 0.0
        inverse[:place, place] = inverse[:place, last]
        inverse[place, place:last] = inverse[place:last, last]
        inverse[place, place] = inverse[last, last]
        inverse[:, last] = 0.0
        self._chosen, self._signs = self._chosen.copy(), self._signs.copy()  # corners have these
        for kept in (self._chosen, self._signs, self._rows, self._distance, self._speed):
            kept[place] = kept[last]
        self._distance[last] = math.inf
        self.lost = len(self._radii) > CORNERS * len(self._squares)

    def _turn(self, factor: float, vector: Floats, speed: float) -> None:
        """Take another direction, with a weight more or less, which came at some speed.

        A multiple of vector vector' is added to the inverse, in place.
        """
        dsyr(factor, vector, a=self._inverse, overwrite_a=1)
        daxpy(vector, self._shrinking, n=self._used, a=factor * speed)

    def _make_room(self) -> None:
        """Let more weights be in use."""
        used = self._used
        room = min(used + 16, len(self._chosen))
        inverse = np.zeros((room, room), order="F")
        inverse[:used, :used] = self._inverse
        self._inverse = inverse
