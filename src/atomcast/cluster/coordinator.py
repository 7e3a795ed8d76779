"""The coordinator of an asynchronous run: what nodes are to do next, and what their answers mean.

It knows no engine: a session hands it the answers as they come, and carries out what it decides.
A version is the state after so many steps: it is the round of the replica. A node works on the
newest version at the time it is asked; meanwhile others may have moved on.

Two things keep the answers of slow nodes useful. A node keeps a shortlist of the atoms that were
its best when it scored all of them (a scan). Where a scan took so long that its answer is stale,
the node scores the shortlist again (a check), which takes little time, for as long as that brings
something; then it scans again. And nothing is certified until all nodes have scanned the same
version: that is what the run comes to once no node has anything to propose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from atomcast.protocol import Agreement, Proposals, Request, ranking
from atomcast.replica import Replica

#: To score all atoms, or only the shortlist that the last scan has left.
Task = Literal["scan", "check"]


@dataclass(frozen=True)
class Answer:
    """What one node has to say of the iterate of one version.

    Parameters
    ----------
    node, version : int
    task : {"scan", "check"}
        What it has looked at.
    proposals : Proposals
    checkable : bool
        Whether the node has a shortlist to look at again.
    """

    node: int
    version: int
    task: Task
    proposals: Proposals
    checkable: bool = True


class Coordinator:
    """What is known of N nodes that work at their own pace.

    Parameters
    ----------
    nodes : int
    staleness : int
        Answers about an iterate that is more than so many versions old are not used.
    """

    def __init__(self, nodes: int, staleness: int) -> None:
        self.nodes = nodes
        self.staleness = staleness
        self.begin()

    def begin(self) -> None:
        """Forget all answers: a run starts."""
        self._idle = np.ones(self.nodes, dtype=bool)
        #: The version that each node has scanned last, and its best merit then.
        self._scanned = np.full(self.nodes, -1)
        self._best = np.full(self.nodes, -np.inf)
        #: Nodes whose shortlist is to be checked next.
        self._to_check = np.zeros(self.nodes, dtype=bool)
        #: Answers since the last version, of which the stale ones are left out.
        self._heard: list[Answer] = []

    def tasks(self, version: int) -> list[tuple[int, Task]]:
        """What each idle node that may have something new to say is to do now."""
        chosen = np.flatnonzero(self._idle & (self._scanned < version))
        self._idle[chosen] = False
        return [(node, "check" if self._to_check[node] else "scan") for node in chosen.tolist()]

    def hear(self, answer: Answer, replica: Replica, request: Request) -> None:
        """Take note of an answer; what it proposes counts unless it is stale."""
        node, proposals = answer.node, answer.proposals
        self._idle[node] = True
        if answer.task == "scan":
            self._scanned[node] = answer.version
            self._best[node] = proposals.best[node]
        if replica.round - answer.version > self.staleness:
            self._to_check[node] = answer.checkable
            return
        useful = _useful(proposals, replica, request)
        self._to_check[node] = answer.task == "check" and len(useful.id) > 0
        self._heard.append(Answer(node, answer.version, answer.task, useful))

    def agreement(self, replica: Replica, request: Request) -> Agreement | None:
        """What follows from the answers so far; None if more of them are needed.

        Of the answers of a few nodes, as large a share of the batch is taken as these nodes are of
        all: their best atoms need not be among the best of all nodes.
        """
        complete = bool(np.all(self._scanned == replica.round))
        parts = [answer.proposals for answer in self._heard if len(answer.proposals.id)]
        wait_for_all = request.complete or request.random
        if not complete and (wait_for_all or not parts):
            return None
        count = request.count
        if not complete:
            count = -(-count * len({int(part.node[0]) for part in parts}) // self.nodes)
        self._heard = []
        rows = Proposals.merged(parts) if parts else _nothing(self.nodes)
        winners = ranking(rows.merit, rows.id)[:count]
        best = self._best if complete else replica.domain.merit(rows.score[winners])
        return Agreement(
            best=float(best.max()),
            owner=rows.node[winners],
            id=rows.id[winners],
            score=rows.score[winners],
            complete=complete,
        )


def _useful(proposals: Proposals, replica: Replica, request: Request) -> Proposals:
    """What is still of use of proposals that may have been made for an older iterate."""
    known = np.array([id in replica.active for id in proposals.id.tolist()], dtype=bool)
    kept = request.known_too | ~known
    if not request.random:
        kept &= replica.domain.merit(proposals.score) > request.threshold
    return Proposals(
        node=proposals.node[kept],
        id=proposals.id[kept],
        score=proposals.score[kept],
        merit=proposals.merit[kept],
        best=proposals.best,
    )


def _nothing(nodes: int) -> Proposals:
    none = np.zeros(0, dtype=np.int64)
    return Proposals(none, none, np.zeros(0), np.zeros(0), np.full(nodes, -np.inf))
