"""A simulated cluster with a clock: how long a run would take if every node were a machine.

The nodes of a `LocalCluster` take turns on one core. Here each of them is timed on its own, and
from that follows what a run would take if they worked side by side: a round lasts as long as its
slowest node, then the messages travel, then every node takes the same step at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.node import Fleet
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Subset
from atomcast.simulation.local import LocalCluster
from atomcast.simulation.local_session import LocalSession

#: Seconds of computation of this thread: waiting for a core that others use does not count.
now = time.thread_time


class Clock:
    """What a run takes, in seconds.

    Attributes
    ----------
    work : array of shape (N,)
        Each node's computation on its own atoms: choosing, scoring and proposing.
    choosing : array of shape (N,)
        The part of it for choosing which atoms may be proposed, such as m-centers.
    slowest : float
        The work of the slowest node of every round, summed over the rounds.
    preparing : float
        What the slowest nodes would have saved if nobody had had to choose.
    steps : float
        The computation that every node does alike, at the same time: weights and gap.
    network : float
        The time of the messages, by the latency and bandwidth of the cluster.
    """

    def __init__(self, nodes: int) -> None:
        self.work: NDArray[np.float64] = np.zeros(nodes)
        self.choosing: NDArray[np.float64] = np.zeros(nodes)
        self.slowest = self.preparing = self.steps = self.network = 0.0

    def enter(self, work: NDArray[np.float64], choosing: NDArray[np.float64]) -> None:
        """Add one round of work of every node."""
        self.work += work
        self.choosing += choosing
        self.slowest += float(work.max())
        self.preparing += float(work.max() - (work - choosing).max())

    @property
    def seconds(self) -> float:
        """What the run has taken so far."""
        return self.slowest + self.steps + self.network


class Heard(NamedTuple):
    """What all nodes heard in a round: everybody's proposals, and the atoms that were new."""

    proposals: Proposals
    messages: list[bytes]


class TimedFleet(Fleet):
    """A fleet that notes how long its last proposal took, and how much of it was choosing."""

    spent = chose = 0.0
    _last_choice: NDArray[np.int64] | None = None

    def propose(self, replica: Replica, request: Request) -> Proposals:
        """The proposals of every node of the fleet."""
        self.chose, start = 0.0, now()
        proposals = super().propose(replica, request)
        self.spent = now() - start
        return proposals

    def _choice(self, replica: Replica, selection: Subset) -> NDArray[np.int64]:
        start = now()
        chosen = super()._choice(replica, selection)
        if chosen is not self._last_choice:  # to look up what was chosen before is no choosing
            self._last_choice, self.chose = chosen, now() - start
        return chosen


class ClockedCluster(LocalCluster):
    """A `LocalCluster` whose nodes score one after the other, each against the clock.

    A node is one core: results are right only where the linear algebra uses a single thread. The
    first run of a process also compiles, so that a short one should come before.

    Parameters
    ----------
    nodes, topology, broadcast, latency, bandwidth, resend
        As for `LocalCluster`; latency and bandwidth are those of the network that the clock
        assumes.

    Attributes
    ----------
    clock : Clock
        That of the last run; callbacks of a run may look at it.
    heard : list of Heard or None
        If it is a list, what is heard in each round is added to it; None by default.
    """

    heard: list[Heard] | None = None

    def __init__(
        self,
        nodes: int,
        topology: Any = "star",
        *,
        broadcast: str | None = None,
        latency: float = 0.0,
        bandwidth: float | None = None,
        resend: bool = False,
    ) -> None:
        super().__init__(
            nodes, topology, broadcast=broadcast, latency=latency, bandwidth=bandwidth,
            isolated=True, resend=resend,
        )  # fmt: skip
        self.clock = Clock(self.nodes)

    def open(self, problem: Problem, shards: Shards) -> ClockedSession:
        """Load and check the shards, and set the clock to zero."""
        self.clock = Clock(self.nodes)
        return ClockedSession(self, problem, shards)


class ClockedSession(LocalSession):
    """The nodes of a `ClockedCluster`; what happens between its verbs, all nodes do alike."""

    fleet_type = TimedFleet
    _fleets: list[TimedFleet]  # type: ignore[assignment]

    def __init__(self, cluster: ClockedCluster, problem: Problem, shards: Shards) -> None:
        super().__init__(cluster, problem, shards)
        self._clock, self._heard = cluster.clock, cluster.heard
        self._since: float | None = None

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """As on any cluster, with a look at the clock."""
        self._stop()
        agreement = super().propose(replica, request)
        self._go_on()
        return agreement

    def _agree(self, replica: Replica, request: Request) -> Agreement:
        # Not in propose: where nodes are balanced, that may take two rounds of proposals.
        agreement = super()._agree(replica, request)
        spent = np.array([fleet.spent for fleet in self._fleets])
        self._clock.enter(spent, np.array([fleet.chose for fleet in self._fleets]))
        return agreement

    def proposals(self, replica: Replica, request: Request) -> Proposals:
        """What every node would propose from this state."""
        proposals = super().proposals(replica, request)
        if self._heard is not None:
            self._heard.append(Heard(proposals, []))
        return proposals

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """As on any cluster, with a look at the clock."""
        self._stop()
        atoms = super().cast(replica, agreement)
        if self._heard is not None:
            self._heard[-1].messages.extend(map(wire.encode, atoms))
        self._go_on()
        return atoms

    def _stop(self) -> None:
        if self._since is not None:
            self._clock.steps += now() - self._since

    def _go_on(self) -> None:
        self._clock.network = self.ledger.seconds
        self._since = now()
