"""A node of an asynchronous run: it scores all its atoms, or those that were its best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.coordinator import Answer, Task
from atomcast.cluster.node import Fleet
from atomcast.loop.replica import Replica
from atomcast.messages.proposals import Request

#: The share of its atoms that a node keeps on its shortlist, and how many it keeps at least.
SHARE, FEWEST = 0.1, 16


class ShortlistNode:
    """One node with its atoms and the shortlist of its last scan.

    Parameters
    ----------
    node : int
    fleet : Fleet
        Its atoms, and those of no other node.
    """

    def __init__(self, node: int, fleet: Fleet) -> None:
        self.node = node
        self.fleet = fleet
        self._shortlist: NDArray[np.int64] | None = None

    @property
    def checkable(self) -> bool:
        """Whether there is a shortlist to look at again."""
        return self._shortlist is not None

    def answer(self, task: Task, replica: Replica, request: Request) -> Answer:
        """What this node proposes for the iterate of this replica."""
        if task == "scan":
            proposals = self.fleet.propose(replica, request)
            size = max(int(SHARE * len(self.fleet.ids)), FEWEST)
            self._shortlist = self.fleet.shortlist(size)
        else:
            assert self._shortlist is not None
            proposals = self.fleet.propose_some(self._shortlist, replica, request)
        return Answer(self.node, replica.round, task, proposals, self.checkable)
