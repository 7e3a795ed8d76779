"""Which solver finds the best weights over the known atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atomcast.corral import Corral
from atomcast.gram import Gram
from atomcast.newton import Inner, Newton

if TYPE_CHECKING:
    from atomcast.replica import Replica


def inner_solver(replica: Replica) -> Inner:
    """Exact for quadratic objectives; a sequence of quadratic models for the others."""
    domain = replica.domain
    if replica.active.quadratic:
        return Corral(domain, Gram())
    return Newton(domain, lambda: Corral(domain, Gram()))
