"""What a node answers, what it refuses, and what it writes down; it knows no transport.

Nothing of what it is told is believed before it was checked: the problem must be one that a human
has approved, weights must lie in the ball and not raise the objective, and features of others must
be signed by their owners.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from atomcast.errors import FalseMessageError
from atomcast.federated import kinds
from atomcast.federated.account import Told
from atomcast.federated.chains import IdentityError
from atomcast.federated.consent import RefusedError
from atomcast.federated.folds import fewest_rows
from atomcast.federated.frames import longest
from atomcast.federated.holding import Holding, load_holding
from atomcast.federated.identity import Credentials, approved_members
from atomcast.federated.kinds import Introduce, Message
from atomcast.federated.policy import NodeConfig
from atomcast.federated.posed import widest
from atomcast.federated.prediction import own_part, permitted
from atomcast.federated.records import Records
from atomcast.federated.run import NodeRun
from atomcast.federated.schema import SchemaError

logger = logging.getLogger(__name__)

#: What may be told of an error; others could say what is in the data.
TOLD = (RefusedError, IdentityError, SchemaError, FalseMessageError)
#: What the log says of a problem.
TOLD_OF_RUNS = ("alias", "members", "objective", "domain", "radius", "fold")


class Node:
    """A party's own representative: it holds the data and guards them.

    Parameters
    ----------
    config : NodeConfig
    credentials : Credentials
    """

    def __init__(self, config: NodeConfig, credentials: Credentials) -> None:
        self.config, self.credentials = config, credentials
        self._records = Records(config.state)
        self._account, self.note = self._records.account, self._records.note
        self._holdings: dict[str, Holding] = {}
        self._claims: dict[str, Introduce] = {}
        self._run: NodeRun | None = None
        self._handlers: dict[type[Message], Callable[[Any], Message]] = {
            kinds.Introduce: self._introduce,
            kinds.Describe: self._describe,
            kinds.ConsentOffer: self._offer,
            kinds.Begin: self._begin,
            kinds.ScoreRequest: self._ask,
            kinds.AtomRequest: self._fetch,
            kinds.Hand: self._hand,
            kinds.Fingerprint: self._fingerprint,
            kinds.Predict: self._predict,
            kinds.Finish: self._finish,
        }

    @property
    def longest(self) -> int:
        """How many bytes a message to this node may have, given the data that it has loaded."""
        rows = max([holding.rows for holding in self._holdings.values()], default=0)
        return longest(rows, 1 if self._run is None else widest(self._run.begin.groups))

    def close(self) -> None:
        """Let go of the audit log."""
        self._records.log.close()

    def answer(self, message: Message) -> Message:
        """The answer to a message of the coordinator, whose identity the transport has checked."""
        kind = type(message).__name__
        try:
            self._records.note_decisions()
            if type(message) not in self._handlers:
                raise SchemaError(f"{kind} is nothing that a node is asked")
            return self._handlers[type(message)](message)
        except TOLD as error:
            reason = str(error)
        except Exception as error:
            logger.warning("%s failed", kind, exc_info=error)
            self.note("failed", request=kind, reason=f"{type(error).__name__}: {error}")
            return kinds.Refusal("its data or settings cannot be used: its audit log says why")
        self.note("refused", request=kind, reason=reason[:1000])
        return kinds.Refusal(reason[:1000])

    # -- who and what ---------------------------------------------------------------------

    def meet(self, coordinator: Introduce) -> None:
        """Know who is at the other end of the connection, which the transport has checked."""
        self._claims[coordinator.name] = coordinator
        peer = self.credentials.known(coordinator)
        about = {"coordinator": peer.name, "fingerprint": peer.fingerprint}
        self.note("connected", **about, address=self.config.address)

    def _introduce(self, message: Introduce) -> Message:
        peer = self.credentials.known(message)
        if self._claims.get(message.name) != message:
            self.note("introduced", durable=False, name=peer.name, fingerprint=peer.fingerprint)
        self._claims[message.name] = message
        return kinds.Acknowledged("")

    def _describe(self, message: kinds.Describe) -> Message:
        holding = self._holding(message.alias)
        self.note("described", alias=message.alias, rows=holding.rows, features=holding.features)
        return kinds.Description(holding.rows, holding.features, holding.order)

    def _holding(self, alias: str) -> Holding:
        if alias not in self.config.data:
            raise RefusedError(f"there is no data called {alias!r} here")
        if alias not in self._holdings:
            source = self.config.data[alias]
            like = self.config.data.get(source.prepared_as or alias)
            holding = load_holding(source, self.config.policy, like)
            self.note("loaded", alias=alias, rows=holding.rows, withheld=holding.withheld)
            self._holdings[alias] = holding
        return self._holdings[alias]

    def _offer(self, offer: kinds.ConsentOffer) -> Message:
        if offer.coordinator != self.config.coordinator:
            raise RefusedError(f"{offer.coordinator!r} is not the coordinator of this node")
        holding = self._holding(offer.alias)
        if self.config.data[offer.alias].new:
            raise RefusedError(f"{offer.alias!r} is there to predict for, and not to fit to")
        if (offer.rows, offer.order) != (holding.rows, holding.order):
            raise RefusedError(
                f"the target is for {offer.rows} rows in another order than the {holding.rows} "
                "here: align the rows first (`atomcast align`)"
            )
        return kinds.Ruling(self._records.ruling(offer, holding.digest), offer.id)

    def _begin(self, begin: kinds.Begin) -> Message:
        approval = self._records.approval(begin, self.config.coordinator)
        least, offer = self.config.policy.min_count, approval.offer
        holding = self._holding(offer.alias)
        self._records.check_unchanged(offer, holding.digest)
        others = [self.credentials.known(claim) for claim in self._parties(begin.members)]
        peers = {peer.name: peer for peer in (*others, self.credentials.peer)}
        members = approved_members(begin.members, peers)
        if self.credentials.peer not in members:
            raise RefusedError("this node is no member of the fit")
        own = members.index(self.credentials.peer)
        run = NodeRun(begin, approval, holding, members, own, self._run)
        classes = begin.objective != "squared error"
        if not fewest_rows(begin.target, begin.folds, classes) >= least:  # nor NaN
            raise RefusedError(
                f"the target, or a part of it for cross-validation, tells fewer than {least} rows "
                "from all others: scores against it would be their data"
            )
        known = self._account.problems[offer.id]
        if known and self._records.begun(offer.id)["start"] != run.start:
            raise RefusedError("features have other numbers than in earlier runs of this approval")
        if run.key not in known:
            if len(known) >= offer.runs:
                raise RefusedError(f"approval {offer.id} is for {offer.runs} problems, all used")
            self._records.take_folds(begin.folds, holding.people, least)
            self.note(
                "run",
                run=run.key,
                context=run.own_context,
                approval=offer.id,
                approved_by=approval.by,
                coordinator=offer.coordinator,
                target=offer.target,
                **{name: getattr(begin, name) for name in TOLD_OF_RUNS},
                **{name: getattr(run, name) for name in ("rows", "start", "outputs")},
            )
        self._run = run
        return kinds.Acknowledged("")

    def _parties(self, members: str) -> list[Introduce]:
        """The claims of the coordinator and of these members, and of nobody else."""
        names = [self.config.coordinator, *(one.partition("=")[0] for one in members.split())]
        return [claim for name, claim in self._claims.items() if name in names]

    # -- rounds ---------------------------------------------------------------------------

    def _current(self) -> tuple[NodeRun, Told]:
        if self._run is None:
            raise RefusedError("no problem was begun")
        self._records.check_valid(self._run.approval)
        self.credentials.recheck(self._parties(self._run.begin.members))
        return self._run, self._account.runs[self._run.key]

    def _ask(self, ask: kinds.ScoreRequest) -> Message:
        run, told = self._current()
        run.take(ask, self._account.known[run.own_context])
        if run.asked in told.answers:
            self.note("repeated", run=run.key, approval=run.approval.offer.id, question=run.asked)
        else:
            self._answer_anew(run, told, ask)
        answer = told.answers[run.asked]
        exhausted = answer["best"] is None
        return kinds.Scores(
            question=run.asked,
            best=-np.inf if exhausted else answer["best"],
            partial=np.nan if answer["partial"] is None else answer["partial"],
            exhausted=exhausted,
            digits=self.config.policy.score_digits,
            ids=np.array(answer["ids"], dtype=np.int64),
            scores=np.array(answer["scores"], dtype=np.float64),
        )

    def _answer_anew(self, run: NodeRun, told: Told, ask: kinds.ScoreRequest) -> None:
        """Score, and write down what will be told before it is."""
        policy, offer = self.config.policy, run.approval.offer
        limit = min(policy.rounds_per_run, offer.rounds)
        if len(told.answers) >= limit:
            raise RefusedError(f"the {limit} rounds of this problem are used up")
        run.check_objective(told.objective)
        left = self._account.left(told, offer, policy) // run.widest
        most = min(policy.proposals_per_round, offer.proposals, left)
        asked = self._account.asked[run.own_context, run.begin.fold] | {run.weights}
        handed = {id for context, id in self._account.received if context == run.context}
        known = handed | self._account.known[run.own_context]
        best, partial, ids, scores = None, None, [], []
        if most > 0 and not run.solvable(len(asked), known):
            found = run.proposals(ask, most)
            best = float(policy.rounded(found.best, up=True)) if np.isfinite(found.best) else 0.0
            partial = None if found.partial is None else float(policy.rounded(found.partial))
            ids, scores = found.ids.tolist(), policy.rounded(found.scores).tolist()
        self.note(
            "scores",
            run=run.key,
            approval=offer.id,
            question=run.asked,
            weights=run.weights,
            objective=run.objective,
            best=best,
            partial=partial,
            ids=ids,
            names=[", ".join(run.names(id)) for id in ids],
            scores=scores,
        )

    def _fetch(self, fetch: kinds.AtomRequest) -> Message:
        run, told = self._current()
        if fetch.id not in self._account.known[run.own_context]:  # else it has left for this fit
            if fetch.id not in told.proposed:
                raise RefusedError(f"feature {fetch.id} was not proposed, and does not leave")
            left = self._account.left(told, run.approval.offer, self.config.policy)
            if left < len(run.names(fetch.id)):
                raise RefusedError("the budget of features that may leave is used up")
        score, content = run.outgoing(fetch.id)
        offer, own = run.approval.offer, self.credentials.peer
        self.note(
            "atom",
            run=run.key,
            context=run.own_context,
            approval=offer.id,
            alias=run.begin.alias,
            id=fetch.id,
            names=run.names(fetch.id),
            values=run.rows * len(run.names(fetch.id)),
            sha256=hashlib.sha256(content).hexdigest(),
            recipients=[offer.coordinator, *(p.name for p in run.members if p != own)],
        )
        signature = self.credentials.sign(run.statement(run.asked, score, content))
        return kinds.Sealed(run.asked, score, content, signature)

    def _hand(self, hand: kinds.Hand) -> Message:
        run, _ = self._current()
        digest = hashlib.sha256(hand.atom).hexdigest()
        atom, owner = run.checked(hand), run.members[hand.owner].name
        known = self._account.received.get((run.context, atom.id))
        if known not in (None, digest):
            raise FalseMessageError(
                f"{owner} has signed another feature {atom.id} before: of SHA-256 {known}, "
                f"and now {digest}"
            )
        run.accept(atom)
        about = {"context": run.context, "owner": owner, "id": atom.id, "name": atom.name}
        about |= {"values": atom.d, "sha256": digest}
        self.note("handed", durable=False, run=run.key, **about)
        return kinds.Acknowledged("")

    # -- before and after -----------------------------------------------------------------

    def _fingerprint(self, message: kinds.Fingerprint) -> Message:
        run, _ = self._current()
        self.note("fingerprint", run=run.key, approval=run.approval.offer.id)
        keyed = self.credentials.sign(f"fingerprint {run.own_context}".encode())
        return kinds.Acknowledged(hashlib.sha256(keyed).hexdigest()[:16])

    def _predict(self, predict: kinds.Predict) -> Message:
        """The own part of a score, for weights that were asked about in an approved run."""
        self.credentials.recheck(self._parties(""))
        new = self._holding(predict.alias)
        approval, question, run = permitted(
            predict, new.digest, self._records.approvals(), self._account
        )
        offer = approval.offer
        begun = self._records.begun(offer.id, run)
        fitted = self._holding(offer.alias)
        self._records.check_unchanged(offer, fitted.digest)
        part = own_part(predict, begun["start"], begun["outputs"], fitted, new)
        self.note(
            "prediction",
            approval=offer.id,
            coordinator=offer.coordinator,
            alias=predict.alias,
            question=question,
            rows=new.rows,
        )
        return kinds.PartialPrediction(part)

    def _finish(self, message: kinds.Finish) -> Message:
        self.note("finished", run="" if self._run is None else self._run.key)
        self._run = None
        return kinds.Acknowledged(self._records.log.head)
