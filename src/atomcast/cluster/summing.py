"""Rounds whose outcome is not a winner but a sum: of what every node has to say, one vector.

The sum is an atom that nobody owns. It crosses the network as it comes about, so that everybody
has it with the agreement, and there is nothing left to broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.network.accountant import Accountant
from atomcast.problems.problem import Problem


def conclude(
    accountant: Accountant[Any], proposals: Proposals, request: Request, replica: Replica
) -> Agreement:
    """What follows from what all nodes have said: winners, or a sum."""
    total = proposals.sum
    if total is None:
        return accountant.agree(proposals, request.count, replica.ledger_round)
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
            "leave asynchronous, and faults other than slow nodes, out"
        )
