"""A cluster in this process: N simulated nodes, a simulated network, a real account of traffic."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from atomcast._checks import check_choice, check_count, check_flag, check_positive
from atomcast.cluster.pace import check_slow_only, check_star
from atomcast.cluster.summing import refuse_sums
from atomcast.data.shards import Shards
from atomcast.loop.session import Cluster
from atomcast.network.build import check_broadcast, is_graph, kind_of, make_topology, size_of
from atomcast.network.complete import Complete
from atomcast.network.faults import Faults
from atomcast.network.graphs import check_seconds
from atomcast.network.star import lone_star
from atomcast.network.topology import Topology
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.simulation.asynchronous import AsynchronousSession
from atomcast.simulation.drifting import DriftingSession, MeshSession, check_drifting
from atomcast.simulation.local_session import LocalSession
from atomcast.simulation.log_session import LogSession
from atomcast.simulation.places import check_root, rooted


class LocalCluster(Cluster):
    """N nodes in this process, each touching its own shard and what was broadcast.

    Parameters
    ----------
    nodes : int, optional
        How many nodes; default: as many as `topology` has if it is a graph or an object, and
        else 1.
    topology : default="star"
        How they are connected: "star" (around a coordinator), "tree" (short for `Tree(arity=2)`),
        "complete", a connected networkx graph, or the path of a GraphML or edge-list file. The
        nodes of a graph are numbered in the sorted order of their labels. A `Topology` of your
        own, which each run copies, or a function that makes one for a number of nodes.
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

    #: Whether it stands for no cluster at all, where users name none.
    alone: bool = False

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
        self.isolated = check_flag("isolated", isolated)
        self.resend = check_flag("resend", resend)
        if compute is not None:
            check_positive("compute", compute, "seconds to score one atom, None: no time")
        self.compute = compute
        self.faults = faults
        self.recovery = check_choice("recovery", recovery, ("log", "none"))
        self.asynchronous = check_flag("asynchronous", asynchronous)
        self.staleness = check_count("staleness", staleness, "steps that may be missed", minimum=0)
        if asynchronous:
            check_star(topology, broadcast)
            check_slow_only(faults, self.nodes)
        elif faults is not None:
            check_faults(self, faults)
        if kind_of(topology) in ("graph", "own"):
            self.network()  # what cannot work is better refused here than in fit

    def network(self) -> Topology:
        """The network itself, ready for `prepare`."""
        if self.alone:
            return lone_star()
        limit = np.inf if self.bandwidth is None else self.bandwidth
        return make_topology(self.topology, self.nodes, self.broadcast, self.latency, limit)

    def open(self, problem: Problem, shards: Shards) -> LocalSession:
        """Load and check the shards."""
        if self.asynchronous or (self.faults is not None and self.compute is None):
            refuse_sums(problem, "a network where not everybody is heard")
        if self.asynchronous and self.nodes > 1:
            return AsynchronousSession(self, problem, shards)
        if self.faults is not None and self.compute is None:
            kind: type[DriftingSession | LogSession] = LogSession
            if self.recovery == "none":
                mesh = isinstance(self.network(), Complete)
                kind = MeshSession if mesh else DriftingSession
            return kind(self, problem, shards, self.faults)
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


def check_faults(cluster: LocalCluster, faults: Any) -> None:
    """Raise ValueError where faults do not go with the other parameters of a cluster."""
    if not isinstance(faults, Faults):
        raise ValueError(f"faults must be None or Faults(loss=...), got {faults!r}")
    faults.check_nodes(cluster.nodes)
    if cluster.compute is not None:
        check_slow_only(faults, cluster.nodes)
        return  # no message goes astray: any network will do
    if cluster.resend:
        raise ValueError(
            'resend=True and faults do not go together: with recovery="log" an atom is in the log '
            'once, and with recovery="none" it is always sent again; leave resend out'
        )
    if cluster.recovery == "none":
        check_drifting(cluster, faults)
    else:
        check_root(faults, rooted(cluster.network()))


@cache
def _no_cluster() -> LocalCluster:
    """One node, where users name no cluster: a description, which all fits can share."""
    cluster = LocalCluster(1)
    cluster.alone = True
    return cluster


def as_cluster(cluster: Any) -> Any:
    """A cluster from what users may give: None (one node), a number of nodes, or a cluster."""
    if cluster is None:
        return _no_cluster()
    if isinstance(cluster, int | np.integer) and not isinstance(cluster, bool):
        return LocalCluster(int(cluster))
    if not isinstance(cluster, Cluster):
        raise ValueError(
            "cluster must be None, a number of nodes or a cluster such as "
            f"LocalCluster(nodes=10), got {cluster!r}"
        )
    return cluster
