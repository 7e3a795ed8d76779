"""How long nodes take to score their atoms, and which runs can let each have its own pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast.network.faults import Faults
from atomcast.selection.rules import Subset

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]


class Pace:
    """Seconds that each node takes for an atom: a stated model, the same for every kind of run.

    Parameters
    ----------
    nodes : int
        How many nodes there are.
    compute : float
        Seconds that a node needs to score one atom.
    slow : mapping from node to factor
        How many times longer some nodes take.
    """

    def __init__(self, nodes: int, compute: float, slow: Mapping[int, float]) -> None:
        self.compute = compute
        self._nodes, self._slow = nodes, slow

    @cached_property
    def factor(self) -> Floats:
        """How many times longer each node takes, shape (N,)."""
        factor = np.ones(self._nodes)
        for node, times in self._slow.items():
            factor[node] = times
        return factor

    def seconds(self, atoms: NDArray[np.int64]) -> Floats:
        """How long each node takes to score so many atoms of its own, shape (N,)."""
        return self.compute * self.factor * atoms


def check_slow_only(faults: Any, nodes: int) -> Faults | None:
    """The faults as they are, if slow nodes of this cluster are all that they have."""
    if faults is None:
        return None
    if not isinstance(faults, Faults):
        raise ValueError(f"faults must be a Faults object or None, got {faults!r}")
    faults.check_nodes(nodes)
    if replace(faults, slow={}, seed=0) != Faults():
        raise ValueError(
            f"faults={faults!r} has more than slow nodes, which is all that can be tried out here: "
            "leave the other faults out, or use LocalCluster without asynchronous and compute"
        )
    return faults


def check_star(topology: Any, broadcast: str | None) -> None:
    """Refuse a network without a coordinator who could hear nodes one by one."""
    if topology != "star" or broadcast not in (None, "improved"):
        raise ValueError(
            "asynchronous=True needs a coordinator: use topology='star' and leave broadcast out, "
            f"got topology={topology!r}, broadcast={broadcast!r}"
        )


def check_asynchronous(replica: Replica) -> None:
    """Refuse steps and selections that depend on when nodes answer."""
    if not replica.step.any_order:
        raise ValueError(
            f"step={replica.step.name!r} depends on the order in which atoms come, which nodes at "
            'their own pace cannot agree on: use step="corrective", or asynchronous=False'
        )
    if isinstance(replica.selection, Subset):
        raise ValueError(
            f"selection={replica.selection!r} leaves atoms out, but the nodes of an asynchronous "
            'run choose for themselves what to look at: use selection="exact"'
        )
