"""Rounds in which every node sends something of its own to a coordinator, which tells an image.

That is a mixture: the node solves its own part of the problem while all others stand still, and
sends where that leads, one vector, and the weights behind it. The coordinator finds the best
combination of what all nodes have sent lately, and tells everybody its image, and what the mixtures
count in it. Or it is the atoms that violate optimality most, each sent once, of which the
coordinator finds the best weights.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.node import Fleet
from atomcast.errors import FalseMessageError
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.mixtures import REMEMBERED, NodeBasis, node_basis
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.mixture import ALL_IDS, Mixture
from atomcast.network.ledger import Accountant
from atomcast.network.wire import codec as wire
from atomcast.steps.auto import Auto
from atomcast.steps.compound import Compound
from atomcast.steps.inner.combination import Asked
from atomcast.steps.inner.own_part import penalised_weights

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_NO_IDS: Ids = np.zeros(0, dtype=np.int64)
#: A node looks at its atoms whose merit is this share of the penalty: hardly one below will join.
NEAR = 0.5
#: The penalty is this share of the best merit at least; far from the optimum, the multiplier of
#: the domain says little.
LEAST = 0.3
#: The atoms that a node sends first violate at least this share of what the best of all does.
FIRST = 0.15


class Mixer:
    """One node of a fleet, as far as it mixes: what it has sent, and where that has led it.

    Parameters
    ----------
    fleet : Fleet
    node : int
    """

    def __init__(self, fleet: Fleet, node: int) -> None:
        self.fleet, self.node = fleet, node
        self._rows = np.flatnonzero(fleet.owner == node)
        self._sent: deque[Mixture] = deque(maxlen=REMEMBERED)
        self._known: set[int] = set()  # atoms that the coordinator has of this node

    def said(self, replica: Replica, best: float) -> list[Mixture]:
        """What the node has to send, given the best merit of all nodes."""
        step = replica.step
        return self.mixtures(replica, best) if step.mixes else self.atoms(replica, best)

    def atoms(self, replica: Replica, best: float) -> list[Mixture]:
        """The atoms of this node that violate most, of about as many values as an image has.

        A node that has sent some before may send twice as many: it still has violators, so that
        there will be many rounds. Where no merit was heard, it sends what carries weight.
        """
        active, scale = replica.active, replica.domain.scale
        assert isinstance(active, ExplicitActiveSet)
        if best > -np.inf:
            level = (replica.target - active.inner()) / scale
            if not self._known:  # far from the optimum, most violators are so for a round
                level += FIRST * max(best - level, 0.0)
            rows = self._rows[self.fleet.merit[self._rows] > level]
            rows = rows[np.argsort(-self.fleet.merit[rows], kind="stable")]
        else:
            rows = np.searchsorted(self.fleet.ids, active.atoms_of(self.weights(active)[0]))
        new, room = list[Mixture](), active.image.size * (2 if self._known else 1)
        for id in self.fleet.ids[rows].tolist():
            if id in self._known or id in active:
                continue
            atom = self.fleet.atom(id)
            room -= atom.count
            if room < 0 and new and best > -np.inf:
                break
            new.append(Mixture.whole(self.node, atom))
            self._known.add(id)
        return new

    def weights(self, active: ExplicitActiveSet) -> tuple[Ids, Floats]:
        """The weights of this node's own atoms, by their global ids."""
        point = active.point
        if point is None or point.shares is None:
            ids, weights = active.support()
            own = self.fleet.owners(active.atoms_of(ids)) == self.node
            return ids[own], weights[own]
        return self.weights_at(point.shares)

    def weights_at(self, shares: Floats) -> tuple[Ids, Floats]:
        """The same where the mixtures of all nodes have these shares, shape (N, REMEMBERED)."""
        shares = shares[self.node, REMEMBERED - len(self._sent) :]
        ids = np.unique(np.concatenate([_NO_IDS, *(mixture.ids for mixture in self._sent)]))
        weights = np.zeros(len(ids))
        for share, mixture in zip(shares, self._sent, strict=True):
            weights[np.searchsorted(ids, mixture.ids)] += share * mixture.weights.values
        return ids, weights

    def basis(self) -> NodeBasis:
        """What this node has sent lately, and the weights behind it."""
        return node_basis(self.node, self._sent, np.zeros(REMEMBERED))

    def mixtures(self, replica: Replica, best: float) -> list[Mixture]:
        """What the node has to send: a new mixture, and what it began with if nobody knows it.

        `best` is the best merit of all nodes; where none was heard, there is no new mixture.
        """
        active, domain = replica.active, replica.domain
        assert isinstance(active, ExplicitActiveSet)
        ids, weights = self.weights(active)
        penalty = max(-active.inner() / domain.scale, LEAST * best)
        near = self._near(NEAR * penalty) if best > -np.inf else _NO_IDS
        part = self._part(replica, np.union1d(near, active.atoms_of(ids)))
        if not len(part):
            return []
        new = []
        part.set_weights(_placed(part.weight_ids, ids, weights))
        if not self._sent and np.any(weights):
            new.append(self._mixture(part))
        if best > -np.inf:
            part.image = active.image
            part.set_weights(penalised_weights(part, domain, penalty))
            if np.any(part.weights):
                new.append(self._mixture(part))
        last = self._sent[-1] if self._sent else None
        new = [one for one in new if last is None or not one.same(last)]
        new = [one for one in new if len(one.ids) >= replica.step.min_mixture]
        self._sent.extend(new)
        return new if replica.step.reveals else [one.without_weights() for one in new]

    def _near(self, level: float) -> Ids:
        """The atoms whose merit was so large when they were scored last."""
        return self.fleet.ids[self._rows[self.fleet.merit[self._rows] >= level]]

    def _part(self, replica: Replica, ids: Ids) -> ExplicitActiveSet:
        """Some of the node's own atoms, with an image of their own."""
        part = replica.problem.make_active()
        assert isinstance(part, ExplicitActiveSet)
        part.append([self.fleet.atom(int(id)) for id in ids])
        return part

    def _mixture(self, part: ExplicitActiveSet) -> Mixture:
        """The combination of atoms that the weights of a part stand for."""
        ids, weights = part.support()
        order = np.argsort(ids)
        return Mixture.of(self.node, part.image, ids[order], weights[order])


def _placed(at: Ids, ids: Ids, weights: Floats) -> Floats:
    """Weights by their ids, among zeros."""
    order, placed = np.argsort(at), np.zeros(len(at))
    placed[order[np.searchsorted(at[order], ids)]] = weights
    return placed


def mixers_of(fleet: Fleet, replica: Replica) -> list[Mixer]:
    """The nodes of a fleet, as far as they mix for this run."""
    if fleet.mixers is None or fleet.mixers[0] is not replica.active:
        nodes = np.unique(fleet.owner).tolist()
        fleet.mixers = replica.active, [Mixer(fleet, node) for node in nodes]
    return fleet.mixers[1]


def own_mixtures(fleet: Fleet, replica: Replica, best: float) -> list[Mixture]:
    """What the nodes of a fleet have to send, given the best merit of all nodes."""
    return [one for mixer in mixers_of(fleet, replica) for one in mixer.said(replica, best)]


class Said(NamedTuple):
    """What the ledger needs to know of what a node has sent to the coordinator."""

    node: int
    atom: int
    name: str
    mixed: int
    values: int
    bytes: int

    @staticmethod
    def of(sent: Mixture) -> Said:
        """The same of a mixture of several weights, or of an atom."""
        size = wire.encoded_size(sent.image)
        if not sent.mixed:
            return Said(sent.node, sent.image.id, sent.image.name, 0, sent.count, size)
        size += wire.encoded_size(sent.weights) if len(sent.ids) else 0
        return Said(sent.node, -1, f"a mixture of {sent.mixed}", sent.mixed, sent.count, size)


def cast_point(
    accountant: Accountant[Any],
    replica: Replica,
    best: float,
    sent: Sequence[Mixture],
    asked: Asked | None = None,
) -> Atom:
    """What a coordinator that has heard all nodes tells everybody; entered in the ledger."""
    enter(accountant, replica, [Said.of(one) for one in sent])
    return combined(accountant, replica, best, sent, asked)


def combined(
    accountant: Accountant[Any],
    replica: Replica,
    best: float,
    sent: Sequence[Mixture],
    asked: Asked | None = None,
) -> Atom:
    """What a coordinator makes of what it has heard."""
    step = replica.step
    if isinstance(step, Compound):
        return step.combine(replica, accountant.nodes, best, sent, asked)
    assert isinstance(step, Auto)
    return step.combine(replica, accountant.nodes, best, sent)


def enter(accountant: Accountant[Any], replica: Replica, said: Sequence[Said]) -> None:
    """Enter what nodes have sent, and the answer to it, in the ledger."""
    each = REMEMBERED if replica.step.mixes else 0
    accountant.mix(said, (image_size(replica), each), replica.ledger_round)


def image_size(replica: Replica) -> int:
    """How many numbers an image has."""
    assert isinstance(replica.active, ExplicitActiveSet)
    return replica.active.image.size


def as_message(sent: Sequence[Mixture]) -> bytes:
    """Mixtures as they travel between processes: how many, whose, of which lengths, and all."""
    parts = [(wire.encode(one.image), wire.encode(one.weights)) for one in sent]
    head = [
        (one.node, one.image.d, one.mixed, len(image), len(weights))
        for one, (image, weights) in zip(sent, parts, strict=True)
    ]
    whole = (part for pair in parts for part in pair)
    numbers = np.array([(len(sent), 0, 0, 0, 0), *head], dtype=np.int64)
    return b"".join((numbers.tobytes(), *whole))


def from_message(message: bytes, replica: Replica) -> list[Mixture]:
    """The mixtures of such a message.

    Raises
    ------
    FalseMessageError
        If one of them cannot be of this problem.
    """
    active, at, sent = replica.active, 40, list[Mixture]()
    head = np.frombuffer(message, np.int64, 5 * int.from_bytes(message[:8], "little"), at)
    at += head.nbytes
    for node, d, mixed, image, weights in head.reshape(-1, 5).tolist():
        one = wire.decode(message[at : at + image], d)
        behind = wire.decode(message[at + image : at + image + weights], ALL_IDS)
        length = image_size(replica) if mixed else active.length_of(one.id, _rows_of(replica))
        if d != length or len(behind.values) != (mixed if replica.step.reveals else 0):
            raise FalseMessageError(f"node {node} sent {d} values, which is no image or atom here")
        sent.append(Mixture(node, one, behind, mixed))
        at += image + weights
    return sent


def _rows_of(replica: Replica) -> int:
    """How many rows the data has."""
    assert isinstance(replica.active, ExplicitActiveSet)
    return replica.active.objective.d
