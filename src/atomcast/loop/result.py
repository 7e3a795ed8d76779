"""What a run returns: the weights, their certificate, and the account of how they were found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.status import Status

if TYPE_CHECKING:
    from atomcast.loop.trace import Trace
    from atomcast.network.ledger import Ledger


@dataclass(frozen=True)
class Result:
    """The outcome of a run; the gap is the gap of the weights returned.

    Parameters
    ----------
    objective : float
        The objective at the weights.
    gap : float
        A bound on objective - optimum that everybody can check.
    relative_gap : float
        The gap divided by the objective (or by a tiny share of the objective at zero, if that is
        larger).
    rounds : int
        Steps taken.
    status : {"optimal", "max_rounds", "stopped", "time_limit", "interrupted"}
        Why the run ended. "optimal": the relative gap is within the tolerance; "interrupted": by
        Ctrl-C.
    atom_ids, atom_weights : arrays of shape (k,)
        Global ids and weights of the atoms in the solution.
    n : int
        How many atoms there are in all.
    atom_extras : array of shape (k, m)
        What travelled with each of these atoms besides its values: a stump's threshold, a label.
    image : array of shape (d,) or None
        A alpha, the fitted combination of atoms, where atoms are vectors.
    trace : Trace
        A row a round.
    ledger : Ledger
        What was sent.
    content : object or None
        What the active set says of the atoms in the solution, where ids do not tell enough: the
        support vectors of a kernel machine.
    radius : dict of int to float
        By node of this process, the largest distance from an atom to one that might be proposed,
        for `MCenters`.
    family : int
        How many ids belong to each of the n places: more than one where each stands for a family
        of atoms.
    """

    objective: float
    gap: float
    relative_gap: float
    rounds: int
    status: Status
    atom_ids: NDArray[np.int64]
    atom_weights: NDArray[np.float64]
    n: int
    atom_extras: NDArray[np.float64] = field(repr=False)
    image: NDArray[np.float64] | None = field(repr=False)
    trace: Trace = field(repr=False)
    ledger: Ledger = field(repr=False)
    content: Any = field(default=None, repr=False)
    radius: dict[int, float] = field(default_factory=dict, repr=False)
    family: int = field(default=1, repr=False)

    @property
    def uncertified(self) -> tuple[str, ...]:
        """Parties whose atoms the gap does not count, for they had no budget left to propose."""
        return self.ledger.uncertified

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of every atom by global id, shape (n,).

        Where a place stands for a family of atoms that are never enumerated, such as all stumps
        over a feature, it is the sum over the family.
        """
        weights = np.zeros(self.n)
        np.add.at(weights, self.atom_ids // self.family, self.atom_weights)
        return weights
