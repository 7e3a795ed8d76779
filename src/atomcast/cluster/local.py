"""A cluster in this process: N simulated nodes, a simulated network, a real account of traffic."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from atomcast._checks import check_choice, check_count
from atomcast.atoms.atom import Atom
from atomcast.cluster.fleet import Fleet
from atomcast.data.finite import check_finite
from atomcast.data.shards import Shard, Shards
from atomcast.network import wire
from atomcast.network.ledger import Ledger
from atomcast.network.star import Star
from atomcast.network.topology import Topology
from atomcast.problem import Problem
from atomcast.protocol import Agreement, Proposals, Request
from atomcast.replica import Replica
from atomcast.result import Status


class LocalCluster:
    """N nodes in this process, each touching its own shard and what was broadcast.

    Parameters
    ----------
    nodes : int, default=1
        How many nodes.
    topology : {"star"}, default="star"
        How they are connected.
    isolated : bool, default=False
        Give each node a shard of its own and let the nodes score one after the other. The outcome
        is the same; by default, nodes that hold parts of one matrix score it in one pass.
    resend : bool, default=False
        Broadcast an atom each time it wins, as Algorithm 3 has it, instead of only the first time.

    Examples
    --------
    >>> from atomcast import Lasso, LocalCluster
    >>> model = Lasso(beta=1.0, cluster=LocalCluster(nodes=10))
    """

    def __init__(
        self,
        nodes: int = 1,
        topology: str = "star",
        *,
        isolated: bool = False,
        resend: bool = False,
    ) -> None:
        self.nodes = check_count("nodes", nodes, "how many nodes the cluster has")
        self.topology = check_choice("topology", topology, ("star",))
        self.isolated = isolated
        self.resend = resend

    def open(self, problem: Problem, shards: Shards) -> LocalSession:
        """Load and check the shards."""
        return LocalSession(self, problem, shards)

    def __repr__(self) -> str:
        return f"LocalCluster(nodes={self.nodes}, topology={self.topology!r})"


class LocalSession:
    """The nodes of a `LocalCluster` with their shards loaded."""

    def __init__(self, cluster: LocalCluster, problem: Problem, shards: Shards) -> None:
        if shards.nodes != cluster.nodes:
            raise ValueError(
                f"the data is cut into {shards.nodes} shards, but the cluster has "
                f"{cluster.nodes} nodes; use LocalCluster(nodes={shards.nodes})"
            )
        self.nodes = cluster.nodes
        self.ledger = Ledger(self.nodes)
        self._network: Topology = Star(self.nodes)
        self._resend = cluster.resend
        shards.validate(problem.axis)
        self.n = shards.count(problem.axis)
        together = shards.kind == "split" and not cluster.isolated
        self._fleets = (
            self._one_fleet(problem, shards) if together else self._fleet_each(problem, shards)
        )

    def _one_fleet(self, problem: Problem, shards: Shards) -> list[Fleet]:
        """All nodes over the user's own matrix, which is neither copied nor cut."""
        whole = Shards.split(shards.matrix, nodes=1, by="contiguous", names=shards.names)
        shard = _checked(problem, whole.shard(0, problem.axis))
        owner = shards.assignment(problem.axis)
        return [Fleet(problem.make_atoms(shard), shard.ids, owner, self.nodes)]

    def _fleet_each(self, problem: Problem, shards: Shards) -> list[Fleet]:
        """A fleet of one for each node, with a shard that no other node refers to."""
        fleets = []
        sizes = np.bincount(shards.assignment(problem.axis), minlength=self.nodes)
        for i in range(self.nodes):
            shard = _checked(problem, shards.shard(i, problem.axis))
            owner = np.full(len(shard.ids), i, dtype=np.int64)
            atoms = problem.make_atoms(shard)
            fleets.append(Fleet(atoms, shard.ids, owner, self.nodes, sizes))
        return fleets

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let every node score its own atoms and propose; the network finds the winners."""
        self.ledger.round = replica.round
        parts = [fleet.propose(replica, request) for fleet in self._fleets]
        proposals = parts[0] if len(parts) == 1 else Proposals.merged(parts)
        return self._network.agree(proposals, request.count, self.ledger)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Broadcast the winners that are not known yet, as bytes on the simulated wire."""
        received = []
        for owner, id in zip(agreement.owner.tolist(), agreement.id.tolist(), strict=True):
            if id in replica.active and not self._resend:
                continue
            atom = next(fleet for fleet in self._fleets if fleet.holds(id)).atom(id)
            if self.nodes > 1:
                message = wire.encode(atom)
                self._network.broadcast(owner, atom.count, len(message), self.ledger)
                self.ledger.disclose(owner, id, atom.name, atom.count)
                atom = wire.decode(message)
            if id not in replica.active:
                received.append(atom)
        return received

    def vote(self, status: Status | None) -> Status | None:
        """There is one clock and one set of callbacks: nothing to agree on."""
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._fleets = []


def _checked(problem: Problem, shard: Shard) -> Shard:
    """The shard, if its values are finite and its atoms have the length the objective needs."""
    check_finite(shard, problem.axis)
    length = shard.matrix.shape[1 - problem.axis]
    if problem.d is not None and length != problem.d:
        raise ValueError(
            f"{shard.source} has {length} rows, but the target has {problem.d}; "
            "every shard must describe the same rows, in the same order, as the target"
        )
    return shard


def as_cluster(cluster: Any) -> Any:
    """A cluster from what users may give: None (one node), a number of nodes, or a cluster."""
    if cluster is None:
        return LocalCluster(1)
    if isinstance(cluster, int | np.integer) and not isinstance(cluster, bool):
        return LocalCluster(int(cluster))
    if not hasattr(cluster, "open"):
        raise ValueError(
            "cluster must be None, a number of nodes or a cluster such as "
            f"LocalCluster(nodes=10), got {cluster!r}"
        )
    return cluster
