"""A star: N nodes around a coordinator, which ranks the proposals for everybody.

This is the improved protocol of section 4.1: proposals go to the coordinator only, which sends
the outcome back. In a round of the classic step, N nodes send a score, an index and a partial sum
up (3N values), the coordinator sends the winner's score, index and the sum down (3N), and the
atom goes up one edge and down N - 1.
"""

from __future__ import annotations

import numpy as np

from atomcast.network.ledger import COORDINATOR, Counts, Kind, Ledger
from atomcast.network.topology import NUMBER
from atomcast.protocol import Agreement, Proposals, agree


class Star:
    """N nodes, each connected to a coordinator; a single node is alone and sends nothing."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._all = np.arange(nodes)
        self._coordinator = np.full(nodes, COORDINATOR)

    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Proposals go up, the agreement comes down."""
        agreement = agree(proposals, count)
        if self.nodes == 1:
            return agreement
        offered = proposals.per_node
        # A node with nothing to propose still says how good its best atom is: the gap needs it.
        self._up("proposal", np.maximum(offered, 1), ledger)
        self._up("index", offered, ledger)
        chosen = len(agreement.id)
        self._down("proposal", max(chosen, 1), ledger)
        self._down("index", chosen, ledger)
        if proposals.partial is not None:
            self._up("partial sum", np.ones(self.nodes, dtype=np.int64), ledger)
            self._down("partial sum", 1, ledger)
        return agreement

    def broadcast(self, source: int, values: int, size: int, ledger: Ledger) -> None:
        """From the owner to the coordinator, and from there to all others."""
        if self.nodes == 1:
            return
        amount, length = np.array([values]), np.array([size])
        hub = self._coordinator
        ledger.record("atom", self._all[source : source + 1], hub[:1], amount, length)
        others = np.delete(self._all, source)
        ledger.record("atom", hub[1:], others, amount, length)

    def _up(self, kind: Kind, values: Counts, ledger: Ledger) -> None:
        sends = values > 0
        ledger.record(
            kind,
            self._all[sends],
            self._coordinator[sends],
            values[sends],
            NUMBER * values[sends],
        )

    def _down(self, kind: Kind, values: int, ledger: Ledger) -> None:
        if values:
            amount = np.array([values])
            ledger.record(kind, self._coordinator, self._all, amount, NUMBER * amount)
