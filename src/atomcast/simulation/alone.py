"""One node of a clocked run once more, alone with what the others said: what it takes by itself.

Simulated nodes take turns on one core, and empty each other's caches: fifty nodes whose data fits
in a cache each read it from memory in every round, which no real node does. Here a single node goes
through the rounds of such a run, as a rank of MPI would: it scores and proposes, hears what all
have proposed, agrees, decodes the atom, checks it, keeps its account and takes the step. All of
that is on its clock. What is not is the way of the messages, which the clock of the cluster has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomcast.cluster.node import Fleet
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import Cluster, RunSpec, Session
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request
from atomcast.network.star import star_accountant
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.simulation.clocked import Heard, now


class Alone(Cluster):
    """A cluster as one of its nodes sees it, in a run whose messages are known.

    Parameters
    ----------
    node : int
    nodes : int
    heard : sequence of Heard
        What all nodes heard, round by round; see `ClockedCluster.heard`.

    Attributes
    ----------
    work, rounds : lists of float
        The seconds of every round that went into scoring and proposing, and all of them.
    """

    def __init__(self, node: int, nodes: int, heard: Sequence[Heard]) -> None:
        self.node, self.nodes, self.heard = node, nodes, heard
        self.work: list[float] = []
        self.rounds: list[float] = []

    def open(self, problem: Problem, shards: Shards) -> AloneSession:
        """Load the shard of this node."""
        return AloneSession(self, problem, shards)

    def usual_round(self) -> tuple[float, float]:
        """What a round takes, in the median: scoring and proposing, and all else."""
        # The first rounds also set up.
        work, rounds = np.array(self.work[1 : len(self.rounds)]), np.array(self.rounds[1:])
        return float(np.median(work)), float(np.median(rounds - work))


class AloneSession(Session):
    """The node with its shard loaded."""

    def __init__(self, cluster: Alone, problem: Problem, shards: Shards) -> None:
        self.nodes, self.n = cluster.nodes, shards.count(problem.axis)
        self._cluster, self._node = cluster, cluster.node
        shard = shards.shard(self._node, problem.axis)
        owner = np.full(len(shard.ids), self._node, dtype=np.int64)
        self._fleet = Fleet(problem.make_atoms(shard), shard.ids, owner, self.nodes)
        self._account = star_accountant(self.nodes, target=problem.told)
        self.ledger = self._account.ledger
        self._since: float | None = None

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """There is nobody to tell."""
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Score and propose, and agree on what all have proposed in this round."""
        start = now()
        if self._since is not None:
            self._cluster.rounds.append(start - self._since)
        self._fleet.propose(replica, request)
        self._cluster.work.append(now() - start)
        self._since = start
        proposals = self._cluster.heard[replica.round].proposals
        return self._account.agree(proposals, request.count, replica.ledger_round)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Encode the atom if it is this node's, and decode it if it is not."""
        new = agreement.new_to(replica.active)
        mine = [self._fleet.atom(id) for owner, id in new if owner == self._node]
        if self.nodes == 1:
            return mine
        for atom in mine:
            wire.encode(atom)
        messages = self._cluster.heard[replica.round].messages
        lengths = [replica.active.length_of(id, self._fleet.atoms.d) for _, id in new]
        return self._account.receive([owner for owner, _ in new], messages, lengths)
