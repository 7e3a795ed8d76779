"""A problem: what to fit, within what, from which kind of atoms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from atomcast.active_set import ActiveSet, ExplicitActiveSet
from atomcast.atoms.base import Atoms
from atomcast.atoms.explicit import explicit_atoms
from atomcast.data.shards import Shard
from atomcast.domains import Domain
from atomcast.objectives import Objective


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
    missing : bool
        Whether values of the data may be missing (NaN).
    """

    domain: Domain
    make_active: Callable[[], ActiveSet]
    make_atoms: Callable[[Shard], Atoms]
    d: int | None = None
    axis: int = 1
    missing: bool = False


def explicit_problem(objective: Objective, domain: Domain) -> Problem:
    """Minimise an objective of A alpha over a domain, where the columns of the data are A."""
    return Problem(domain, partial(ExplicitActiveSet, objective), explicit_atoms, objective.d)
