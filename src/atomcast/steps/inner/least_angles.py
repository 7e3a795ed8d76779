"""The whole path of least squares within a growing ball, exact: least angle regression.

The best weights are linear in the radius between corners, at each of which one weight joins those
in use or leaves them. From corner to corner takes a few products with vectors: where a table is
small, all radii together take less time than a round for each, and no compiler is waited for.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: A column that keeps no more than this share of its square beside those in use depends on them.
DEPENDENT = 1e-9
#: Where the level is this share of the first one, the path ends: what is left is rounding.
NEAR = 1e-9
#: With so many corners a weight, in the mean, the way is lost.
CORNERS = 8


class LeastAngles:
    """The weights of all radii, found as far as somebody asks for them.

    Parameters
    ----------
    columns : array of shape (d, n)
    target : array of shape (d,)
    signed : bool, default=True
        Whether weights may be negative.

    Attributes
    ----------
    lost : bool
        Whether the path could not be followed: columns depend on each other, or seem to.
    """

    def __init__(self, columns: Floats, target: Floats, signed: bool = True) -> None:
        self._columns, self._signed = np.ascontiguousarray(columns.T), signed
        with np.errstate(all="ignore"):
            self._squares = np.einsum("ij,ij->i", self._columns, self._columns)
            self._slopes: Floats = self._columns @ target
        #: Those that depend on others in use, which mostly do for them.
        self._left_out: list[int] = []
        self._rank = min(columns.shape)
        #: Of those in use: products with all columns, the inverse of products with each other,
        #: which they are, their signs and weights; with room for more, where all is zero.
        room = min(64, self._rank + 1)
        self._used = 0
        self._rows = np.empty((room, len(self._slopes)))
        self._inverse = np.zeros((room, room), order="F")
        self._chosen = np.zeros(room, dtype=np.int64)
        self._signs, self._weights = np.zeros(room), np.zeros(room)
        merit = np.abs(self._slopes) if signed else self._slopes
        first = int(merit.argmax())
        self._level = max(float(merit[first]), 0.0)
        self._radii, self._levels = [0.0], [self._level]
        self._corners: list[tuple[Positions, Floats]] = []
        self._keep_corner()
        self._ended = not self._level > 0.0
        if not self._ended:
            with np.errstate(all="ignore"):  # what is out of scale, gaps will tell
                self._join(first, float(np.sign(self._slopes[first])))
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
        found = np.zeros((len(radii), len(self._slopes)))
        for weights, radius in zip(found, radii, strict=True):
            self._go(radius)
            radius = min(radius, self._radii[-1])
            after = bisect_left(self._radii, radius)
            places, corner = self._corners[after]
            if after == 0:
                continue
            before = self._radii[after - 1]
            share = (radius - before) / (self._radii[after] - before)
            weights[places] = share * corner
            places, corner = self._corners[after - 1]
            weights[places] += (1.0 - share) * corner
        return found

    def _go(self, radius: float) -> None:
        """Find corners until one is as far out as this."""
        with np.errstate(all="ignore"):
            while self._radii[-1] < radius and not (self._ended or self.lost):
                self._next()

    def _next(self) -> None:
        """Go to the next corner."""
        used, level = self._used, self._level
        signs, weights = self._signs[:used], self._weights[:used]
        change = self._inverse[:, :used].dot(signs)[:used]
        along = change.dot(self._rows[:used])
        # How often each would come to the level in a unit, rather than when: what comes first has
        # the largest, and what moves away from it one below zero.
        rate = rising = (1.0 - along) / np.maximum(level - self._slopes, 0.0)
        if self._signed:
            rate = np.maximum(rising, (1.0 + along) / np.maximum(level + self._slopes, 0.0))
        rate[self._chosen[:used]] = 0.0
        if self._left_out:
            rate[self._left_out] = 0.0
        joining = int(rate.argmax())
        leaving_rate = change / -weights  # minus infinity for one that has just come
        leaving = int(leaving_rate.argmax())
        first, last = float(rate[joining]), float(leaving_rate[leaving])
        if math.isnan(first):  # it has the level, and keeps it, as a copy of one in use does
            self._left_out.append(joining)
            return
        self.lost = math.isnan(last) or len(self._radii) > CORNERS * len(self._squares)
        soonest = max(first, last)
        self._ended = soonest * (level - NEAR * self._levels[0]) <= 1.0
        step = level if self._ended else 1.0 / soonest
        radius = self._radii[-1] + step * float(signs.dot(change))
        weights += step * change
        self._slopes -= step * along
        self._level = level - step
        if not self._ended and last >= first:
            self._leave(leaving)
        self._keep_corner(radius)
        if not self._ended and last < first:
            self._join(joining, 1.0 if rising[joining] == first else -1.0)

    def _keep_corner(self, radius: float | None = None) -> None:
        """Remember where the path bends."""
        used = self._used
        self._corners.append((self._chosen[:used].copy(), self._weights[:used].copy()))
        if radius is not None:
            self._radii.append(radius)
            self._levels.append(self._level)

    def _join(self, atom: int, sign: float) -> None:
        """Let one more weight be in use."""
        used = self._used
        if used == len(self._signs):
            self._make_room()
        row = np.dot(self._columns, self._columns[atom], out=self._rows[used])
        across = row[self._chosen[:used]]
        beside = self._inverse[:, :used].dot(across)
        rest = self._squares[atom] - float(across.dot(beside[:used]))
        if used >= self._rank or not rest > DEPENDENT * self._squares[atom]:
            self._left_out.append(atom)
            return
        beside[used] = -1.0
        self._add(1.0 / rest, beside, used + 1)
        self._chosen[used], self._signs[used], self._weights[used] = atom, sign, sign * 0.0
        self._used += 1

    def _leave(self, place: int) -> None:
        """Let a weight be out of use: the last one takes its place."""
        self._used = last = self._used - 1
        # But for rounding, it has the slope of those in use, and will have less than they have.
        self._slopes[self._chosen[place]] = self._signs[place] * self._level
        inverse, gone = self._inverse, self._inverse[:, place].copy()
        self._add(-1.0 / gone[place], gone, last + 1)
        inverse[place], inverse[:, place] = inverse[last], inverse[:, last]
        inverse[place, place] = inverse[last, last]
        inverse[last] = inverse[:, last] = 0.0
        for kept in (self._rows, self._chosen, self._signs, self._weights):
            kept[place] = kept[last]
        self._signs[last] = 0.0

    def _add(self, factor: float, vector: Floats, width: int) -> None:
        """Add a multiple of vector vector' to the inverse, in place: its columns lie together."""
        dger(factor, vector, vector[:width], a=self._inverse[:, :width], overwrite_a=1)

    def _make_room(self) -> None:
        """Let more weights be in use."""
        used = self._used
        room = min(used + max(used // 4, 64), self._rank + 1)
        larger = np.zeros((room, room), order="F")
        larger[:used, :used] = self._inverse
        self._inverse = larger
        rows = np.empty((room, self._rows.shape[1]))
        rows[:used] = self._rows
        self._rows = rows
        self._chosen = np.concatenate([self._chosen, np.zeros(room - used, dtype=np.int64)])
        self._signs, self._weights = (
            np.concatenate([kept, np.zeros(room - used)]) for kept in (self._signs, self._weights)
        )
