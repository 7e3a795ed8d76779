"""Greedy m-centers (Algorithm 4): each center is the atom farthest from those before it.

An atom's distance to its nearest center only ever falls as centers are added, so that an old value
is an upper bound. Only atoms whose bound is among the largest are compared with new centers: a
pool of them in every step, which yields one center after the other until its best is no longer
above the bounds of all others. Then those with the largest bounds catch up with all centers that
they have not seen, many at a time, and the pool is made anew. The others are never looked at.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.proposals import TIE

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Atoms are compared in parts of about this many numbers, which stay in cache.
PIECE = 1 << 17
#: At least and at most so many atoms are compared at a time, and with at most so many centers.
FEWEST, MOST, MOST_CENTERS = 64, 4096, 256


class Space(Protocol):
    """Atoms that are at a distance from each other."""

    #: About how many numbers one of them is.
    width: int

    def take(self, rows: Rows) -> Self:
        """Some of them, by position."""
        ...

    def nearest(self, others: Self) -> Floats:
        """How far each of these is from the nearest of some others, shape (n,).

        The distance of two atoms must not depend on which others they are compared with, but for
        rounding.
        """
        ...


class GreedyCenters:
    """Centers among some atoms, each the one farthest from those before it.

    Distances that agree to 1e-12 are a tie, and the first atom wins: rounding depends on which
    atoms are compared at a time, and on where they are. No atom is a center twice.

    Parameters
    ----------
    space : Space
        All atoms of a process.
    rows : array of shape (n_i,)
        The atoms of one node.
    """

    def __init__(self, space: Space, rows: Rows) -> None:
        self.members, self._space = rows, space
        self._size = min(max(PIECE // max(self._space.width, 1), FEWEST), MOST)
        self._centers: list[int] = []
        # How far each member is, at most, from its nearest center, and how many centers it has
        # been compared with. Centers themselves are out of question: below zero.
        self._bound: Floats = np.full(len(rows), np.inf)
        self._seen: Rows = np.zeros(len(rows), dtype=np.int64)
        self._pool = _Pool(rows[:0], self._space.take(rows[:0]), self._bound)

    @property
    def centers(self) -> list[int]:
        """The centers so far, in the order in which they were chosen."""
        chosen: list[int] = self.members[self._centers].tolist()
        return chosen

    @property
    def radius(self) -> float:
        """The largest distance from an atom to its nearest center; inf before there is one."""
        if len(self._centers) == len(self.members):
            return 0.0
        return self._farthest()[1] if self._centers else np.inf

    def grow(self, count: int) -> None:
        """Add centers until there are `count`; the first is the first atom."""
        if count >= len(self.members):  # every atom is one: nothing to compare
            self._centers += np.setdiff1d(np.arange(len(self.members)), self._centers).tolist()
        while len(self._centers) < count < len(self.members):
            member = self._farthest()[0] if self._centers else 0
            self._centers.append(member)
            self._bound[member] = -1.0
            self._pool.see(member, self._taken([member]))

    def _farthest(self) -> tuple[int, float]:
        """The member farthest from its nearest center, and how far it is; there must be one."""
        best, size = self._pool.best(), self._size
        while best is None:
            self._fill(size)
            best = self._pool.best()
            if best is None and size >= len(self.members):  # near ties; but now all are known
                best = farthest(self._bound)
            size *= 2  # others may be farther yet: more of them at a time
        return best

    def _fill(self, size: int) -> None:
        """Compare those with the largest bounds with all centers, and pool the best of them."""
        self._bound[self._pool.rows] = self._pool.bound
        self._seen[self._pool.rows] = len(self._centers)
        chosen = first_of(self._bound, np.arange(len(self._bound)), size)
        self._catch_up(chosen[self._seen[chosen] < len(self._centers)])
        rows = first_of(self._bound[chosen], chosen, self._size)
        self._pool = _Pool(rows, self._space.take(self.members[rows]), self._bound)

    def _catch_up(self, rows: Rows) -> None:
        """Lower the bounds of some members to their distance from the nearest center."""
        rows = rows[np.argsort(self._seen[rows], kind="stable")]
        for start in range(0, len(rows), self._size):
            part = rows[start : start + self._size]
            space, bound = self._space.take(self.members[part]), self._bound[part]
            for first in range(int(self._seen[part[0]]), len(self._centers), MOST_CENTERS):
                centers = self._taken(self._centers[first : first + MOST_CENTERS])
                np.minimum(bound, space.nearest(centers), out=bound)
            self._bound[part] = bound
        self._seen[rows] = len(self._centers)

    def _taken(self, centers: list[int]) -> Any:
        return self._space.take(self.members[centers])


class _Pool:
    """Members that have been compared with all centers, and what is known of the others."""

    def __init__(self, rows: Rows, space: Any, bound: Floats) -> None:
        self.rows, self.space, self.bound = rows, space, bound[rows]
        others = bound.copy()
        others[rows] = -np.inf
        self._limit = float(np.max(others, initial=-np.inf))  # no other is farther than that
        tied = np.flatnonzero(others >= self._limit * (1 - 2 * TIE))
        self._first = int(tied[0]) if len(tied) else len(bound)

    def see(self, member: int, center: Any) -> None:
        """Take notice of a new center, which is one of the members."""
        if len(self.rows):
            np.minimum(self.bound, self.space.nearest(center), out=self.bound)
            self.bound[self.rows == member] = -1.0

    def best(self) -> tuple[int, float] | None:
        """The farthest member of all, and how far it is; None where it may be another."""
        if not len(self.rows):
            return None
        at, top = farthest(self.bound)
        best = int(self.rows[at])
        certain = top >= 0 and top * (1 - TIE) > self._limit
        # Among equals the first one wins, also over those who might turn out to be equal.
        equal = top >= 0 and top >= self._limit * (1 - TIE) and best < self._first
        return (best, top) if certain or equal else None


def farthest(bound: Floats) -> tuple[int, float]:
    """Which is the largest, the first one among equals, and how large it is."""
    top = float(bound.max())
    if np.isnan(top):
        raise ValueError(
            'selection="m-centers" met a distance between two atoms that is not finite: their '
            "values are too large for it; scale the data"
        )
    return int(np.argmax(bound >= top * (1 - TIE))), top


def first_of(bound: Floats, members: Rows, size: int) -> Rows:
    """So many members with the largest bounds, the first ones among equals; in order.

    Centers, whose bounds are below zero, are not among them.
    """
    level = -1.0
    if size < len(members):
        level = float(np.partition(bound, len(bound) - size)[len(bound) - size])
    if level < 0:
        return members[bound >= 0]
    if level == np.inf:
        return members[np.flatnonzero(bound == level)[:size]]
    above = np.flatnonzero(bound > level * (1 + TIE))
    equal = np.flatnonzero(np.abs(bound - level) <= TIE * level)
    return np.asarray(members[np.sort(np.concatenate((above, equal[: size - len(above)])))])
