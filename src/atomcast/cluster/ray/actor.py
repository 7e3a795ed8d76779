"""A node that is a Ray actor: its shard, its own copy of the state, and nothing of the engine.

An actor that was lost comes back without its state. It loads its shard again, and `restore`
replays the log of what was broadcast: every step is deterministic, so that it ends up where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from atomcast.cluster.consistency import state_digest
from atomcast.cluster.mixing import as_message, image_size, own_mixtures
from atomcast.cluster.node import Fleet
from atomcast.cluster.slowdown import Slowdown, as_slow
from atomcast.cluster.validation import ShardReport, inspect
from atomcast.data.shards import Shard, Shards
from atomcast.known.mixtures import REMEMBERED
from atomcast.loop.replica import Replica, Tolerance
from atomcast.loop.resuming import go_on
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Selection
from atomcast.steps import Step
from atomcast.storage.fingerprint import shard_fingerprint
from atomcast.storage.snapshot import parse_checkpoint

#: So many numbers come before the proposals of a node.
HEAD = 4
#: What a turn tells: the agreement, and for each owner in turn how many atoms it has sent.
News = tuple[Any, ...]


@dataclass(frozen=True)
class Start:
    """Where a run starts, as every node hears of it.

    Parameters
    ----------
    problem, step, tol, selection, staleness
        As for a `Replica`.
    weights : array
        Those of all atoms that are known from the run before.
    sizes : array of shape (N,)
        How many atoms each node holds.
    resumed : tuple (bytes, list of bytes) or None
        The checkpoint that the run goes on from, and the atoms of its log; or, where it was at a
        point that a coordinator told, that point, once it is known again.
    """

    problem: Problem
    step: Step
    tol: Tolerance
    selection: Selection
    staleness: int | None
    weights: NDArray[np.float64]
    sizes: NDArray[np.int64]
    resumed: tuple[bytes, list[bytes]] | None = None


def as_news(agreement: Agreement, owners: Sequence[int]) -> News:
    """An agreement as plain numbers, which Ray sends fastest, and the owners of its new atoms."""
    lists = (agreement.owner.tolist(), agreement.id.tolist(), agreement.score.tolist())
    version = None if agreement.version is None else agreement.version.tolist()
    rest = (agreement.complete, version, agreement.choice, agreement.mixed, list(owners))
    return (agreement.best, agreement.inner, *lists, *rest)


def in_order(owners: Sequence[int], parts: Sequence[Sequence[bytes]]) -> list[bytes]:
    """The messages of several owners, each list in order, as one list in the order of winners."""
    lists = {owner: iter(part) for owner, part in zip(dict.fromkeys(owners), parts, strict=True)}
    return [next(lists[owner]) for owner in owners]


class RayNode:
    """One node; Ray makes an actor of it.

    Parameters
    ----------
    node, nodes : int
        Its number, and how many there are.
    threads : int
        How many threads it uses for linear algebra.
    slowdown : Slowdown, optional
        What makes it slower than it is.
    """

    def __init__(
        self, node: int, nodes: int, threads: int, slowdown: Slowdown | None = None
    ) -> None:
        threadpool_limits(limits=threads)
        self._slowdown = slowdown
        self._node, self._nodes = node, nodes
        self._fleet: Fleet | None = None
        self._shard: Callable[[], Shard] | None = None
        self._axis = 1
        self._at: tuple[int, int] | None = None
        self._replica: Replica | None = None

    def ready(self) -> bool:
        """Whether this node is there."""
        return True

    def load(self, problem: Problem, source: Shard | Shards, total: int | None) -> ShardReport:
        """Load the shard and check it; says how that went.

        Parameters
        ----------
        problem : Problem
        source : Shard or Shards
            The shard, or where to find it: then this node reads it itself.
        total : int or None
            How many atoms there are in all, if a shard is given.
        """
        node, axis = self._node, problem.axis
        self._fleet, self._at, self._replica, self._axis = None, None, None, axis
        if isinstance(source, Shards):
            shards = source
            self._shard = partial(shards.shard, node, axis)
            shard, report = inspect(problem, self._shard, lambda: shards.count(axis), node)
        else:
            given = source
            self._shard = lambda: given
            shard, report = inspect(problem, self._shard, lambda: int(total or 0), node)
        if shard is not None:
            owner = np.full(len(shard.ids), node, dtype=np.int64)
            atoms = problem.make_atoms(shard)
            self._fleet = as_slow(Fleet, self._slowdown)(atoms, shard.ids, owner, self._nodes)
        return report

    def turn(
        self, run: int, round: int, start: Start | None, news: News | None, *parts: Sequence[bytes]
    ) -> bytes | None:
        """Take the step that the last round led to, and propose; None if this node is behind.

        `start` is given in the first round of a run, which is not 0 if the run is resumed.
        """
        if self._fleet is None:
            return None
        if self._at != (run, round):
            if start is not None and (run == 0 or self._replica is not None):
                self._begin(run, start)
            elif self._at == (run, round - 1) and news is not None:
                self._advance(news, parts)
            else:
                return None
            self._at = run, round
        replica = self._replica
        assert replica is not None
        return self._row(replica.request())

    def complete(self, run: int, round: int) -> tuple[bytes, dict[int, float]] | None:
        """A proposal from all atoms, also those that the selection leaves out, and its radius.

        It closes a run; None if this node is not in its last round.
        """
        if self._fleet is None or self._replica is None or self._at != (run, round):
            return None
        row = self._row(Request(count=1, complete=True))
        return row, self._replica.radius

    def _row(self, request: Request) -> bytes:
        assert self._fleet is not None
        assert self._replica is not None
        proposals = self._fleet.propose(self._replica, request)
        beside = state_digest(self._replica), self._fleet.unread
        return to_row(proposals, self._node, *beside)

    def atoms(self, ids: Sequence[int]) -> list[bytes] | None:
        """Atoms of this node that have won, as they travel; None if it has lost its shard."""
        fleet = self._fleet
        return None if fleet is None else [wire.encode(fleet.atom(id)) for id in ids]

    def mixtures(self, run: int, round: int, best: float) -> bytes | None:
        """What this node has to send as mixtures; None if it is not in this round."""
        if self._fleet is None or self._replica is None or self._at != (run, round):
            return None
        return as_message(own_mixtures(self._fleet, self._replica, best))

    def recalled(self, run: int, start: Start) -> bytes | None:
        """What this node has to say of a point that a run goes on from; None without a shard."""
        if self._fleet is None:
            return None
        self._at = None
        self._begin(run, start)
        assert self._replica is not None
        return as_message(own_mixtures(self._fleet, self._replica, -np.inf))

    def restore(self, log: Sequence[tuple[Any, Sequence[tuple[News, Sequence[bytes]]]]]) -> None:
        """Go through all that was broadcast, from the first run to the last round."""
        import ray

        self._at, self._replica = None, None
        for run, (start, rounds) in enumerate(log):
            self._begin(run, ray.get(start))
            for news, messages in rounds:
                self._redo(news)
                owners = news[-1]
                parts: dict[int, list[bytes]] = {owner: [] for owner in owners}
                for owner, message in zip(owners, messages, strict=True):
                    parts[owner].append(message)
                self._advance(news, list(parts.values()))
            assert self._replica is not None
            self._at = run, self._replica.round

    def _redo(self, news: News) -> None:
        """Say once more what is known, where this node's own steps follow it."""
        assert self._replica is not None
        assert self._fleet is not None
        step, (best, mixed) = self._replica.step, (news[0], news[-2])
        if step.needs_blocks or mixed:
            self._fleet.propose(self._replica, self._replica.request())
        if mixed:
            own_mixtures(self._fleet, self._replica, best)

    def fingerprint(self) -> int | None:
        """What tells the atoms of this node from others; None if it has lost its shard."""
        if self._fleet is None or self._shard is None:
            return None
        return shard_fingerprint(self._shard(), self._axis)

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """For each atom, this node if it holds it, and -1 if not; None if it has lost its shard."""
        return None if self._fleet is None else self._fleet.owners(ids)

    def _begin(self, run: int, start: Start) -> None:
        previous = self._replica if run else None
        replica = Replica(start.problem, start.step, start.tol, start.selection)
        replica.staleness = start.staleness
        if previous is not None:
            replica.continue_from(previous, start.weights)
        if start.resumed is not None:
            self._resume(replica, *start.resumed)
        assert self._fleet is not None
        self._fleet.sizes = start.sizes
        self._replica = replica

    def _resume(self, replica: Replica, content: bytes, messages: Sequence[bytes]) -> None:
        """Go to where the run was that wrote a checkpoint."""
        assert self._fleet is not None
        snapshot = parse_checkpoint(content, "the checkpoint")
        if not replica.active.recall_point(snapshot.memory):
            go_on("the checkpoint", snapshot, replica, self._read(replica, snapshot.ids, messages))
            return
        replica.round = snapshot.round
        replica.step.remember(snapshot.memory)
        for message in messages:
            own_mixtures(self._fleet, replica, -np.inf)  # as it was said before the point was told
            replica.active.go_to(self._point(replica, message))

    def _point(self, replica: Replica, message: bytes) -> Atom:
        """A point that the coordinator has told."""
        shares = REMEMBERED * self._nodes if replica.step.mixes else 0
        return wire.decode(message, image_size(replica) + shares)

    def _advance(self, news: News, parts: Sequence[Sequence[bytes]]) -> None:
        assert self._replica is not None
        best, inner, owner, id, score, complete, version, choice, mixed, owners = news
        agreement = Agreement(
            best,
            np.array(owner, dtype=np.int64),
            np.array(id, dtype=np.int64),
            np.array(score, dtype=np.float64),
            inner,
            complete,
            None if version is None else np.array(version, dtype=np.int64),
            choice=choice,
            mixed=mixed,
        )
        if mixed:
            self._replica.advance(agreement, [self._point(self._replica, parts[0][0])])
            return
        new = [id for _, id in agreement.new_to(self._replica.active)]
        self._replica.advance(agreement, self._read(self._replica, new, in_order(owners, parts)))

    def _read(self, replica: Replica, ids: Iterable[int], messages: Sequence[bytes]) -> list[Atom]:
        """The atoms with these ids, as their owners sent them."""
        assert self._fleet is not None
        lengths = [replica.active.length_of(int(id), self._fleet.atoms.d) for id in ids]
        return [wire.decode(m, length) for m, length in zip(messages, lengths, strict=True)]


def to_row(own: Proposals, node: int, digest: int, unread: int = 0) -> bytes:
    """One node's proposals as bytes, and what goes beside them: eight for each number."""
    partial = np.nan if own.partial is None else own.partial[node]
    head = np.array([own.best[node], partial, 0.0, 0.0])
    head.view(np.int64)[2:] = digest, unread
    if own.sum is not None:
        return head.tobytes() + own.sum.tobytes()
    return b"".join((head.tobytes(), own.id.tobytes(), own.score.tobytes(), own.merit.tobytes()))


def from_rows(
    rows: Sequence[bytes], summed: bool = False
) -> tuple[Proposals, list[int], list[int]]:
    """What all nodes propose, or add to a sum; their digests; how many atoms they left unread."""
    heads = np.array([np.frombuffer(row, count=HEAD) for row in rows])
    tables = [np.frombuffer(row, offset=8 * HEAD) for row in rows]
    total = np.sum(tables, axis=0) if summed else None
    tables = [(part[:0] if summed else part).reshape(3, -1) for part in tables]
    table = np.concatenate(tables, axis=1)
    proposals = Proposals(
        node=np.repeat(np.arange(len(rows)), [part.shape[1] for part in tables]),
        id=table[0].view(np.int64),
        score=table[1],
        merit=table[2],
        best=heads[:, 0].copy(),
        partial=None if np.isnan(heads[:, 1]).any() else heads[:, 1].copy(),
        sum=total,
    )
    digests, unread = np.ascontiguousarray(heads[:, 2:].T).view(np.int64).tolist()
    return proposals, digests, unread
