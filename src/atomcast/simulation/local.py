"""A cluster in this process: N simulated nodes, a simulated network, a real account of traffic."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count, check_positive
from atomcast._threads import thread_count
from atomcast.cluster.balance import Balance
from atomcast.cluster.machine import machine
from atomcast.cluster.node import Fleet
from atomcast.cluster.pace import Pace, check_slow_only, check_star
from atomcast.cluster.rounding import rounded
from atomcast.cluster.validation import checked_shard as _checked
from atomcast.data._split import SplitShards
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.messages.status import Status
from atomcast.network.build import check_broadcast, is_graph, make_topology, size_of
from atomcast.network.faults import Faults
from atomcast.network.graphs import check_seconds
from atomcast.network.ledger import Ledger
from atomcast.network.topology import Topology
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.simulation.opening import check_faults, open_with_faults
from atomcast.storage.fingerprint import data_fingerprint, shard_fingerprint

logger = logging.getLogger(__name__)


class LocalCluster:
    """N nodes in this process, each touching its own shard and what was broadcast.

    Parameters
    ----------
    nodes : int, optional
        How many nodes; default: as many as the graph given as `topology` has, and else 1.
    topology : default="star"
        How they are connected: "star" (around a coordinator), "tree" (short for `Tree(arity=2)`),
        "complete", a connected networkx graph, or the path of a GraphML or edge-list file. The
        nodes of a graph are numbered in the sorted order of their labels.
    broadcast : str, optional
        How proposals and atoms get to everybody. Star and tree: "improved" (proposals are
        thinned out on their way to the root; the default) or "plain" (every proposal is sent to
        everybody). Graph: "spanning-tree" (built by the nodes first, which is counted; the
        default) or "flooding" (no node uses more than its neighbourhood). The outcome is the
        same; what it costs is not.
    latency : float, default=0.0
        Seconds that a message takes to cross an edge, for `ledger.seconds`. Edges of a graph may
        have an attribute "latency" of their own.
    bandwidth : float, optional
        Bytes a second that an edge carries in each direction; default: no limit. Edges of a
        graph may have an attribute "bandwidth" of their own.
    cast : {"float16", "bfloat16"}, optional
        Round the data to this type first, so that atoms take fewer bytes. The model is then that
        of the rounded data, and the gap is certified for it.
    isolated : bool, default=False
        Give each node a shard of its own and let the nodes score one after the other. The outcome
        is the same; by default, nodes that hold parts of one matrix score it in one pass.
    resend : bool, default=False
        Broadcast an atom each time it wins, as Algorithm 3 has it, instead of only the first time.
    compute : float, optional
        Seconds that a node needs to score one atom, for `ledger.seconds`; default: no time at all.
    faults : Faults, optional
        What goes wrong: lost messages, slow nodes and more; default: nothing. Where `compute` says
        how long nodes take, they can only be slow.
    recovery : {"log", "none"}, default="log"
        What nodes do about faults: keep a common log and ask for what they have missed, or go on
        without it, as in section 6.3 of the paper.
    asynchronous : bool, default=False
        Let every node of a star work at its own pace, in simulated time: nobody waits for the
        slowest but for the certificate at the end. For the corrective step.
    staleness : int, default=4
        An answer about an iterate more than so many steps old is not used in an asynchronous run:
        the node first looks again at the atoms that were its best.

    Examples
    --------
    >>> import networkx
    >>> from atomcast import Lasso, LocalCluster
    >>> model = Lasso(beta=1.0, cluster=LocalCluster(nodes=10))
    >>> LocalCluster(topology=networkx.cycle_graph(10), broadcast="flooding")
    LocalCluster(nodes=10, topology=<Graph with 10 nodes and 10 edges>, broadcast='flooding')
    """

    def __init__(
        self,
        nodes: int | None = None,
        topology: Any = "star",
        *,
        broadcast: str | None = None,
        latency: float = 0.0,
        bandwidth: float | None = None,
        cast: wire.Cast | None = None,
        isolated: bool = False,
        resend: bool = False,
        compute: float | None = None,
        faults: Faults | None = None,
        recovery: str = "log",
        asynchronous: bool = False,
        staleness: int = 4,
    ) -> None:
        check_broadcast(topology, broadcast)
        if nodes is None:
            nodes = size_of(topology)
        self.nodes = check_count("nodes", nodes, "how many nodes the cluster has")
        self.topology = topology
        self.broadcast = broadcast
        self.latency = check_seconds("latency", latency)
        if bandwidth is not None:
            check_positive("bandwidth", bandwidth, "bytes a second over an edge, None: no limit")
        self.bandwidth = bandwidth
        if cast is not None:
            check_choice("cast", cast, ("float16", "bfloat16"))
        self.cast = cast
        self.isolated = isolated
        self.resend = resend
        if compute is not None:
            check_positive("compute", compute, "seconds to score one atom, None: no time")
        self.compute = compute
        self.faults = faults
        self.recovery = check_choice("recovery", recovery, ("log", "none"))
        self.asynchronous = asynchronous
        self.staleness = check_count("staleness", staleness, "steps that may be missed", minimum=0)
        if asynchronous:
            check_star(topology, broadcast)
            check_slow_only(faults, self.nodes)
        elif faults is not None:
            check_faults(self, faults)
        if is_graph(topology):
            self.network()  # a graph that cannot work is better refused here than in fit

    def network(self) -> Topology:
        """The network itself, ready for `prepare`."""
        limit = np.inf if self.bandwidth is None else self.bandwidth
        return make_topology(self.topology, self.nodes, self.broadcast, self.latency, limit)

    def open(self, problem: Problem, shards: Shards) -> LocalSession:
        """Load and check the shards."""
        if self.asynchronous and self.nodes > 1:
            from atomcast.simulation.asynchronous import AsynchronousSession

            return AsynchronousSession(self, problem, shards)
        if self.faults is not None and self.compute is None:
            return open_with_faults(self, problem, shards)
        return LocalSession(self, problem, shards)

    def __repr__(self) -> str:
        topology = f"<{self.topology}>" if is_graph(self.topology) else repr(self.topology)
        shown = {"nodes": self.nodes, "topology": topology}
        defaults: dict[str, Any] = {"broadcast": None, "latency": 0.0, "bandwidth": None}
        defaults |= {"cast": None, "isolated": False, "resend": False, "compute": None}
        defaults |= {"faults": None, "recovery": "log", "asynchronous": False, "staleness": 4}
        for name, default in defaults.items():
            if getattr(self, name) != default:
                shown[name] = repr(getattr(self, name))
        return f"LocalCluster({', '.join(f'{name}={value}' for name, value in shown.items())})"


class LocalSession:
    """The nodes of a `LocalCluster` with their shards loaded."""

    speaks = True
    #: What becomes of a node's atoms.
    fleet_type = Fleet

    def __init__(self, cluster: LocalCluster, problem: Problem, shards: Shards) -> None:
        if shards.nodes != cluster.nodes:
            raise ValueError(
                f"the data is cut into {shards.nodes} shards, but the cluster has "
                f"{cluster.nodes} nodes; use LocalCluster(nodes={shards.nodes})"
            )
        self.nodes = cluster.nodes
        self.ledger = Ledger(self.nodes, shards.party_names)
        self._fingerprint: str | None = None
        self._network = cluster.network()
        self._cast = cluster.cast
        slow = {} if cluster.faults is None else cluster.faults.slow
        self._pace = Pace(self.nodes, cluster.compute or 0.0, slow)
        self._balance = Balance(self._pace)
        self._resend = cluster.resend
        self._shards, self._axis = shards, problem.axis
        shards.validate(problem.axis)
        self.n = shards.count(problem.axis)
        together = shards.kind == "split" and not (cluster.isolated or cluster.asynchronous)
        self._fleets = (
            self._one_fleet(problem, shards) if together else self._fleet_each(problem, shards)
        )
        self._network.prepare(self.ledger)
        self._network.tell_target(problem.d or 0, self.ledger)
        if logger.isEnabledFor(logging.INFO):
            logger.info("%d nodes on %s, threads: %d", self.nodes, machine(), thread_count())
            logger.info("loaded %d atoms in %d shards (%s)", self.n, self.nodes, shards.kind)

    def _one_fleet(self, problem: Problem, shards: Shards) -> list[Fleet]:
        """All nodes over the user's own matrix, which is neither copied nor cut."""
        whole = SplitShards(shards.matrix, nodes=1, by="contiguous", names=shards.names)
        try:
            shard = _checked(problem, whole.shard(0, problem.axis))
        except ValueError:
            for i in range(self.nodes):  # say which of the shards is to blame
                _checked(problem, shards.shard(i, problem.axis))
            raise
        owner = shards.assignment(problem.axis)
        atoms = problem.make_atoms(rounded(shard, self._cast))
        return [self.fleet_type(atoms, shard.ids, owner, self.nodes)]

    def _fleet_each(self, problem: Problem, shards: Shards) -> list[Fleet]:
        """A fleet of one for each node, with a shard that no other node refers to."""
        fleets = []
        sizes = np.bincount(shards.assignment(problem.axis), minlength=self.nodes)
        for i in range(self.nodes):
            shard = _checked(problem, shards.shard(i, problem.axis))
            owner = np.full(len(shard.ids), i, dtype=np.int64)
            atoms = problem.make_atoms(rounded(shard, self._cast))
            fleets.append(self.fleet_type(atoms, shard.ids, owner, self.nodes, sizes))
        return fleets

    def begin(self, replica: Replica, settings: Mapping[str, Any]) -> None:
        """All nodes share this process: there is nothing to tell them."""
        self._balance.resumed = bool(settings.get("resume"))

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let every node score its own atoms and propose; the network finds the winners."""
        self.ledger.round = replica.ledger_round
        if not replica.selection.balanced:
            return self._agree(replica, request)
        return self._balance.agree(replica, request, self._agree, self._fleets)

    def _agree(self, replica: Replica, request: Request) -> Agreement:
        """One round of proposals."""
        proposals = self.proposals(replica, request)
        if self._pace.compute:
            scored = np.sum([fleet.scored for fleet in self._fleets], axis=0)
            seconds = self._pace.seconds(scored)
            self.ledger.reach(self._network.links.work(np.arange(self.nodes), seconds))
        return self._network.agree(proposals, request.count, self.ledger)

    def proposals(self, replica: Replica, request: Request) -> Proposals:
        """What every node would propose from this state."""
        parts = [fleet.propose(replica, request) for fleet in self._fleets]
        return parts[0] if len(parts) == 1 else Proposals.merged(parts)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Broadcast the winners that are not known yet, as bytes on the simulated wire."""
        self.ledger.round = replica.ledger_round
        sent, received = [], []
        for owner, id in zip(agreement.owner.tolist(), agreement.id.tolist(), strict=True):
            known = id in replica.active
            if known and not self._resend:
                continue
            atom = self.atom(owner, id)
            sent.append((owner, atom))
            if not known:
                received.append(atom)
        if self.nodes > 1 and sent:
            self._send(sent)
        return received

    def atom(self, owner: int, id: int) -> Atom:
        """An atom as its owner would send it."""
        fleet = self._fleets[owner if len(self._fleets) > 1 else 0]
        return wire.as_sent(fleet.atom(id), self._cast)

    def _send(self, sent: Sequence[tuple[int, Atom]]) -> None:
        """Carry atoms from their owners to everybody."""
        # What arrives is bit for bit what was sent, so that its length is all we need.
        sizes = [wire.encoded_size(atom) for _, atom in sent]
        owners, counts = [owner for owner, _ in sent], [atom.count for _, atom in sent]
        self._network.broadcast(owners, counts, sizes, self.ledger)
        for owner, atom in sent:
            self.ledger.disclose(owner, atom.id, atom.name, atom.count)

    def leave(self) -> None:
        """All nodes share this process: there is nobody else to leave."""

    def vote(self, status: Status | None) -> Status | None:
        """There is one clock and one set of callbacks: nothing to agree on."""
        return status

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The node that holds each of these atoms, shape (k,); -1 where there is none."""
        return np.max([fleet.owners(ids) for fleet in self._fleets], axis=0)

    def fingerprint(self) -> str:
        """What tells these atoms from others; the same however they are spread over nodes."""
        if self._fingerprint is None:
            shards = (self._shards.shard(i, self._axis) for i in range(self.nodes))
            parts = [shard_fingerprint(rounded(shard, self._cast), self._axis) for shard in shards]
            self._fingerprint = data_fingerprint(self.n, parts)
        return self._fingerprint

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._fleets = []


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
