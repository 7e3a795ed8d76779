"""A problem: what to fit, within what, from which kind of atoms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from atomcast.data.shards import Shard
from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.steps.batches import GROWING, Batches


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
    summed : bool
        Whether nodes hand out no atoms, but contribute to a sum in every round.
    targets : int
        How many targets of length d there are.
    check : callable, optional
        Raises ValueError if a node's shard cannot be one of this problem; every node learns of it.
    """

    domain: Domain
    make_active: Callable[[], ActiveSet]
    make_atoms: Callable[[Shard], Any]
    d: int | None = None
    axis: int = 1
    batches: Batches = GROWING
    sample: int = 0
    adopt: Callable[[Any], ActiveSet] | None = None
    missing: bool = False
    family: int = 1
    summed: bool = False
    targets: int = 1
    check: Callable[[Shard], None] | None = None

    @property
    def told(self) -> int:
        """How many values of targets every node is told."""
        return (self.d or 0) * self.targets
