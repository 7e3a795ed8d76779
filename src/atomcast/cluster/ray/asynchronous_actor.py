"""A node of an asynchronous run that is a Ray actor."""

from __future__ import annotations

from collections.abc import Sequence

from atomcast.cluster.consistency import state_digest
from atomcast.cluster.coordinator import Task
from atomcast.cluster.ray.actor import News, RayNode, Start, to_row
from atomcast.cluster.shortlist_node import ShortlistNode
from atomcast.cluster.validation import ShardReport
from atomcast.data.shards import Shard, Shards
from atomcast.messages.proposals import Request
from atomcast.problems.problem import Problem


class AsynchronousRayNode(RayNode):
    """One node that catches up with the log when it is asked, and works on what is newest then."""

    _scorer: ShortlistNode | None = None

    def load(self, problem: Problem, source: Shard | Shards, total: int | None) -> ShardReport:
        """Load the shard and check it; says how that went."""
        report = super().load(problem, source, total)
        self._scorer = None if self._fleet is None else ShortlistNode(self._node, self._fleet)
        return report

    def work(
        self,
        at: tuple[int, int],
        start: Start | None,
        task: Task,
        complete: bool,
        entries: Sequence[News],
        *parts: Sequence[bytes],
    ) -> tuple[bytes, int, bool] | None:
        """Replay what is new, and propose; None if this node does not know what went before.

        Nor can a node check its shortlist that was lost, and restored, since it has scanned.

        Parameters
        ----------
        at : tuple (run, version)
            Where this node is supposed to be, before the news.
        start : Start or None
            Where the run starts, if this is its beginning.
        task : {"scan", "check"}
        complete : bool
            Whether this is the closing round, which asks for nothing but the best merit.
        entries : sequence of News
            The steps since then.
        parts : sequences of bytes
            The atoms of each step, by owner.

        Returns
        -------
        tuple (row, version, checkable) or None
            The proposals with a digest of the state, the version that they are about, and whether
            there is a shortlist.
        """
        if self._scorer is None or (task == "check" and not self._scorer.checkable):
            return None
        if start is not None:
            if at[0] and self._replica is None:
                return None
            self._begin(at[0], start)
            self._at = at
        if self._at != at:
            return None
        replica, left = self._replica, list(parts)
        assert replica is not None
        for news in entries:
            owners = len(dict.fromkeys(news[-1]))
            self._advance(news, left[:owners])
            left = left[owners:]
        self._at = at[0], replica.round
        request = Request(count=1, complete=True) if complete else replica.request()
        answer = self._scorer.answer(task, replica, request)
        row = to_row(answer.proposals, self._node, state_digest(replica))
        return row, replica.round, answer.checkable
