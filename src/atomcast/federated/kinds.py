"""What a node and its coordinator may say to each other, a class each; there is nothing else.

No field names a file, a class or a function.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class Message:
    """What is said; its fields are its schema."""


# -- who is there -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Hello(Message):
    """Who is there: a certificate (PEM), the key that signs atoms, and proof that they go together.

    The certificate may be followed by those of authorities that lead to one everybody believes.

    `endorsement` is the signature, by the key of the certificate, of the key that signs atoms.
    """

    certificate: bytes
    key: bytes
    endorsement: bytes
    nonce: bytes


@dataclass(frozen=True)
class Proof(Message):
    """The signature of both nonces: who says hello has the key that signs atoms, now."""

    signature: bytes


@dataclass(frozen=True)
class Introduce(Message):
    """Another member, as it has introduced itself to the coordinator."""

    name: str
    certificate: bytes
    key: bytes
    endorsement: bytes


# -- what is asked of a node ------------------------------------------------------------------


@dataclass(frozen=True)
class Describe(Message):
    """How much is there under this alias? Answered with a `Description`."""

    alias: str


@dataclass(frozen=True)
class ConsentOffer(Message):
    """What a human at the node is asked to approve; nothing else will be answered.

    Parameters
    ----------
    coordinator, alias, purpose : str
        Who asks, for which data, and why.
    members : str
        All parties and the fingerprints of their keys, in the order of the shards.
    target, order : str
        SHA-256 of the target, and the keyed hash of the order of rows.
    objective, domain : str
        What is fitted ("squared error", "logistic", "multinomial"), and within what ("l1 ball",
        "solid simplex", "group ball").
    groups, folds : str
        How many groups of features, and folds of rows for cross-validation, and their SHA-256; "":
        none.
    fit_intercept : bool
    rows : int
    radius_from, radius_to : float
        The radius of the ball.
    runs, rounds, proposals, atoms, atoms_total : int
        How many problems, questions for each of them, scores in an answer, features that leave for
        one problem, and features that leave in all.
    predict : str
        The alias of new data for which the sum of this party's part may be asked; "": none.
    predictions : int
        How many times.
    expires : int
        Seconds since 1970.
    """

    coordinator: str
    alias: str
    purpose: str
    members: str
    target: str
    order: str
    objective: str
    domain: str
    groups: str
    folds: str
    fit_intercept: bool
    rows: int
    radius_from: float
    radius_to: float
    runs: int
    rounds: int
    proposals: int
    atoms: int
    atoms_total: int
    predict: str
    predictions: int
    expires: int

    @cached_property
    def id(self) -> str:
        """What approvals are called by."""
        content = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Begin(Message):
    """Make ready for a problem: the target, the radius, and which ids are whose.

    `starts` has the first id of each member, and then how many there are in all; `groups` the group
    of each feature, and `folds` the fold of each row, of which `fold` is held out (-1: none is).
    """

    alias: str
    members: str
    objective: str
    domain: str
    fit_intercept: bool
    radius: float
    target: Floats
    starts: Ids
    groups: Ids
    group_weights: Floats
    folds: Ids
    fold: int


@dataclass(frozen=True)
class ScoreRequest(Message):
    """Score your features against the residual of these weights, and propose.

    A feature has a weight for each class, and a group, by its first feature, for each of its own.
    """

    ids: Ids
    weights: Floats
    count: int
    threshold: float
    known_too: bool
    partial_sums: bool


@dataclass(frozen=True)
class Hand(Message):
    """A feature, or a group, of another member, with its signature."""

    owner: int
    id: int
    question: str
    score: float
    atom: bytes
    signature: bytes


@dataclass(frozen=True)
class AtomRequest(Message):
    """Send a feature that you have proposed."""

    id: int


@dataclass(frozen=True)
class Fingerprint(Message):
    """A keyed hash of the features, to tell whether a run can be resumed."""


@dataclass(frozen=True)
class Predict(Message):
    """Your part of the linear score for the rows of new data."""

    alias: str
    ids: Ids
    weights: Floats


@dataclass(frozen=True)
class Finish(Message):
    """The fit is over; answered with the head of the audit log."""


# -- what it answers --------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal(Message):
    """No, and why."""

    reason: str


@dataclass(frozen=True)
class Acknowledged(Message):
    """It is done; a short note where one is due, such as the head of the audit log."""

    note: str


@dataclass(frozen=True)
class Description(Message):
    """How many rows and usable features there are, and the keyed hash of the order of rows."""

    rows: int
    features: int
    order: str


@dataclass(frozen=True)
class Ruling(Message):
    """Whether an offer is approved; if not, a human has yet to look at it."""

    approved: bool
    id: str


@dataclass(frozen=True)
class Scores(Message):
    """The largest merit of all features, the partial sum S_i, and the proposals."""

    question: str
    best: float
    partial: float
    exhausted: bool
    digits: int
    ids: Ids
    scores: Floats


@dataclass(frozen=True)
class Sealed(Message):
    """A feature as it travels, signed by its owner."""

    question: str
    score: float
    atom: bytes
    signature: bytes


@dataclass(frozen=True)
class PartialPrediction(Message):
    """One party's part of a prediction, a number for each row."""

    values: Floats


#: Kinds by their number on the wire: append only.
KINDS: tuple[type[Message], ...] = (
    *(Hello, Proof, Introduce, Describe, ConsentOffer, Begin, ScoreRequest, AtomRequest, Hand),
    *(Fingerprint, Predict, Finish, Refusal, Acknowledged, Description, Ruling, Scores, Sealed),
    PartialPrediction,
)
