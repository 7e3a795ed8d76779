"""Atoms gathered in one place, under the global ids they have in the network.

The loop runs on them as on any cluster. So a node runs Frank-Wolfe on its own atoms, and so a batch
solver works on atoms that several nodes have sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.cluster.node import Fleet
from atomcast.data.finite import check_finite
from atomcast.data.matrices import take
from atomcast.data.shards import Shard, Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import Cluster, RunSpec, Session
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request, agree
from atomcast.network.ledger import Ledger
from atomcast.problems.problem import Problem

Ids = NDArray[np.int64]


def gather(parts: Sequence[Shard], chosen: Sequence[Ids], axis: int) -> Shard:
    """One shard of the atoms that were chosen on each node.

    Parameters
    ----------
    parts : sequence of Shard
        What each node holds.
    chosen : sequence of arrays
        Global ids of atoms of each node, in any order.
    axis : {0, 1}
        Whether atoms are rows or columns.
    """
    blocks = [
        take(part.matrix, np.searchsorted(part.ids, ids), axis)
        for part, ids in zip(parts, chosen, strict=True)
    ]
    join: Any = (np.vstack, np.hstack)[axis]
    if sparse.issparse(blocks[0]):
        join = (sparse.vstack, sparse.hstack)[axis]
        together = join(blocks, format="csc" if axis == 1 else "csr")
    else:
        together = join(blocks)
    ids = np.concatenate(list(chosen)).astype(np.int64)
    order = np.argsort(ids)
    names = None
    if parts[0].names is not None:
        known = {
            id: name
            for part in parts
            for id, name in zip(part.ids.tolist(), part.names or (), strict=True)
        }
        names = tuple(known[id] for id in ids[order].tolist())
    return Shard(take(together, order, axis), ids[order], names, "the chosen atoms")


class Gathered(Cluster):
    """A cluster of one node, which holds one shard and has nobody to talk to."""

    nodes = 1

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    def open(self, problem: Problem, shards: Shards) -> GatheredSession:
        """Make atoms of the shard; `shards` only tells how many atoms there are in all."""
        check_finite(self.shard, problem.axis)
        owner = np.zeros(len(self.shard.ids), dtype=np.int64)
        fleet = Fleet(problem.make_atoms(self.shard), self.shard.ids, owner, 1)
        return GatheredSession(fleet, shards.count(problem.axis))


class GatheredSession(Session):
    """The single node with its atoms loaded."""

    nodes = 1

    def __init__(self, fleet: Fleet, n: int) -> None:
        self.n = n
        self.ledger = Ledger(1)
        self._fleet = fleet

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Nothing to agree on with oneself."""
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Score the atoms; the node agrees with itself."""
        self.ledger.round = replica.round
        return agree(self._fleet.propose(replica, request), request.count)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """The winners that are new, which go nowhere."""
        return [self._fleet.atom(id) for id in agreement.id.tolist() if id not in replica.active]
