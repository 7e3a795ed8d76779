"""Rounds in which every node sends a mixture of its own atoms, and a coordinator combines them.

A node solves its own part of the problem while all others stand still, and sends where that leads:
one vector, and the weights behind it. The coordinator finds the best combination of what all nodes
have sent lately, and tells everybody its image, and what the mixtures count in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.node import Fleet
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.mixtures import REMEMBERED
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.mixture import ALL_IDS, Mixture
from atomcast.network.ledger import Accountant
from atomcast.network.wire import codec as wire
from atomcast.steps.compound import Compound
from atomcast.steps.inner.penalised import penalised_weights

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_NO_IDS: Ids = np.zeros(0, dtype=np.int64)
#: A node looks at its atoms whose merit is this share of the penalty: hardly one below will join.
NEAR = 0.5
#: The penalty is this share of the best merit at least; far from the optimum, the multiplier of
#: the domain says little.
LEAST = 0.3


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

    def weights(self, active: ExplicitActiveSet) -> tuple[Ids, Floats]:
        """The weights of this node's own atoms, by their global ids."""
        point = active.point
        if point is None or point.shares is None:
            ids, weights = active.support()
            own = self.fleet.owners(active.atoms_of(ids)) == self.node
            return ids[own], weights[own]
        shares = point.shares[self.node, REMEMBERED - len(self._sent) :]
        ids = np.unique(np.concatenate([_NO_IDS, *(mixture.ids for mixture in self._sent)]))
        weights = np.zeros(len(ids))
        for share, mixture in zip(shares, self._sent, strict=True):
            weights[np.searchsorted(ids, mixture.ids)] += share * mixture.weights.values
        return ids, weights

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
        new = [mixture for mixture in new if not self._sent or not mixture.same(self._sent[-1])]
        self._sent.extend(new)
        return new

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


def own_mixtures(fleet: Fleet, replica: Replica, best: float) -> list[Mixture]:
    """What the nodes of a fleet have to send, given the best merit of all nodes."""
    if fleet.mixers is None or fleet.mixers[0] is not replica.active:
        nodes = np.unique(fleet.owner).tolist()
        fleet.mixers = replica.active, [Mixer(fleet, node) for node in nodes]
    return [mixture for mixer in fleet.mixers[1] for mixture in mixer.mixtures(replica, best)]


def cast_point(
    accountant: Accountant[Any], replica: Replica, best: float, mixtures: Sequence[Mixture]
) -> Atom:
    """What a coordinator that has heard all mixtures tells everybody; entered in the ledger."""
    assert isinstance(replica.step, Compound)
    point = replica.step.combine(replica, accountant.nodes, best, mixtures)
    enter(accountant, replica, account_of(mixtures))
    return point


def account_of(mixtures: Sequence[Mixture]) -> list[tuple[int, int, int, int]]:
    """Of each mixture its node, how many weights are mixed in it, its values and bytes."""
    return [(m.node, len(m.ids), m.count, sum(map(len, to_bytes(m)))) for m in mixtures]


def enter(
    accountant: Accountant[Any], replica: Replica, said: Sequence[tuple[int, int, int, int]]
) -> None:
    """Enter mixtures, and the answer to them, in the ledger."""
    active = replica.active
    assert isinstance(active, ExplicitActiveSet)
    accountant.mix(said, (active.image.size, REMEMBERED), replica.ledger_round)


def to_bytes(mixture: Mixture) -> tuple[bytes, bytes]:
    """A mixture as it travels."""
    return wire.encode(mixture.image), wire.encode(mixture.weights)


def from_bytes(node: int, image: bytes, weights: bytes, size: int) -> Mixture:
    """The mixture that a node has sent, whose image has so many entries."""
    return Mixture(node, wire.decode(image, size), wire.decode(weights, ALL_IDS))
