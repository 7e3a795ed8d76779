"""One approved problem on one node: its own features, those of others it was handed, the iterate.

Weights come from the coordinator: on different machines and linear algebra libraries, replicas that
compute them on their own would not stay equal. What a node is told must hold up to the tolerances
here.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from atomcast.cluster.node import Fleet
from atomcast.cluster.validation import checked_shard
from atomcast.errors import FalseMessageError
from atomcast.federated.consent import Approval, RefusedError
from atomcast.federated.folds import ALL, of_rows, summary, training_rows
from atomcast.federated.holding import Holding, plain_name
from atomcast.federated.identity import Peer, atom_statement
from atomcast.federated.kinds import Begin, Floats, Hand, Ids, ScoreRequest
from atomcast.federated.posed import (
    check_score,
    make_problem,
    promises,
    stands_for_itself,
    widest,
)
from atomcast.federated.schema import encode
from atomcast.known.active_set import ActiveSet
from atomcast.loop.replica import Replica, Tolerance
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Request
from atomcast.network.wire import codec as wire
from atomcast.steps.corrective import Corrective

#: Weights may be outside of the ball by this share of its radius.
OUTSIDE = 1e-9
#: The objective may rise by this share of itself, and of its value at zero.
RISE, RISE_OF_ZERO = 1e-6, 1e-9


class OwnProposals(NamedTuple):
    """What one node would propose."""

    best: float
    partial: float | None
    ids: Ids
    scores: Floats


class NodeRun:
    """A problem that was approved, as one node sees it.

    Parameters
    ----------
    begin : Begin
    approval : Approval
    holding : Holding
    members : list of Peer
        In the order of the shards.
    own : int
        Which of them this node is.
    previous : Run or None
        What was handed over for it is still known if it was about the same target and features.
    """

    def __init__(
        self,
        begin: Begin,
        approval: Approval,
        holding: Holding,
        members: list[Peer],
        own: int,
        previous: NodeRun | None,
    ) -> None:
        self.begin, self.approval, self.members, self.own = begin, approval, members, own
        self._check_starts(holding)
        offer = approval.offer
        #: What signatures are about: they are of no use in another fit.
        self.context = context_of(begin, offer.coordinator, offer.target)
        self._problem_digest = hashlib.sha256(encode(begin)).hexdigest()
        #: What this node calls the problem, and the fit: with other data they are others.
        self.key = _digest(self._problem_digest, holding.digest)
        self.own_context = _digest(self.context, holding.digest)
        same = previous is not None and previous.context == self.context
        self._atoms: dict[int, Atom] = previous._atoms if same and previous else {}
        try:
            self._problem = make_problem(begin)
            self._training = training_rows(begin.folds, begin.fold)
        except ValueError as error:
            raise RefusedError(str(error)) from None
        self.start = int(begin.starts[own])
        self._holding, self.shard = holding, holding.shard(self.start, "the data")
        #: Features travel whole, whatever the rows that are used of them.
        self._whole = self._problem.make_atoms(self.shard)
        atoms, self._used = self._whole, self.shard
        if self._training is not None:
            if same and previous and _same_rows(previous.begin, begin):
                self._used = previous._used
            else:
                self._used = replace(self.shard, matrix=self.shard.matrix[self._training])
            atoms = self._problem.make_atoms(self._used)
        checked_shard(self._problem, self._used)
        owner = np.full(holding.features, own, dtype=np.int64)
        self._fleet = Fleet(atoms, self.shard.ids, owner, len(members))
        self._replica = self._fresh()
        self._at_zero = abs(self._replica.objective)
        #: The digest of the question that the iterate is about.
        self.asked = ""

    def _check_starts(self, holding: Holding) -> None:
        starts = self.begin.starts
        sound = len(starts) == len(self.members) + 1 and starts[0] == 0
        if not sound or np.any(np.diff(starts) < 0) or starts[-1] > 2**40:
            raise RefusedError("the ids of features are not numbered through all members")
        if starts[self.own + 1] - starts[self.own] != holding.features:
            raise RefusedError("the number of features here is another one: describe them again")

    def _fresh(self) -> Replica:
        return Replica(self._problem, Corrective(), Tolerance(1e-4))

    @property
    def rows(self) -> int:
        """How many values a feature has."""
        return len(self.begin.target)

    @property
    def objective(self) -> float:
        """At the weights of the last question."""
        return self._replica.objective

    @property
    def outputs(self) -> int:
        """How many numbers a prediction of one row has."""
        return self._replica.active.total(1)

    @property
    def widest(self) -> int:
        """How many features leave together at most: those of a group of this node."""
        return widest(self._own_groups())

    def _own_groups(self) -> Ids:
        return self.begin.groups[self.start : self.start + self._holding.features]

    def names(self, id: int) -> list[str]:
        """What reports call a feature of this node, or the features of a group."""
        own = self._own_groups()
        places = np.flatnonzero(own == own[id - self.start]) if len(own) else [id - self.start]
        return [self._holding.name(int(place)) for place in places]

    # -- questions ------------------------------------------------------------------------

    def take(self, ask: ScoreRequest, sent: set[int]) -> None:
        """Go to the weights of a question.

        Features of this node count as known only if they have left: otherwise the scores would
        tell inner products of features that nobody else has.
        """
        ids = ask.ids.tolist()
        sound = len(set(ids)) == len(ids) and np.all(np.isfinite(ask.weights)) and ask.count >= 1
        if not sound or np.any((ask.ids < 0) | (ask.ids >= self.begin.starts[-1])):
            raise RefusedError("there must be a finite weight for each feature, and a count")
        mine = [id for id in ids if self._fleet.holds(id)]
        if not sent.issuperset(mine):
            raise RefusedError("the weights are of features that have not left this node")
        if not all(id in self._atoms or id in sent for id in ids):
            raise RefusedError("the weights are of features that were not handed over")
        if list(self._replica.active.position) != ids[: self._replica.active.atoms]:
            self._replica = self._fresh()
        active = self._replica.active
        new = [self._atoms.get(id) or self.atom(id) for id in ids[active.atoms :]]
        active.append([of_rows(atom, self._training) for atom in new])
        self._check_weights(ask.weights)
        active.set_weights(ask.weights)
        self.asked = hashlib.sha256(self._problem_digest.encode() + encode(ask)).hexdigest()

    def _check_weights(self, weights: Floats) -> None:
        """Raise RefusedError unless these are weights of all that is known, in the domain."""
        active, domain = self._replica.active, self._problem.domain
        if len(weights) != len(active):
            raise RefusedError("there must be a finite weight for each feature, and a count")
        away = np.abs(domain.project(active.ids, weights) - weights).max(initial=0.0)
        if away > OUTSIDE * domain.scale:
            raise RefusedError(f"the weights are {away:g} outside of the ball")

    @property
    def weights(self) -> str:
        """The digest of the weights of the last question."""
        return weights_digest(*self._replica.active.support())

    def check_objective(self, before: float | None) -> None:
        """Raise RefusedError if the objective has risen since the last question."""
        before = self._at_zero if before is None else before  # which lies in every ball
        if self.objective > before + RISE * abs(before) + RISE_OF_ZERO * self._at_zero:
            raise RefusedError(
                f"the weights raise the objective from {before:g} to {self.objective:g}: that is "
                "no step of a fit"
            )

    def solvable(self, asked: int, known: set[int]) -> bool:
        """Whether scores at so many weights could tell an unsent feature row by row.

        They are equations in its values, and those of several folds combine to equations in the
        values at one fold alone. Residuals of least squares are in the span of the target, the
        intercept and the features that are known, at each fold, so that there are no more.
        """
        begin, ids = self.begin, np.array(sorted(known), dtype=np.int64)
        if begin.objective == "squared error":
            groups = begin.groups
            wide = np.bincount(groups)[groups[ids]].sum() if len(groups) else len(ids)
            asked = min(asked, int(wide) + 2)
        return asked >= (self.rows if begin.fold == ALL else np.bincount(begin.folds).min())

    def proposals(self, ask: ScoreRequest, most: int) -> OwnProposals:
        """What this node proposes: `most` features at most."""
        request = Request(min(ask.count, most), ask.threshold, ask.known_too, ask.partial_sums)
        found = self._fleet.propose(self._replica, request)
        partial = None if found.partial is None else float(found.partial[self.own])
        return OwnProposals(float(found.best[self.own]), partial, found.id, found.score)

    # -- features -------------------------------------------------------------------------

    def atom(self, id: int) -> Atom:
        """A feature of this node, or a group, whole."""
        return self._whole.atom(id - self.start, id)

    def outgoing(self, id: int) -> tuple[float, bytes]:
        """The score of a feature at the last question, and the feature as it travels."""
        atom, active = self.atom(id), self._replica.active
        scores, _ = promises(active, of_rows(atom, self._training), active.iterate())
        return float(scores[np.abs(scores).argmax()]), wire.encode(atom)

    def statement(self, question: str, score: float, content: bytes) -> bytes:
        """What the owner of a feature signs."""
        return atom_statement(self.context, question, score, content)

    def checked(self, hand: Hand) -> Atom:
        """A feature of another member, if it is what its owner has signed."""
        if not 0 <= hand.owner < len(self.members) or hand.owner == self.own:
            raise FalseMessageError("a feature must be of another member")
        owner = self.members[hand.owner]
        statement = self.statement(hand.question, hand.score, hand.atom)
        owner.check(statement, hand.signature, "a feature")
        first, last = self.begin.starts[hand.owner : hand.owner + 2].tolist()
        active = self._replica.active
        atom = checked_atom(hand, owner.name, range(first, last), active, self.rows)
        if hand.question == self.asked:
            used = of_rows(atom, self._training)
            check_score(active, used, active.iterate(), hand.score, owner.name)
        return atom

    def accept(self, atom: Atom) -> None:
        """Know a feature of another member."""
        self._atoms[atom.id] = atom


def _same_rows(one: Begin, other: Begin) -> bool:
    return one.fold == other.fold and np.array_equal(one.folds, other.folds)


def _digest(*parts: str) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def context_of(begin: Begin, coordinator: str, target: str) -> str:
    """The SHA-256 of what stays the same along a path: parties, target, features and groups."""
    groups = summary(begin.groups, "groups")
    about = (coordinator, begin.alias, begin.members, begin.starts.tolist(), target, groups)
    return hashlib.sha256(repr(about).encode()).hexdigest()


def checked_atom(hand: Hand, owner: str, ids: range, active: ActiveSet, rows: int) -> Atom:
    """A feature as received, if its id, length, values and name are what they must be."""
    if hand.id not in ids or not stands_for_itself(active, hand.id):
        raise FalseMessageError(f"{owner} sent feature {hand.id}, which is not its own")
    length = active.length_of(hand.id, rows)
    try:
        atom = wire.decode(hand.atom, length)
    except wire.WireError as error:
        raise FalseMessageError(f"{owner} sent a feature that cannot be read: {error}") from None
    if atom.id != hand.id:
        raise FalseMessageError(f"{owner} sent feature {atom.id} as feature {hand.id}")
    if atom.extras.size or not np.all(np.isfinite(atom.values)):
        raise FalseMessageError(f"{owner} sent a feature {atom.id} with NaN, infinity or extras")
    if not plain_name(atom.name, length // rows):
        raise FalseMessageError(f"{owner} sent a feature {atom.id} with a name that cannot be")
    return atom


def weights_digest(ids: Ids, weights: Floats) -> str:
    """The SHA-256 of the weights that are not zero, in the order of ids."""
    used = np.flatnonzero(weights)
    used = used[np.argsort(ids[used])]
    content = np.asarray(ids[used], "<i8").tobytes() + np.asarray(weights[used], "<f8").tobytes()
    return hashlib.sha256(content).hexdigest()
