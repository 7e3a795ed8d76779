"""A problem: what to fit, within what, from which kind of atoms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from atomcast.atoms.base import Atoms
from atomcast.data.shards import Shard
from atomcast.domains.base import Domain
from atomcast.known.active_set import ActiveSet


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

    The first batch is half a small one. The active set then grows by a quarter a round, by half
    where nearly all atoms sent so far are in use, and by a small batch if that is more; batches
    above the large size grow it by an eighth at most.
    """

    small: int = 10
    large: int = 100
    kept: float = 1 / 3

    def size(self, known: int, used: float) -> int:
        """How many atoms may join if so many are known, and this share of the weights is in use."""
        growth = min(known // (2 if used > 0.95 else 4), max(known // 8, self.large))
        return max(growth, self.small if known else self.small // 2)


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
class Problem:
    """Everything that the nodes must agree on before the first round.

    Parameters
    ----------
    domain : Domain
        The set that the weights live in.
    make_active : callable
        Makes an empty active set, which holds the objective; every process makes its own.
    make_atoms : callable
        Turns a node's shard into its atoms.
    d : int or None
        The length that atoms must have; None where they need not fit a target.
    axis : {0, 1}
        Whether the atoms are the rows (0) or the columns (1) of the data.
    batches : Batches
        How many atoms may join in a round of the corrective step, if that is left to us.
    sample : int
        So many atoms, drawn at random, are broadcast before the first step; 0: none.
    adopt : callable, optional
        Makes the active set of this problem from that of the one before it on a path; by default
        it is the same.
    missing : bool
        Whether values of the data may be missing (NaN).
    family : int
        How many atoms each row or column of the data stands for.
    """

    domain: Domain
    make_active: Callable[[], ActiveSet]
    make_atoms: Callable[[Shard], Atoms]
    d: int | None = None
    axis: int = 1
    batches: Batches = GrowingBatches()
    sample: int = 0
    adopt: Callable[[Any], ActiveSet] | None = None
    missing: bool = False
    family: int = 1
