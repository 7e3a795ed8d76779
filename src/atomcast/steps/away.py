"""Steps that can also move away from a vertex: away, pairwise and blended pairwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from atomcast.messages.proposals import Agreement
from atomcast.steps.step import (
    Step,
    Vertices,
    carried_vertex,
    move,
    vertex_weights,
    winner_vertex,
)

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica


class Away(Step):
    """Towards the best vertex or away from the worst one carried, whichever promises more.

    An away step needs no new atom, so that none is broadcast for it.
    """

    name: ClassVar[str] = "away"
    needs_polytope: ClassVar[bool] = True

    def _leaves(self, replica: Replica, agreement: Agreement) -> bool:
        """Whether moving away promises more than moving towards the winner."""
        if not replica.feasible:
            return False
        vertices, inner = Vertices.of(replica), replica.active.inner()
        worst = vertices.away()
        promise_away = vertices.slope[worst] - inner
        promise_toward = inner + replica.domain.scale * agreement.best
        return bool(promise_away > promise_toward and vertices.share[worst] < 1.0)

    def wanted(self, replica: Replica, agreement: Agreement) -> Agreement:
        """The winner, unless the step is an away step."""
        return agreement.first(0) if self._leaves(replica, agreement) else agreement

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Take the away step, or the step towards the winner, by line search."""
        active = replica.active
        if len(agreement.id):
            toward = winner_vertex(replica, agreement)
            if replica.feasible:
                move(replica, toward - active.weights, 1.0)
            else:
                active.set_weights(toward)
        elif len(active):
            vertices = Vertices.of(replica)
            worst = vertices.away()
            share = float(vertices.share[worst])
            change = active.weights - carried_vertex(replica, vertices, worst)
            leaving = int(vertices.position[worst])
            move(replica, change, share / (1.0 - share), leaving)


class Pairwise(Step):
    """Move weight from the worst vertex carried to the best vertex of all."""

    name: ClassVar[str] = "pairwise"
    needs_polytope: ClassVar[bool] = True

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Shift weight by line search, at most all that the worst vertex has."""
        if not len(agreement.id):
            return
        toward = winner_vertex(replica, agreement)
        if not replica.feasible:
            replica.active.set_weights(toward)
            return
        vertices = Vertices.of(replica)
        worst = vertices.away()
        change = toward - carried_vertex(replica, vertices, worst)
        move(replica, change, float(vertices.share[worst]), int(vertices.position[worst]))


class BlendedPairwise(Step):
    """One step towards the winner, then pairwise moves among known atoms, which are free.

    The pairwise moves go on while they promise at least half of what the network last promised;
    they need no communication, so that no round is spent on them.
    """

    name: ClassVar[str] = "blended-pairwise"
    needs_polytope: ClassVar[bool] = True

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Step towards the winner by line search, then balance the active set."""
        active = replica.active
        if not replica.feasible:
            active.set_weights(winner_vertex(replica, agreement))
            return
        promise = replica.active.inner() + replica.domain.scale * agreement.best
        if len(agreement.id):
            move(replica, winner_vertex(replica, agreement) - active.weights, 1.0)
        for _ in range(100 + 10 * len(active)):
            if not self._balance(replica, 0.5 * promise):
                break

    def _balance(self, replica: Replica, enough: float) -> bool:
        """One pairwise move inside the active set; False if it would promise too little."""
        scores = replica.active.scores()
        vertices = Vertices.of(replica)
        worst = vertices.away()
        merit = replica.domain.merit(scores)
        best = int(np.argmax(merit))
        promise = vertices.slope[worst] + replica.domain.scale * merit[best]
        if not promise > enough:
            return False
        change = vertex_weights(replica, best, float(scores[best]))
        change -= carried_vertex(replica, vertices, worst)
        move(replica, change, float(vertices.share[worst]), int(vertices.position[worst]))
        return True
