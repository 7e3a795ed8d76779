"""An open Ray cluster whose nodes work at their own pace: this process is the coordinator.

A node that has answered is told, with the next thing to do, all steps that it has missed; their
atoms stay with Ray as objects. `ray.wait` tells which node has answered first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import ray

from atomcast.cluster.consistency import check_digests, state_digest
from atomcast.cluster.coordinator import Answer, Coordinator, Gathering, Task
from atomcast.cluster.pace import check_asynchronous
from atomcast.cluster.ray.actor import from_rows
from atomcast.cluster.ray.ray_session import RaySession
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.problems.problem import Problem

if TYPE_CHECKING:
    from atomcast.cluster.ray.ray_cluster import RayCluster


class AsynchronousRaySession(RaySession):
    """Actors with their shards loaded; made by `RayCluster(asynchronous=True).open`."""

    mixes = False

    def __init__(self, cluster: RayCluster, problem: Problem, shards: Shards) -> None:
        super().__init__(cluster, problem, shards)
        self._coordinator = Coordinator(self.nodes, cluster.staleness)
        self._gathering = Gathering()
        self._under_way: dict[Any, tuple[int, Task, bool, float]] = {}

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Write down where the run starts; nodes hear of it when they are first asked."""
        check_asynchronous(replica)
        replica.staleness = self._coordinator.staleness
        super().begin(replica, spec)
        if spec.checkpoint:
            self.fingerprint()  # now, while nobody is busy: later it would wait for the slowest
        self._coordinator.begin()
        self._parts: list[Sequence[Any]] = []
        self._told: list[int | None] = [None] * self.nodes
        self._digests: dict[int, int] = {}
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Wait until the answers that have come lead to a step, or to a certificate."""
        self.ledger.round, self._round = replica.ledger_round, replica.round
        self._digests[replica.round] = state_digest(replica)

        def ask(node: int, task: Task) -> None:
            self._ask(node, task, replica, request.complete)

        return self._coordinator.coordinate(replica, request, ask, self._arrivals)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Let the owners, who are idle, hand out the winners; the others get them when asked."""
        star = self._accountant.network
        star.ask_for([owner for owner, _ in agreement.new_to(replica.active)], self.ledger)
        before = len(self._log[-1][1])
        atoms = super().cast(replica, agreement)
        if len(self._log[-1][1]) > before:  # else a resumed run starts with these atoms
            self._parts.append(self._news[1:])
        return atoms

    def _ask(self, node: int, task: Task, replica: Replica, complete: bool) -> None:
        """Tell a node what is new and what to do."""
        run, told = len(self._log) - 1, self._told[node]
        start, rounds = self._log[-1]
        since = 0 if told is None else told - self._first
        entries = [news for news, _ in rounds[since:]]
        parts = [ref for refs in self._parts[since:] for ref in refs]
        if replica.ledger_round:
            winners = sum(len(news[-1]) for news in entries)
            self._accountant.network.tell(node, winners, self.ledger)
        first = start if told is None else None
        actor = self._actors[node]
        ref = actor.work.remote((run, self._first + since), first, task, complete, entries, *parts)
        self._told[node] = replica.round
        self._under_way[ref] = node, task, complete, time.perf_counter()

    def _arrivals(self) -> list[Answer]:
        """The next answer, and all others that come soon after it."""
        asked = list(self._under_way)
        if not ray.wait(asked, num_returns=1, timeout=self._cluster.deadline)[0]:
            raise self._stalled([node for node, *_ in self._under_way.values()], asked)
        ready, _ = ray.wait(asked, num_returns=len(asked), timeout=self._gathering.seconds)
        return [self._heard(ref) for ref in ready]

    def _heard(self, ref: Any) -> Answer:
        """What a node has answered, or a new answer of a node that was lost."""
        node, task, complete, start = self._under_way.pop(ref)
        self._gathering.took(node, task, time.perf_counter() - start)
        told = self._answer(node, ref)
        if told is None:
            task = "scan"  # it has lost its shortlist
            at = len(self._log) - 1, self._first + len(self._log[-1][1])
            self._told[node] = at[1]
            told = self._after_restoring(
                node, lambda actor: actor.work.remote(at, None, "scan", complete, [])
            )
        row, version, checkable = told
        own, digests, _ = from_rows([row])
        expected = [self._digests[version]] * (self.nodes + 1)
        expected[node] = digests[0]
        check_digests(expected, version)
        best = np.full(self.nodes, -np.inf)
        best[node] = own.best[0]
        proposals = Proposals(np.full(len(own.id), node), own.id, own.score, own.merit, best)
        self._accountant.network.hear(node, len(own.id), self.ledger)
        return Answer(node, version, task, proposals, checkable)
