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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from atomcast.loop.replica import Replica
from atomcast.messages.proposals import Agreement, Proposals, Request, checked_best, ranking

#: To score all atoms, or only the shortlist that the last scan has left.
Task = Literal["scan", "check"]

#: Weights are exact if the gap over the known atoms is within this share of the target.
EXACT = 0.5


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


#: So much of the shortest time that a scan takes is spent to gather more answers after the first.
GATHER = 0.1


class Gathering:
    """How long to wait for further answers: nodes that are equally fast answer at about once.

    Fewer versions of more answers each are less work for everybody, and better choices.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def took(self, node: int, task: Task, seconds: float) -> None:
        """Take note of how long a node has taken to answer."""
        if task == "scan":
            self._seconds[node] = seconds

    @property
    def seconds(self) -> float:
        """How long to wait after an answer."""
        return GATHER * min(self._seconds.values(), default=0.0)


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
        #: Nodes that have been late with a scan, and those whose shortlist is to be checked next.
        self._late = np.zeros(self.nodes, dtype=bool)
        self._to_check = np.zeros(self.nodes, dtype=bool)
        #: Answers since the last version, of which the stale ones are left out.
        self._heard: list[Answer] = []
        self._refined = False
        #: What nodes may still take of a batch: less than an atom.
        self._credit = 0.0

    def coordinate(
        self,
        replica: Replica,
        request: Request,
        ask: Callable[[int, Task], None],
        arrivals: Callable[[], Sequence[Answer]],
    ) -> Agreement:
        """Let nodes work until their answers lead to a step, or to a certificate.

        Parameters
        ----------
        replica : Replica
            The newest version.
        request : Request
            What a step from there needs.
        ask : callable
            Tells a node what is new and what to do.
        arrivals : callable
            Waits for the next answers of nodes that were asked.
        """
        while True:
            refinement = self.refinement(replica, request)
            if refinement is not None:
                return refinement
            for node, task in self.tasks(replica.round, request):
                ask(node, task)
            for answer in arrivals():
                self.hear(answer, replica, request)
            agreement = self.agreement(replica, request)
            if agreement is not None:
                return agreement

    def tasks(self, version: int, request: Request) -> list[tuple[int, Task]]:
        """What each idle node that may have something new to say is to do now."""
        chosen = np.flatnonzero(self._idle & (self._scanned < version))
        self._idle[chosen] = False
        # The closing round is about all atoms: a check would not do.
        check = self._to_check & (not request.complete)
        return [(node, "check" if check[node] else "scan") for node in chosen.tolist()]

    def refinement(self, replica: Replica, request: Request) -> Agreement | None:
        """An agreement on no new atom, only to make the weights exact, if that is worth a version.

        Far from the optimum steps are not exact. Before a node that is known to be late scans, they
        should be: otherwise it would have to scan once more for the certificate.
        """
        to_scan = self._idle & self._late & ~self._to_check & (self._scanned < replica.round)
        if request.complete or self._refined or not to_scan.any():
            return None
        inner, scale = replica.active.inner(), replica.domain.scale
        known = replica.domain.known_merit(replica.active.ids, replica.active.scores())
        if (
            replica.domain.gap(inner, float(np.max(known, initial=-np.inf)))
            <= EXACT * replica.target
        ):
            return None
        self._refined = True
        level = (replica.target - inner) / scale  # the merit at which the gap is the target
        return _no_winners(level, complete=False)

    def hear(self, answer: Answer, replica: Replica, request: Request) -> None:
        """Take note of an answer; what it proposes counts unless it is stale."""
        node, proposals = answer.node, answer.proposals
        checked_best(proposals.best)
        self._idle[node] = True
        if answer.task == "scan":
            self._scanned[node] = answer.version
            self._best[node] = proposals.best[node]
        if replica.round - answer.version > self.staleness:
            self._late[node] = True
            self._to_check[node] = answer.checkable
            return
        useful = _useful(proposals, replica, request)
        self._to_check[node] = self._late[node] and answer.checkable and len(useful.id) > 0
        self._heard.append(Answer(node, answer.version, answer.task, useful))

    def agreement(self, replica: Replica, request: Request) -> Agreement | None:
        """What follows from the answers so far; None if more of them are needed."""
        complete = bool(np.all(self._scanned == replica.round))
        offers = [answer for answer in self._heard if len(answer.proposals.id)]
        parts = [answer.proposals for answer in offers]
        versions = [answer.version for answer in offers]
        wait_for_all = request.complete or request.random
        if not complete and (wait_for_all or not parts):
            return None
        count = request.count if complete else self._share(request.count, parts)
        self._heard, self._refined = [], False
        if not parts:
            return _no_winners(float(self._best.max()))
        rows = Proposals.merged(parts)
        version = np.full(self.nodes, -1)
        version[[part.node[0] for part in parts]] = versions
        winners = ranking(rows.merit, rows.id)[:count]
        best = self._best if complete else replica.domain.merit(rows.score[winners])
        return Agreement(
            best=float(best.max()),
            owner=rows.node[winners],
            id=rows.id[winners],
            score=rows.score[winners],
            complete=complete,
            version=version[rows.node[winners]],
        )

    def _share(self, count: int, parts: Sequence[Proposals]) -> int:
        """How many atoms of a batch some nodes may fill.

        The best atoms of a few nodes need not be among the best of all, so that they get as large
        a share as they are of all nodes, and what is left of an atom is kept for the next time; but
        nodes that are heard rarely may fill a whole batch.
        """
        nodes = {int(part.node[0]) for part in parts}
        if any(self._late[node] for node in nodes):
            return count
        self._credit += count * len(nodes) / self.nodes
        share = max(int(self._credit), 1)
        self._credit = max(self._credit - share, 0.0)
        return share


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


def _no_winners(best: float, complete: bool = True) -> Agreement:
    none = np.zeros(0, dtype=np.int64)
    return Agreement(best, none, none, np.zeros(0), complete=complete)
