"""An open Ray cluster: this process runs the loop and speaks for the coordinator of a star.

A round takes one call to every node, which brings it the last agreement and its atoms and returns
its proposals, and one call to each owner of new winners. Atoms stay with Ray as objects: nodes
fetch them from where they are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
from threadpoolctl import threadpool_limits

from atomcast.cluster.consistency import check_digests, state_digest
from atomcast.cluster.machine import log_nodes
from atomcast.cluster.mixing import cast_point, from_message
from atomcast.cluster.ray.actor import Start, as_news, from_rows, in_order
from atomcast.cluster.ray.deadline import NodeError, late, stalled
from atomcast.cluster.summing import agree_on_sum
from atomcast.cluster.validation import check_reports, refuse_balanced
from atomcast.data.alignment import check_unique
from atomcast.data.shards import Shards
from atomcast.errors import StallError
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec, Session
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request
from atomcast.network.ledger import Ledger
from atomcast.network.star import star_accountant
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.storage.fingerprint import data_fingerprint

if TYPE_CHECKING:
    from atomcast.cluster.ray.ray_cluster import RayCluster

logger = logging.getLogger(__name__)

#: How long to wait before an actor that is being restarted is asked again, in seconds.
PAUSE = 0.1


class RaySession(Session):
    """Actors with their shards loaded; made by `RayCluster.open`."""

    speaks = True
    mixes = True

    def __init__(self, cluster: RayCluster, problem: Problem, shards: Shards) -> None:
        if shards.nodes != cluster.nodes:
            raise ValueError(
                f"the data is cut into {shards.nodes} shards, but the cluster has "
                f"{cluster.nodes} nodes; use RayCluster(nodes={shards.nodes})"
            )
        self.nodes = cluster.nodes
        self._cluster = cluster
        self._accountant = star_accountant(self.nodes, shards.party_names, problem.told)
        self._limits = threadpool_limits(limits=cluster.threads)
        self._actors: list[Any] = []
        self._log: list[tuple[Any, list[Any]]] = []
        self._news: tuple[Any, ...] = (None,)
        self._round, self._first = 0, 0
        self._resumed: bytes | None = None
        self._fingerprint: str | None = None
        with ExitStack() as opening:
            opening.push(self)
            names = shards.column_names(problem.axis) if problem.axis == 1 else None
            check_unique(names or (), what="the column name")
            self._prepare(problem, shards)
            self.n = self._checked(problem.axis)
            opening.pop_all()

    @property
    def ledger(self) -> Ledger:  # type: ignore[override]  # nobody sets it
        """The account of the logical star."""
        return self._accountant.ledger

    # -- starting ---------------------------------------------------------------------------

    def _prepare(self, problem: Problem, shards: Shards) -> None:
        """Give Ray what the nodes will load: shards, or where each finds its own file."""
        self._problem = ray.put(problem)
        own_files = shards.kind == "files"
        self._sources = (
            [ray.put(shards)] * self.nodes
            if own_files
            else [ray.put(shards.shard(i, problem.axis)) for i in range(self.nodes)]
        )
        self._total = None if own_files else shards.count(problem.axis)
        self._actors = self._cluster.take_actors()

    def _load(self, i: int) -> Any:
        # Not arguments of the actor itself: Ray could not restart it if one of them were lost.
        return self._actors[i].load.remote(self._problem, self._sources[i], self._total)

    def _checked(self, axis: int) -> int:
        """How many atoms there are, if all shards are sound and fit together."""
        ready = [actor.ready.remote() for actor in self._actors]
        asked = [self._load(i) for i in range(self.nodes)]
        waiting = late(ready, self._cluster.patience)
        if waiting:
            raise NodeError(
                f"node {', '.join(map(str, waiting))} found no place within "
                f"{self._cluster.patience:g} s: node {waiting[-1]} asks for "
                f"{self._cluster.options(waiting[-1])}, and the cluster has "
                f"{ray.available_resources()} to offer; ask for less, or add machines"
            )
        try:
            reports = ray.get(asked, timeout=self._cluster.deadline)
        except GetTimeoutError:
            where = "before the first round"
            raise stalled(where, range(self.nodes), asked, self._cluster.deadline) from None
        except RayActorError as error:
            raise NodeError(f"a node was lost while it loaded its shard: {error}") from error
        check_reports(reports, axis)
        log_nodes(logger, reports, self._cluster.threads)
        self._sizes = np.array([report.atoms for report in reports])
        self.usual_size = sum(report.stored for report in reports) / int(reports[0].total)
        self.d = int(reports[0].length)
        return int(reports[0].total)

    # -- the verbs of a session -------------------------------------------------------------

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Write down, for the nodes and for those that must be rebuilt, where the run starts."""
        refuse_balanced(replica)
        self._start = Start(
            replica.problem,
            replica.step,
            replica.tol,
            replica.selection,
            replica.staleness,
            weights=replica.active.weights.copy(),
            sizes=self._sizes,
        )
        self._log.append((ray.put(self._start), []))
        self._news, self._first = (None,), 0
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let every node take the last step and propose; from all its atoms, if that closes a run.

        A closing round also tells how far atoms are from those that a selection left in.
        """
        run, round = len(self._log) - 1, replica.round
        self._round = round
        start = self._log[-1][0] if round == self._first else None

        def ask(actor: Any) -> Any:
            if request.complete:
                return actor.complete.remote(run, round)
            return actor.turn.remote(run, round, start, *self._news)

        rows = self._answers([(i, ask) for i in range(self.nodes)])
        if request.complete:
            for _, radius in rows:
                replica.radius.update(radius)
            rows = [row for row, _ in rows]
        proposals, digests, unread = from_rows(rows, replica.problem.summed)
        self.unread = sum(unread)
        check_digests([*digests, state_digest(replica)], round)
        if proposals.sum is not None:
            return agree_on_sum(self._accountant, proposals.sum, replica)
        proposals = proposals._replace(signals=request.signals)
        return self._accountant.agree(proposals, request.count, replica.ledger_round)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Let the owners hand out the new winners; the nodes get them with the next turn."""
        if agreement.sum is not None:
            messages = [wire.encode(atom) for atom in agreement.summed]
            news = as_news(agreement, agreement.owner.tolist())
            self._news = (news, messages) if messages else (news,)
            self._log[-1][1].append((news, messages))
            return agreement.summed
        if agreement.mixed:
            return [self._mixed(replica, agreement)]
        new = agreement.new_to(replica.active)
        owners = [owner for owner, _ in new]
        calls = [
            (owner, _atoms_call([id for other, id in new if other == owner]))
            for owner in dict.fromkeys(owners)
        ]
        refs: list[Any] = []
        messages = in_order(owners, self._answers(calls, refs))
        if self._resumed is not None:  # no step follows: the run starts with these atoms
            self._start_again(replica, messages)
        else:
            news = as_news(agreement, owners)
            self._news = (news, *refs)
            self._log[-1][1].append((news, messages))
        lengths = [replica.active.length_of(id, self.d) for _, id in new]
        return self._accountant.receive(owners, messages, lengths)

    def _mixed(self, replica: Replica, agreement: Agreement) -> Atom:
        """Combine the mixtures of all nodes, which hear of it with the next turn."""
        run, best, start = len(self._log) - 1, agreement.best, self._start
        if self._resumed is not None:
            start = replace(start, resumed=(self._resumed, []))

        def ask(actor: Any) -> Any:
            if self._resumed is not None:
                return actor.recalled.remote(run, start)
            return actor.mixtures.remote(run, replica.round, best)

        parts = self._answers([(i, ask) for i in range(self.nodes)])
        said = [mixture for part in parts for mixture in from_message(part, replica)]
        point = cast_point(self._accountant, replica, best, said)
        news, messages = as_news(agreement, [0]), [wire.encode(point)]
        if self._resumed is not None:
            self._start_again(replica, messages)
        else:
            self._news = (news, messages)
            self._log[-1][1].append((news, messages))
        return point

    def _start_again(self, replica: Replica, messages: Sequence[bytes]) -> None:
        """Let the run start from a checkpoint and what was told for it; no step follows."""
        assert self._resumed is not None
        start = replace(self._start, resumed=(self._resumed, list(messages)))
        self._log[-1] = (ray.put(start), [])
        self._first, self._resumed = replica.round, None

    # -- resuming ---------------------------------------------------------------------------

    def shared(self, read: Callable[[], bytes]) -> bytes:
        """Read a checkpoint; the nodes get it with the atoms that are cast next."""
        self._resumed = read()
        return self._resumed

    def fingerprint(self) -> str:
        """What tells these atoms from others; every node looks at its own."""
        if self._fingerprint is None:
            parts = self._answers([(i, _fingerprint_call) for i in range(self.nodes)])
            self._fingerprint = data_fingerprint(self.n, parts)
        return self._fingerprint

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The node that holds each of these atoms, shape (k,); -1 where there is none."""
        calls = [(i, lambda actor: actor.owners.remote(ids)) for i in range(self.nodes)]
        owners: NDArray[np.int64] = np.max(self._answers(calls), axis=0)
        return owners

    def close(self, error: BaseException | None) -> None:
        """Give the actors back; after bad data they are as good as ever, else they may be busy."""
        fit = error is None or isinstance(error, ValueError)
        self._cluster.return_actors(self._actors, fit=fit)
        self._actors, self._log, self._sources = [], [], []
        self._limits.restore_original_limits()

    # -- nodes that are lost ----------------------------------------------------------------

    def _answers(
        self, calls: Sequence[tuple[int, Callable[[Any], Any]]], refs: list[Any] | None = None
    ) -> list[Any]:
        """The answers to calls of several nodes; those of lost nodes are asked for again."""
        asked = [call(self._actors[i]) for i, call in calls]
        if refs is not None:
            refs.extend(asked)
        try:
            answers = ray.get(asked, timeout=self._cluster.deadline)
        except GetTimeoutError:
            raise self._stalled([i for i, _ in calls], asked) from None
        except RayError:
            if late(asked, self._cluster.deadline):
                raise self._stalled([i for i, _ in calls], asked) from None
            answers = [self._answer(i, ref) for (i, _), ref in zip(calls, asked, strict=True)]
        for k, (i, call) in enumerate(calls):
            if answers[k] is None:
                answers[k] = self._after_restoring(i, call)
                if refs is not None:
                    refs[k] = ray.put(answers[k])
        return answers

    def _answer(self, i: int, ref: Any) -> Any:
        """An answer, None if the node or the message was lost; an error of the node is raised."""
        try:
            return ray.get(ref)
        except RayTaskError as error:
            if isinstance(error.cause, RayError):
                return None
            raise NodeError(f"node {i} failed: {error.cause!r}") from error
        except RayError:
            return None

    def _after_restoring(self, i: int, call: Callable[[Any], Any]) -> Any:
        """The answer of a node that was lost, once it is back and knows all that it missed."""
        log, patience = ray.put(self._log), self._cluster.patience
        logger.warning("round %d: node %d is lost; waiting for it to come back", self._round, i)
        self._news = (None,)  # the log tells it all, and objects of a lost machine may be gone
        deadline = time.monotonic() + patience
        while True:
            left = max(deadline - time.monotonic(), PAUSE)
            try:
                ray.get(self._actors[i].ready.remote(), timeout=left)
                report = self._in_time(i, self._load(i))
                check_reports([report], 1)
                self._in_time(i, self._actors[i].restore.remote(log))
                answer = self._in_time(i, call(self._actors[i]))
                if answer is not None:
                    logger.info("round %d: node %d is back on %s", self._round, i, report.machine)
                    return answer
            except RayTaskError as error:
                raise NodeError(f"node {i} was lost, and failed again: {error.cause}") from error
            except (RayActorError, GetTimeoutError) as error:
                if time.monotonic() > deadline:
                    raise NodeError(
                        f"node {i} was lost and did not come back within {patience:g} s: {error}. "
                        "Is there another machine that offers what it asks for?"
                    ) from error
            time.sleep(PAUSE)

    def _stalled(self, nodes: Sequence[int], asked: Sequence[Any]) -> StallError:
        return stalled(f"round {self._round}", nodes, asked, self._cluster.deadline)

    def _in_time(self, i: int, ref: Any) -> Any:
        """The answer of one node, or the error that it stalls."""
        try:
            return ray.get(ref, timeout=self._cluster.deadline)
        except GetTimeoutError:
            raise self._stalled([i], [ref]) from None


def _fingerprint_call(actor: Any) -> Any:
    return actor.fingerprint.remote()


def _atoms_call(ids: Sequence[int]) -> Callable[[Any], Any]:
    return lambda actor: actor.atoms.remote(list(ids))
