"""An asynchronous run on simulated nodes: events in the order of simulated time.

Every node has a clock. A message takes its time on the link, a node takes its time to score atoms,
and the coordinator hears answers in the order in which they arrive. What a node says depends only
on the version that it was told when it was asked, so that it is worked out at that moment and
delivered later. The same parameters give the same run again.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from atomcast.cluster.coordinator import Answer, Coordinator, Gathering, Task
from atomcast.cluster.pace import check_asynchronous
from atomcast.cluster.shortlist_node import ShortlistNode
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request
from atomcast.network.star import Star
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.simulation.local_session import LocalSession

if TYPE_CHECKING:
    from atomcast.simulation.local import LocalCluster


@dataclass(frozen=True)
class Sent:
    """An atom of the log: who sent it, and how much of it there was."""

    owner: int
    values: int
    bytes: int


class AsynchronousSession(LocalSession):
    """The nodes of an asynchronous `LocalCluster`, around a coordinator who shares its replica."""

    mixes = False

    def __init__(self, cluster: LocalCluster, problem: Problem, shards: Shards) -> None:
        super().__init__(cluster, problem, shards)
        star = self._accountant.network
        assert isinstance(star, Star)  # the cluster has checked that
        self._star = star
        self._scorers = [ShortlistNode(i, fleet) for i, fleet in enumerate(self._fleets)]
        self._coordinator = Coordinator(self.nodes, cluster.staleness)
        self._gathering = Gathering()
        self._under_way: list[tuple[float, int, float, Answer]] = []
        self._log: list[list[Sent]] = []
        self._told = np.zeros(self.nodes, dtype=np.int64)

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Check that the run can do without rounds; what nodes know, they know from run to run."""
        check_asynchronous(replica)
        replica.staleness = self._coordinator.staleness
        self._coordinator.begin()
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let time pass until the answers that have come lead to a step, or to a certificate."""
        self.ledger.round = replica.ledger_round

        def ask(node: int, task: Task) -> None:
            self._ask(node, task, replica, request)

        return self._coordinator.coordinate(replica, request, ask, self._arrivals)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Let the owners, who are idle, send the winners; the others get them when next asked."""
        self.ledger.round = replica.ledger_round
        winners = agreement.new_to(replica.active)
        atoms = [self.atom(owner, id) for owner, id in winners]
        owners = [owner for owner, _ in winners]
        entry = [
            Sent(owner, atom.count, wire.encoded_size(atom))
            for owner, atom in zip(owners, atoms, strict=True)
        ]
        self._log.append(entry)
        self._accountant.disclose(owners, atoms)
        self._star.ask_for(owners, self.ledger)
        self._star.fetch(owners, [s.values for s in entry], [s.bytes for s in entry], self.ledger)
        return atoms

    def _ask(self, node: int, task: Task, replica: Replica, request: Request) -> None:
        """Tell a node what is new and what to do; its answer comes when it is done."""
        news = self._log[self._told[node] :]
        self._told[node] = len(self._log)
        start = self._now
        if replica.ledger_round:  # at the very beginning everybody knows what to do
            self._tell(node, [sent for entry in news for sent in entry])
        scorer = self._scorers[node]
        answer = scorer.answer(task, replica, request)
        seconds = self._pace.seconds(scorer.fleet.scored)[[node]]
        self._star.links.work(np.array([node]), seconds)
        arrival = self._star.arrival(node, len(answer.proposals.id))
        heapq.heappush(self._under_way, (arrival, node, start, answer))

    def _tell(self, node: int, winners: Sequence[Sent]) -> None:
        """Tell a node of winners, with those atoms that it does not hold."""
        foreign = [sent for sent in winners if sent.owner != node]
        amount = sum(sent.values for sent in foreign), sum(sent.bytes for sent in foreign)
        self._star.tell(node, len(winners), self.ledger, atoms=amount)

    def _arrivals(self) -> list[Answer]:
        """The next answer, and all others that come soon after it."""
        arrived: list[Answer] = []
        until = self._now
        while self._under_way and (not arrived or self._under_way[0][0] <= until):
            arrival, node, start, answer = heapq.heappop(self._under_way)
            self._star.hear(node, len(answer.proposals.id), self.ledger)
            self._gathering.took(node, answer.task, arrival - start)
            if not arrived:
                until = self._now + self._gathering.seconds
            arrived.append(answer)
        if self._under_way:  # the coordinator does not know that nobody else was to come
            self._star.links.clock[self.nodes] = max(self._now, until)
        return arrived

    @property
    def _now(self) -> float:
        """The time on the coordinator's clock."""
        return float(self._star.links.clock[self.nodes])
