"""An open federated cluster: this process runs the loop, and asks the members.

A round is one question to every member, which brings the features that were handed over since the
last, and one to each owner of new winners. The weights come from here; the members check them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.errors import ClusterError, FalseMessageError, StallError
from atomcast.federated.calls import Calls
from atomcast.federated.consent import target_digest
from atomcast.federated.folds import ALL, of_rows, training_rows
from atomcast.federated.identity import atom_statement
from atomcast.federated.kinds import (
    Acknowledged,
    AtomRequest,
    Begin,
    Describe,
    Fingerprint,
    Finish,
    Hand,
    Message,
    Ruling,
    ScoreRequest,
    Scores,
    Sealed,
)
from atomcast.federated.posed import check_replica, check_score, described, widest
from atomcast.federated.run import checked_atom, context_of
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec, Session
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.network.star import star_accountant
from atomcast.problems.problem import Problem
from atomcast.storage.fingerprint import data_fingerprint

if TYPE_CHECKING:
    from atomcast.federated.federated_cluster import FederatedCluster
    from atomcast.federated.party_shards import PartyShards

logger = logging.getLogger(__name__)

#: How often members that have not decided are asked again, in seconds.
PAUSE = 0.1
#: How long the end of a fit waits for the heads of the audit logs, in seconds.
FAREWELL = 10.0


class ConsentError(ClusterError):
    """Members have not approved what was asked of them."""


class FederatedSession(Session):
    """Members that have approved a fit; made by `FederatedCluster.open`."""

    speaks = True

    def __init__(self, cluster: FederatedCluster, problem: Problem, shards: PartyShards) -> None:
        self.nodes, self.n = cluster.nodes, shards.count()
        self._cluster, self._shards = cluster, shards
        self._calls: Calls = cluster.calls()
        self._rows, plan = shards.infos[0].rows, shards.plan
        self._training = None if plan is None else training_rows(plan.folds, plan.fold)
        self._accountant = star_accountant(self.nodes, cluster.members, self._rows)
        self.ledger = self._accountant.ledger
        self._begin: Begin | None = None
        self._ask: ScoreRequest | None = None
        #: Features by id as their owners signed them, and those not handed on yet.
        self._sealed: dict[int, Hand] = {} if plan is None else plan.sealed
        self._new: list[Hand] = []
        self._silent: set[int] = set()
        self._asked, self._context, self._digits = "", "", np.zeros(self.nodes, dtype=np.int64)
        shards.check_length(problem.d)
        self._introductions = cluster.introductions(self._calls)
        self._peers = cluster.peers(self._calls)
        self._members = " ".join(f"{peer.name}={peer.fingerprint}" for peer in self._peers)
        self._calls.reminder = self._reminder
        begin = self._posed(problem)
        cluster.limit(self._rows, widest(begin.groups))
        self._await_approval(begin)

    def _posed(self, problem: Problem) -> Begin:
        """What members are told of a problem, and must have approved."""
        told, plan = described(problem), self._shards.plan
        if plan is not None:
            told["target"] = np.asarray(plan.target, dtype=np.float64)
        return Begin(
            **told,
            alias=self._shards.alias,
            members=self._members,
            starts=self._shards.starts,
            folds=np.zeros(0, dtype=np.int64) if plan is None else plan.folds,
            fold=ALL if plan is None else plan.fold,
        )

    # -- before the first round -------------------------------------------------------------

    def _await_approval(self, begin: Begin) -> None:
        """Put the offer before the members, and wait until all have approved it."""
        cluster = self._cluster
        offer = cluster.terms.offer(begin, cluster.name, self._shards.infos[0].order)
        until, told = time.monotonic() + cluster.patience, False
        while True:
            answers = self._calls.all(offer)
            verdicts = [answer for answer in answers if isinstance(answer, Ruling)]
            if len(verdicts) < self.nodes:
                raise FalseMessageError("a member answers an offer with something else")
            undecided = [cluster.members[i] for i, v in enumerate(verdicts) if not v.approved]
            if not undecided:
                return
            names = ", ".join(undecided)
            if not told:
                logger.warning("waiting for %s to approve offer %s", names, offer.id)
                told = True
            if time.monotonic() > until:
                raise ConsentError(
                    f"{names} has not approved offer {offer.id} within {cluster.patience:g} s; "
                    f"there, `atomcast node approve {offer.id}` does so. Then fit again, or raise "
                    "FederatedCluster(patience=...) to wait for longer"
                )
            time.sleep(PAUSE)

    def _reminder(self, node: int) -> list[Message]:
        """What a member must be told that has come back, perhaps without its memory."""
        told: list[Message] = [*self._introductions]
        if self._begin is not None:  # data first: they tell how long a message may be
            told += [Describe(self._shards.alias), self._begin]
            told += [hand for hand in self._sealed.values() if hand.owner != node]
        if self._ask is not None:  # it may be asked for features of this very round
            told.append(self._ask)
        return told

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Send the target, and where the run starts."""
        check_replica(replica)
        self._calls.where = "before the first round"
        begin = self._posed(replica.problem)
        self._cluster.terms.check_radius(begin.radius)
        self._context = context_of(begin, self._cluster.name, target_digest(begin.target))
        self._begin, self._ask = begin, None
        self._calls.all(begin)
        return replica

    # -- rounds -----------------------------------------------------------------------------

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Ask every member to score its features at the present weights."""
        self._calls.where = f"round {replica.round}"
        self._cluster.recheck(self._introductions)
        active = replica.active
        ask = ScoreRequest(
            ids=np.array(list(active.position), dtype=np.int64),
            weights=active.weights.copy(),
            count=request.count,
            threshold=request.threshold,
            known_too=request.known_too,
            partial_sums=request.partial_sums,
        )
        new, self._new = self._new, []
        answers = self._calls.ask(
            {i: [*(h for h in new if h.owner != i), ask] for i in range(self.nodes)}
        )
        told = [self._scores(i, answers[i][-1]) for i in range(self.nodes)]
        self._ask, self._asked = ask, told[0].question
        self._digits = np.array([one.digits for one in told])
        self._silent |= {i for i, one in enumerate(told) if one.exhausted}
        self.ledger.uncertified = tuple(self._cluster.members[i] for i in sorted(self._silent))
        agreement = self._accountant.agree(
            self._table(told, replica), request.count, replica.ledger_round
        )
        # What was proposed is compared with what was sent in `cast`, to our tolerance.
        return agreement._replace(version=np.full(len(agreement.id), -1))

    def _scores(self, i: int, answer: Message) -> Scores:
        """The answer of a member, if it makes sense."""
        first, last = self._shards.starts[i : i + 2]
        if not isinstance(answer, Scores):
            raise FalseMessageError(f"{self._cluster.members[i]} has not answered with scores")
        own = bool(np.all((answer.ids >= first) & (answer.ids < last)))
        once = len(np.unique(answer.ids)) == len(answer.ids) == len(answer.scores)
        if not (own and once and np.all(np.isfinite(answer.scores))) or np.isnan(answer.best):
            raise FalseMessageError(f"{self._cluster.members[i]} proposed what it cannot hold")
        return answer

    def _table(self, told: Sequence[Scores], replica: Replica) -> Proposals:
        scores = np.concatenate([one.scores for one in told])
        partial = np.array([one.partial for one in told])
        return Proposals(
            node=np.repeat(np.arange(self.nodes), [len(one.ids) for one in told]),
            id=np.concatenate([one.ids for one in told]),
            score=scores,
            merit=replica.domain.merit(scores),
            best=np.array([one.best for one in told]),
            partial=None if np.isnan(partial).any() else partial,
        )

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Fetch the new winners from their owners; the others get them with the next question."""
        new = agreement.new_to(replica.active)
        stated = dict(zip(agreement.id.tolist(), agreement.score.tolist(), strict=True))
        wanted: dict[int, list[int]] = {}
        for owner, id in new:
            if id not in self._sealed:  # as it may be of another fold
                wanted.setdefault(owner, []).append(id)
        answers = self._calls.ask({o: [AtomRequest(id) for id in ids] for o, ids in wanted.items()})
        for owner, ids in wanted.items():
            for id, answer in zip(ids, answers[owner], strict=True):
                self._sealed[id] = self._signed(owner, id, answer)
        whole = {id: self._whole(owner, id, replica) for owner, id in new}
        fetched = [(owner, id) for owner, id in new if id in wanted.get(owner, ())]
        sizes = [len(self._sealed[id].atom) for _, id in fetched]
        self._accountant.cast([o for o, _ in fetched], [whole[id] for _, id in fetched], sizes)
        self._new = [self._sealed[id] for _, id in new]
        return [self._used(owner, whole[id], replica, stated[id]) for owner, id in new]

    def _signed(self, owner: int, id: int, answer: Message) -> Hand:
        """A feature as its owner has sent and signed it."""
        peer = self._peers[owner]
        if not isinstance(answer, Sealed):
            raise FalseMessageError(f"{peer.name} has not answered with a feature")
        if self._asked and answer.question != self._asked:
            raise FalseMessageError(f"{peer.name} has sent feature {id} with another score")
        hand = Hand(owner, id, answer.question, answer.score, answer.atom, answer.signature)
        statement = atom_statement(self._context, hand.question, hand.score, hand.atom)
        peer.check(statement, hand.signature, f"feature {id}")
        return hand

    def _whole(self, owner: int, id: int, replica: Replica) -> Atom:
        """A feature with all its rows, if it is the one that was asked for."""
        name, ids = self._peers[owner].name, range(id, id + 1)
        return checked_atom(self._sealed[id], name, ids, replica.active, self._rows)

    def _used(self, owner: int, whole: Atom, replica: Replica, stated: float) -> Atom:
        """The rows of a feature that are used, if it has the score that was stated."""
        atom, hand = of_rows(whole, self._training), self._sealed[whole.id]
        if self._asked:  # else the run is being resumed, and nothing was stated yet
            name, gradient = self._peers[owner].name, replica.active.iterate()
            digits = int(self._digits[owner])
            check_score(replica.active, atom, gradient, stated, name, digits)
            if hand.question == self._asked:  # else it is known from another fold
                check_score(replica.active, atom, gradient, hand.score, name)
        return atom

    # -- resuming ---------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """What tells these features from others: every member has a keyed hash of its own."""
        notes = [str(getattr(answer, "note", "")) for answer in self._calls.all(Fingerprint())]
        try:
            return data_fingerprint(self.n, [int(note, 16) for note in notes])
        except ValueError:
            raise FalseMessageError("a member has not answered with a fingerprint") from None

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The member that holds each of these features, shape (k,); -1 where there is none."""
        owners = np.searchsorted(self._shards.starts, ids, side="right") - 1
        return np.where((ids >= 0) & (ids < self.n), owners, -1)

    def close(self, error: BaseException | None) -> None:
        """Say that it is over; the heads of the audit logs go to the ledger."""
        try:
            answers = self._cluster.calls(FAREWELL if error is None else 1.0).all(Finish())
        except (ClusterError, StallError) as trouble:
            logger.warning("the audit logs did not say where they end: %s", trouble)
            return
        self.ledger.audit_heads = {
            name: answer.note
            for name, answer in zip(self._cluster.members, answers, strict=True)
            if isinstance(answer, Acknowledged)
        }
