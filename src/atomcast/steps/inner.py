"""Which solver finds the best weights over the known atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atomcast.corral import Corral
from atomcast.gram import Gram
from atomcast.group_solver import GroupSolver
from atomcast.groups import GroupBall
from atomcast.newton import Inner, Newton

if TYPE_CHECKING:
    from atomcast.replica import Replica


def inner_solver(replica: Replica) -> Inner:
    """Exact for quadratic objectives; a sequence of quadratic models for the others."""
    domain = replica.domain

    def exact() -> Inner:
        if isinstance(domain, GroupBall):
            return GroupSolver(domain, Gram())
        return Corral(domain, Gram())

    return exact() if replica.active.quadratic else Newton(domain, exact)
