"""Nodes that have drifted apart, as the one replica that the loop knows."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np

from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request


class DriftingReplica(Replica):
    """The states of N nodes that should be equal and are not.

    The objective is the mean over the nodes; everything else is that of the node whose iterate has
    the smallest. Once the run is closed, the objective is that node's, too.

    Parameters
    ----------
    start : Replica
        Where all nodes begin.
    nodes : int
    """

    def __init__(self, start: Replica, nodes: int) -> None:
        super().__init__(start.problem, start.step, start.tol, start.selection)
        self.members = [
            Replica(start.problem, copy.deepcopy(start.step), start.tol, start.selection)
            for _ in range(nodes)
        ]
        self.closed = False
        #: Whether anybody had something to propose in this round, arrived or not.
        self.offers = True
        #: Who takes the next step: towards which winners, and the atoms that are new to it.
        self.receivers: dict[int, tuple[Agreement, list[Atom]]] = {}
        self.choose()

    def choose(self) -> None:
        """Let the node with the smallest objective stand for all."""
        values = np.array(self._values())
        self.best = 0 if np.isnan(values).all() else int(np.nanargmin(values))
        self.active = self.chosen.active

    @property
    def chosen(self) -> Replica:
        """The node that stands for all."""
        return self.members[self.best]

    @property
    def objective(self) -> float:
        """The mean objective of the nodes that have an iterate."""
        if not self.closed:
            values = [value for value in self._values() if not math.isnan(value)]
            if values:
                return float(np.mean(values))
        return self.chosen.objective

    def _values(self) -> list[float]:
        """The objective of each node; NaN for one that has no iterate yet."""
        return [member.objective if member.feasible else math.nan for member in self.members]

    @property
    def patience(self) -> float:
        """How many rounds without progress end the run: lost proposals are made again."""
        return math.inf if self.offers else self.chosen.patience

    def request(self) -> Request:
        """What the node that stands for all would ask for; every node asks for itself."""
        return self.chosen.request()

    def wanted(self, agreement: Agreement) -> Agreement:
        """All winners."""
        return agreement

    def advance(self, agreement: Agreement, atoms: Sequence[Atom]) -> None:
        """Let those step who have received their atoms, each from where it is.

        k of 2/(k+2) is the round, which everybody knows. Where the domain has no origin to start
        from, a node starts at the first vertex it hears of.
        """
        for i, (winners, received) in self.receivers.items():
            member = self.members[i]
            member.round = self.round if member.feasible else 0
            member.advance(winners, received)
        self.round += 1
        for member in self.members:
            member.round = self.round
        self.choose()
