"""The step that chooses where atoms go: to everybody, or to a coordinator that tells the image."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from atomcast.domains.balls import L1Ball
from atomcast.domains.group_ball import GroupBall
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.mixtures import MixedPoint
from atomcast.messages.atom import Atom
from atomcast.messages.mixture import Mixture
from atomcast.messages.proposals import Agreement, Request
from atomcast.steps.corrective import Corrective
from atomcast.steps.inner.choice import inner_solver

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

#: A coordinator needs about so many images, whatever the number of atoms,
IMAGES = 4
#: and the later atoms lower the objective so much less that it takes so many times as many.
FALLING = 14
#: What is left to gain after the first atoms is about this share of the gap.
OF_GAP = 1 / 3


class Auto(Corrective):
    """As the corrective step while atoms are cheap to broadcast; once an image is cheaper, that.

    An atom that everybody is to know crosses the edge of every node. An atom that only a
    coordinator knows crosses one, but then all nodes must be told the image of the weights, of d
    values, in every round. So atoms go to everybody as long as those of a round have fewer values
    than an image, and from then on to the coordinator alone: each node sends its violators, of up
    to d values a round. The weights are the best ones over all known atoms in either case.
    """

    name: ClassVar[str] = "auto"
    #: The objective before the first atom.
    _first: float | None = None

    def request(self, replica: Replica) -> Request:
        """New violators; or the best scores alone, where nodes send what violates by themselves."""
        if replica.active.point is not None:
            return Request(count=1, known_too=False)
        return super().request(replica)

    def wanted(self, replica: Replica, agreement: Agreement) -> Agreement:
        """The winners, for everybody; or what each node has to send to the coordinator."""
        agreement, active = super().wanted(replica, agreement), replica.active
        if not self.coordinated or not isinstance(replica.domain, L1Ball | GroupBall):
            return agreement
        assert isinstance(active, ExplicitActiveSet)
        rows, known = active.objective.d, active.columns
        # Winners may have more values than most.
        usual = self.usual_size if known is None else known.stored / known.count
        values = usual / active.image.size
        columns = sum(active.length_of(id, rows) / rows for id in agreement.id.tolist())
        more = self._more(replica, agreement)
        if active.point is None and max(columns, more / IMAGES) * values <= 1.0:
            return agreement
        return agreement.first(0)._replace(mixed=True)

    def _more(self, replica: Replica, agreement: Agreement) -> float:
        """About how many atoms are still needed, by how much the first ones lowered the objective.

        Only then does the gap tell how much there is to gain; later, it is far too large for that.
        """
        active, before = replica.active, self._first
        value, known = active.value(), active.atoms
        if before is None:
            self._first = value
        if before is None or replica.round != 1 or not known or value >= before:
            return 0.0
        gap = active.gap(replica.domain, agreement)
        left = min(OF_GAP * gap, value - active.lower_bound)
        return FALLING * left * known / (before - value)

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """The best weights over all known atoms; those that are told need no finding."""
        if not agreement.mixed:
            super().advance(replica, agreement)

    def combine(self, replica: Replica, nodes: int, best: float, atoms: Sequence[Mixture]) -> Atom:
        """What the coordinator tells: the image of the best weights over all atoms it knows."""
        active = replica.active
        assert isinstance(active, ExplicitActiveSet)
        if active.pool is None:
            active.pool = copy.deepcopy(active)
            active.pool.point, self.inner = None, None
        pool, domain = active.pool, replica.domain
        pool.append([one.image for one in atoms])
        if self.inner is None:
            self.inner = inner_solver(replica, {})
        if len(pool):
            gap = domain.gap(active.inner(), best) if best > -np.inf else 0.0
            self.inner.minimise(pool, max(0.1 * replica.target, 0.05 * gap))
        active.point = MixedPoint(*pool.support())
        told = pool.image.ravel()
        return Atom(0, len(told), told)
