"""Mixtures whose weights stay with their owners, who take part where these are combined.

The coordinator asks a few questions in every step of its small problem (`steps.inner.cone`), and
the owners answer with a few numbers. Both are on the ledger, as "combination".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mixing import Mixer, image_size
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.mixtures import REMEMBERED, MixedPoint
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.network.ledger import Accountant
from atomcast.steps.inner.combination import norms_of
from atomcast.steps.inner.cone import Cones, Owners, Question

Floats = NDArray[np.float64]


def cones_of(mixers: Sequence[Mixer], replica: Replica, width: int) -> Cones:
    """What nodes know of the weights in what they have sent, ready for questions."""
    active = replica.active
    assert isinstance(active, ExplicitActiveSet)
    parts = [mixer.basis() for mixer in mixers]
    return Cones(norms_of(parts, active, replica.domain, width))


class Counted:
    """Owners whose questions and answers are entered in the ledger.

    Parameters
    ----------
    owners : Owners
    accountant : Accountant
    nodes : sequence of int
        Who they are.
    """

    def __init__(self, owners: Owners, accountant: Accountant[Any], nodes: Sequence[int]) -> None:
        self._owners, self._accountant, self._nodes = owners, accountant, nodes

    def __call__(self, question: Question, common: Floats, each: Floats) -> Floats:
        """What the nodes answer, a row each."""
        answers = self._owners(question, common, each)
        self._accountant.combine(self._nodes, (len(common), each.shape[1]), answers.shape[1])
        return answers


def keep_own(mixers: Sequence[Mixer], replica: Replica, told: Atom) -> None:
    """Let nodes know the weights that the shares in a told point give to their own atoms."""
    shares = told.dense()[image_size(replica) :].reshape(-1, REMEMBERED)
    replica.active.point = MixedPoint.of([mixer.weights_at(shares) for mixer in mixers])
