"""The compound step: every node casts a mixture of its own atoms, and the best of them is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.mixtures import Mixtures
from atomcast.messages.atom import Atom
from atomcast.messages.mixture import Mixture
from atomcast.messages.proposals import Agreement, Request
from atomcast.steps.inner.combination import Asked, combine
from atomcast.steps.step import Step

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

#: Scores are off by about the square root of what a combination lacks, so that it must be more
#: exact than the gap: this share of the gap's square, both relative, within bounds.
EXACT, FINEST, COARSEST = 1e-3, 1e-13, 1e-4


class Compound(Step):
    """Combine mixtures of every node's own atoms, with coefficients of any sign.

    Where data and solution are dense, thousands of atoms do what one vector of each node can do. In
    a round, every node solves its own part of the problem, at the penalty that equals the
    multiplier of the ball, and sends where that leads to a coordinator. The best combination of
    what all nodes have sent lately is found there, under the exact norm of the weights that it
    stands for, and told to everybody. Scores then certify the gap, as ever.
    """

    name: ClassVar[str] = "compound"
    mixes: ClassVar[bool] = True
    one_atom: ClassVar[bool] = False
    patience: ClassVar[float] = 5

    def request(self, replica: Replica) -> Request:
        """The best score of every node, which the gap follows from."""
        return Request(count=1, known_too=False)

    def wanted(self, replica: Replica, agreement: Agreement) -> Agreement:
        """A mixture of every node, and no single atom."""
        return agreement.first(0)._replace(mixed=True)

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Nothing: everybody is told where the mixtures have led."""

    def combine(
        self,
        replica: Replica,
        nodes: int,
        best: float,
        mixtures: Sequence[Mixture],
        asked: Asked | None = None,
    ) -> Atom:
        """What the coordinator tells: the image of the best combination, and the shares in it."""
        active = replica.active
        assert isinstance(active, ExplicitActiveSet)
        if active.mixtures is None:
            active.mixtures = Mixtures(nodes)
        for mixture in mixtures:
            active.mixtures.add(mixture)
        unit = replica.unit
        gap = replica.domain.gap(active.inner(), best) / unit
        tolerance = unit * min(max(EXACT * gap**2, FINEST), COARSEST)
        found = combine(active.mixtures, active, replica.domain, tolerance, asked)
        active.mixtures.shares = found.shares
        active.point = found.point
        told = np.concatenate([found.image.ravel(), found.shares.ravel()])
        return Atom(0, len(told), told)
