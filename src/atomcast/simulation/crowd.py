"""Nodes that have drifted apart, as the one replica that the loop knows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Crowd:
    """The active sets of N nodes that should be equal and are not.

    Its value is the mean over the nodes; everything else is that of the node whose iterate has the
    smallest objective. Once it is closed, its value is that node's, too.
    """

    def __init__(self, members: Sequence[Replica]) -> None:
        self.members = members
        self.closed = False
        self.best = 0
        #: Whether anybody had something to propose in this round, arrived or not.
        self.offers = True
        #: Who takes the next step, and the atoms that are new to each of them.
        self.receivers: dict[int, list[Atom]] = {}

    @property
    def chosen(self) -> Replica:
        """The node that stands for all."""
        return self.members[self.best]

    def __getattr__(self, name: str) -> Any:
        # Copying asks for methods of its own, also before there are members.
        if name.startswith("__") or "members" not in self.__dict__:
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")
        return getattr(self.chosen.active, name)

    def __len__(self) -> int:
        return len(self.chosen.active)

    def __contains__(self, id: object) -> bool:
        return id in self.chosen.active

    def receive(
        self,
        atoms: Sequence[Atom],
        agreement: Agreement,
        iterates: Mapping[int | None, Any],
        scale: float,
    ) -> None:
        """Atoms go to those who have received them, not to everybody."""

    def value(self) -> float:
        """The mean objective of the nodes that have an iterate."""
        if self.closed:
            return self.chosen.active.value()
        values = [value for value in self.values() if not math.isnan(value)]
        return float(np.mean(values)) if values else self.chosen.active.value()

    def values(self) -> Iterator[float]:
        """The objective of each node; NaN for one that has no iterate yet."""
        for member in self.members:
            yield member.active.value() if member.feasible else math.nan

    def choose(self) -> None:
        """Let the node with the smallest objective stand for all."""
        values = np.array(list(self.values()))
        self.best = 0 if np.isnan(values).all() else int(np.nanargmin(values))


class CrowdStep:
    """A step of those nodes that have heard of it, each from where it is."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.name = crowd.chosen.step.name
        self.needs_polytope = crowd.chosen.step.needs_polytope

    @property
    def patience(self) -> float:
        """How many rounds without progress end the run: lost proposals are made again."""
        return math.inf if self.crowd.offers else self.crowd.chosen.step.patience

    def request(self, replica: Replica) -> Request:
        """What the node that stands for all would ask for; every node asks for itself."""
        return self.crowd.chosen.step.request(self.crowd.chosen)

    def wanted(self, replica: Replica, agreement: Agreement) -> Agreement:
        """All winners."""
        return agreement

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Let the receivers step; k of 2/(k+2) is the round, which everybody knows.

        Where the domain has no origin to start from, a node starts at the first vertex it hears of.
        """
        for i, atoms in self.crowd.receivers.items():
            member = self.crowd.members[i]
            member.round = replica.round if member.feasible else 0
            member.advance(agreement, atoms)
        for member in self.crowd.members:
            member.round = replica.round + 1
        self.crowd.choose()

    def memory(self) -> dict[str, NDArray[Any]]:
        """Nothing that could be told: every node has a state of its own."""
        return {}

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """There is nothing to take over."""
