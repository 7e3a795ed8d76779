"""Which session a cluster with faults opens, and which settings do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atomcast.cluster.pace import check_slow_only
from atomcast.data.shards import Shards
from atomcast.network.faults import Faults
from atomcast.problems.problem import Problem
from atomcast.simulation.drifting import DriftingSession, check_drifting
from atomcast.simulation.local_session import LocalSession
from atomcast.simulation.log_session import LogSession
from atomcast.simulation.places import check_root, rooted

if TYPE_CHECKING:
    from atomcast.simulation.local import LocalCluster


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


def open_with_faults(cluster: LocalCluster, problem: Problem, shards: Shards) -> LocalSession:
    """The session that goes with the cluster's recovery."""
    assert cluster.faults is not None
    if cluster.recovery == "none":
        return DriftingSession(cluster, problem, shards, cluster.faults)
    return LogSession(cluster, problem, shards, cluster.faults)
