"""One approved problem on one node: its own features, those of others it was handed, the iterate.

Weights come from the coordinator: on different machines and linear algebra libraries, replicas that
compute them on their own would not stay equal. What a node is told must hold up to the tolerances
here.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from atomcast.cluster.node import Fleet
from atomcast.cluster.validation import checked_shard
from atomcast.errors import FalseMessageError
from atomcast.federated.consent import Approval, RefusedError
from atomcast.federated.holding import Holding, plain_name
from atomcast.federated.identity import Peer, atom_statement
from atomcast.federated.kinds import Begin, Floats, Hand, Ids, ScoreRequest
from atomcast.federated.posed import make_problem
from atomcast.federated.schema import encode
from atomcast.loop.replica import Replica, Tolerance
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Request
from atomcast.network.wire import codec as wire
from atomcast.steps.corrective import Corrective

#: Weights may be outside of the ball by this share of its radius.
OUTSIDE = 1e-9
#: The objective may rise by this share of itself, and of its value at zero.
RISE, RISE_OF_ZERO = 1e-6, 1e-9
#: A score may be off by this share of the norms of the feature and the gradient.
SCORE = 1e-9


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
        self._problem = make_problem(
            begin.objective, begin.target, begin.fit_intercept, begin.radius
        )
        self.start = int(begin.starts[own])
        self.shard = checked_shard(self._problem, holding.shard(self.start, "the data"))
        self._holding = holding
        owner = np.full(holding.features, own, dtype=np.int64)
        atoms = self._problem.make_atoms(self.shard)
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

    def name(self, id: int) -> str:
        """What reports call a feature of this node."""
        return self._holding.name(id - self.start)

    # -- questions ------------------------------------------------------------------------

    def take(self, ask: ScoreRequest, sent: set[int]) -> None:
        """Go to the weights of a question.

        Features of this node count as known only if they have left: otherwise the scores would
        tell inner products of features that nobody else has.
        """
        ids = ask.ids.tolist()
        self._check_weights(ask)
        mine = [id for id in ids if self._fleet.holds(id)]
        if not sent.issuperset(mine):
            raise RefusedError("the weights are of features that have not left this node")
        if not all(id in self._atoms or id in sent for id in ids):
            raise RefusedError("the weights are of features that were not handed over")
        known = len(self._replica.active)
        if self._replica.active.ids != ids[:known]:
            self._replica, known = self._fresh(), 0
        new = [self._atoms.get(id) or self._fleet.atom(id) for id in ids[known:]]
        self._replica.active.append(new)
        self._replica.active.set_weights(ask.weights)
        self.asked = hashlib.sha256(self._problem_digest.encode() + encode(ask)).hexdigest()

    def _check_weights(self, ask: ScoreRequest) -> None:
        ids, weights = ask.ids, ask.weights
        sound = len(ids) == len(weights) == len(set(ids.tolist())) and np.all(np.isfinite(weights))
        if not sound or np.any((ids < 0) | (ids >= self.begin.starts[-1])) or ask.count < 1:
            raise RefusedError("there must be a finite weight for each feature, and a count")
        size = float(np.abs(weights).sum())
        if size > self.begin.radius * (1 + OUTSIDE):
            raise RefusedError(f"the weights have the norm {size:g}, outside of the ball")

    def check_objective(self, before: float | None) -> None:
        """Raise RefusedError if the objective has risen since the last question."""
        if before is None:
            return
        if self.objective > before + RISE * abs(before) + RISE_OF_ZERO * self._at_zero:
            raise RefusedError(
                f"the weights raise the objective from {before:g} to {self.objective:g}: that is "
                "no step of a fit"
            )

    def proposals(self, ask: ScoreRequest, most: int) -> OwnProposals:
        """What this node proposes: `most` features at most."""
        request = Request(min(ask.count, most), ask.threshold, ask.known_too, ask.partial_sums)
        found = self._fleet.propose(self._replica, request)
        partial = None if found.partial is None else float(found.partial[self.own])
        return OwnProposals(float(found.best[self.own]), partial, found.id, found.score)

    # -- features -------------------------------------------------------------------------

    def outgoing(self, id: int) -> tuple[float, bytes]:
        """The score of a feature at the last question, and the feature as it travels."""
        atom = self._fleet.atom(id)
        return atom.dot(self._replica.active.iterate()), wire.encode(atom)

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
        gradient = self._replica.active.iterate() if hand.question == self.asked else None
        first, last = self.begin.starts[hand.owner : hand.owner + 2].tolist()
        return checked_atom(hand, owner.name, range(first, last), self.rows, gradient)

    def accept(self, atom: Atom) -> None:
        """Know a feature of another member."""
        self._atoms[atom.id] = atom


def _digest(*parts: str) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def context_of(begin: Begin, coordinator: str, target: str) -> str:
    """The SHA-256 of what stays the same along a path: parties, target and features."""
    about = (coordinator, begin.alias, begin.members, begin.starts.tolist(), target)
    return hashlib.sha256(repr(about).encode()).hexdigest()


def checked_atom(sealed: Hand, owner: str, ids: range, rows: int, gradient: Floats | None) -> Atom:
    """A feature as received, if its id, length, values and score are what they must be."""
    try:
        atom = wire.decode(sealed.atom, rows)
    except wire.WireError as error:
        raise FalseMessageError(f"{owner} sent a feature that cannot be read: {error}") from None
    if atom.id not in ids:
        raise FalseMessageError(f"{owner} sent feature {atom.id}, which is not its own")
    if atom.extras.size or not np.all(np.isfinite(atom.values)):
        raise FalseMessageError(f"{owner} sent a feature {atom.id} with NaN, infinity or extras")
    if not plain_name(atom.name):
        raise FalseMessageError(f"{owner} sent a feature {atom.id} with a name that cannot be")
    if gradient is not None:
        values = atom.values.astype(np.float64)
        allowed = SCORE * float(np.linalg.norm(values)) * float(np.linalg.norm(gradient))
        if not abs(atom.dot(gradient) - sealed.score) <= allowed:
            raise FalseMessageError(
                f"{owner} said that feature {atom.id} has the score {sealed.score:.17g}, but what "
                f"it sent has {atom.dot(gradient):.17g}"
            )
    return atom


def weights_digest(ids: Ids, weights: Floats) -> str:
    """The SHA-256 of the weights that are not zero, in the order of ids."""
    used = np.flatnonzero(weights)
    used = used[np.argsort(ids[used])]
    content = np.asarray(ids[used], "<i8").tobytes() + np.asarray(weights[used], "<f8").tobytes()
    return hashlib.sha256(content).hexdigest()
