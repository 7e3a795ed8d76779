"""Rounds whose outcome is not a winner but a sum: of what every node has to say, one vector.

The sum is an atom that nobody owns. It crosses the network as it comes about, so that everybody
has it with the agreement, and there is nothing left to broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement
from atomcast.network.ledger import Accountant
from atomcast.problems.problem import Problem


def agree_on_sum(
    accountant: Accountant[Any], total: NDArray[np.float64], replica: Replica
) -> Agreement:
    """What follows from the sum of what all nodes have said, once it is made known."""
    accountant.add_corners(len(total), replica.ledger_round)
    active: Any = replica.active
    d = active.objective.d
    atom = Atom(len(active), d, total[:d], extras=total[d:])
    score, complete = atom.dot(active.gradient), len(total) == d
    return Agreement(
        # What corners promised that were found on the way is no bound for those at the iterate.
        best=-score if complete else float(total[d]) - active.inner(),
        owner=np.zeros(1, dtype=np.int64),
        id=np.array([atom.id]),
        score=np.array([score]),
        complete=complete,
        sum=atom,
    )


def refuse_sums(problem: Problem, where: str) -> None:
    """Raise ValueError where nodes that are not heard would be missing in a sum."""
    if problem.summed:
        raise ValueError(
            f"this model needs the sum over all nodes in every round, which {where} cannot tell: "
            "use LocalCluster, MPICluster or RayCluster without asynchronous, and without faults "
            "other than slow nodes"
        )
