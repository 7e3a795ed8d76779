"""The two steps of Algorithm 3: gamma = 2/(k+2), and line search."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from atomcast.messages.proposals import Agreement
from atomcast.steps.step import Step, winner_vertex

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica


class Classic(Step):
    """The step size 2/(k+2) of Algorithm 3, partial sums and all."""

    name: ClassVar[str] = "classic"
    patience: ClassVar[float] = math.inf  # its gap rises and falls, and its steps never end
    partial_sums: ClassVar[bool] = True

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Move towards the winner's vertex by 2/(k+2)."""
        if not len(agreement.id):
            return
        go_toward_winner(replica, agreement, 2.0 / (replica.round + 2.0))


class LineSearch(Step):
    """Algorithm 3 with the best step size along the same direction."""

    name: ClassVar[str] = "line-search"
    patience: ClassVar[float] = math.inf
    partial_sums: ClassVar[bool] = True

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Move towards the winner's vertex as far as the objective falls."""
        if not len(agreement.id):
            return
        if replica.feasible:
            go_toward_winner(replica, agreement)
        else:  # without an origin in the domain, the first vertex is where the run starts
            replica.active.set_weights(winner_vertex(replica, agreement))


def go_toward_winner(replica: Replica, agreement: Agreement, step: float | None = None) -> None:
    """Move toward the vertex that the network agreed on, by this step or by the best one."""
    id, score = agreement.id.item(0), agreement.score.item(0)
    replica.active.toward(replica.domain, id, score, step)
