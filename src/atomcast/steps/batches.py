"""How many atoms may join in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

#: Where nothing is sent, all of so few atoms may join at once; of more, half as many, or a share of
#: their length, and as many as are known already where nearly all of these are in use.
FREE, FREE_SHARE = 64, 4
#: Of points in a kernel space, whose kernel values cost little beside a round, so many join at
#: once, and all of so few: by default there is room for their matrix, in double precision too.
FREE_POINTS, ALL_POINTS = 8192, 16384
#: A round takes so many operations beside those of scores, and an atom that has joined so many for
#: each of its values: the inner solver goes through it about as often.
ROUND, PASSES = 5e5, 100
#: Where atoms are cheap beside a round, up to so many times the known ones join.
LEAP = 8


class Batches(Protocol):
    """A rule for the number of new atoms in a round of the corrective step.

    Attributes
    ----------
    kept : float
        Where one round had violators to spare, those of the next that violate less than this share
        of what its last winner did need not be proposed: they would hardly win.
    """

    @property
    def kept(self) -> float:
        """The share of the last violation below which atoms are not proposed."""
        ...

    def size(self, known: int, used: float) -> int:
        """How many atoms may join if so many are known, and this share of the weights is in use."""
        ...


@dataclass(frozen=True)
class GrowingBatches:
    """Batches for sparse solutions, of which hardly an atom should be sent in vain.

    The active set grows by a quarter a round, by half where nearly all weights are in use, and by
    an eighth where many are not, or where that is a large batch; by a small batch if that is more,
    or half a small one at the start and where many weights are not in use.
    """

    small: int = 10
    large: int = 100
    kept: float = 1 / 3

    def size(self, known: int, used: float) -> int:
        """How many atoms may join if so many are known, and this share of the weights is in use."""
        part = 2 if used > 0.95 else 4 if used > 0.75 else 8
        growth = min(known // part, max(known // 8, self.large))
        return max(growth, self.small if used > 0.75 else self.small // 2)


GROWING = GrowingBatches()


@dataclass(frozen=True)
class BoundedBatches:
    """Batches that are a share of the atoms known, within bounds."""

    share: float
    smallest: int
    largest: int
    kept: float = 1 / 3

    def size(self, known: int, used: float) -> int:
        """How many atoms may join if so many are known, whatever their weights."""
        return min(max(int(self.share * known), self.smallest), self.largest)


@dataclass(frozen=True)
class FreeBatches:
    """Batches where nobody has to be sent them: what they cost is the time of the inner solver.

    Parameters
    ----------
    n, d : int
        How many atoms there are, and how long they are.
    values : float
        How many values an atom has on average.
    width : int
        How many weights an atom has.
    quadratic : bool
        Whether the curvature is the same everywhere.
    """

    n: int
    d: int
    values: float
    width: int = 1
    quadratic: bool = True

    @property
    def round_in_atoms(self) -> float:
        """How many atoms more take as long as a round more."""
        return (ROUND / max(self.values, 1.0) + self.n) / PASSES

    @property
    def cheap(self) -> bool:
        """Whether a round in vain costs more than many atoms in vain do."""
        return self.quadratic and self.width == 1 and self.round_in_atoms > FREE

    def size(self, known: int, used: float, distance: float) -> int:
        """How many atoms may join at least, where the gap is so many times the objective.

        Far from the optimum many atoms are missing. Then as many join as are known, times that
        distance, if they are cheap, and most of the known ones were of use.
        """
        if self.n * self.width <= FREE:
            return self.n
        independent = self.d // FREE_SHARE
        part = 1.0 if used > 0.95 else 0.5 if used > 0.75 else 0.0
        growth = int(part * known)
        if not known and not self.quadratic:  # the first scores say little: half as far
            leap = min(distance, 2 * LEAP) * FREE / 4
            growth = int(min(leap, self.round_in_atoms, independent))
        elif self.cheap:
            leap = min(distance, LEAP * max(part, 0.25 * (used > 0.5)))
            growth = max(growth, int(min(leap * known, self.round_in_atoms, independent)))
        elif used > 0.95 and not self.quadratic:  # rounds of several models: fewer of them
            growth = max(growth, min(3 * known, self.d // 2 - known))
        # Where a look at all atoms takes long beside the inner solver, twice as many.
        least = FREE if self.quadratic and not self.cheap else FREE // 2
        return max(growth, min(least, independent) // self.width)


class FreePoints:
    """The same for points in a kernel space: many, and then three times as many as are known."""

    cheap = False

    def size(self, known: int, used: float, distance: float) -> int:
        """How many points may join at least, wherever the optimum is."""
        return max(FREE_POINTS, 3 * known) if known else ALL_POINTS
