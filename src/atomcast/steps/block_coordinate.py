"""Block-coordinate steps on every node, and a common corrective step between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from atomcast.messages.proposals import Agreement, Request
from atomcast.steps.corrective import Corrective

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

#: After so many rounds of block steps, the gap is certified, whatever it seems to be.
UNCERTIFIED = 3


class BlockCoordinate(Corrective):
    """Every node goes once over its own blocks; the sum of where they get to is a point as well.

    The dual of the structured SVM lives on a product of simplices, one for each example
    (Lacoste-Julien et al., ICML 2013). In a round, every node takes a step for each of its own
    examples, one after the other, as if the other nodes stood still. That they have moved, too, is
    made good by a corrective step over all sums so far, so that the objective never rises. What the
    nodes saw on their way is no certificate: once it seems small enough, and every so often, comes
    a round in which all examples are looked at from the same point.
    """

    name: ClassVar[str] = "block-coordinate"
    patience: ClassVar[float] = 4 * UNCERTIFIED
    needs_blocks: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._since = 0
        self._promised = np.inf

    def request(self, replica: Replica) -> Request:
        """Block steps, or a certificate where it is due."""
        due = self._since >= UNCERTIFIED or self._promised <= replica.target
        return Request(blocks=not due)

    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Minimise over the hull of all sums."""
        self._promised = replica.domain.gap(replica.active.inner(), agreement.best)
        self._since = 0 if agreement.complete else self._since + 1
        super().advance(replica, agreement)
