"""The contract of a topology: carry proposals to an agreement, carry an atom to everybody.

A topology moves messages over its edges and enters every hop in the ledger. It knows nothing of
the algorithm: proposals have a merit to be ranked by and numbers to be added up.
"""

from __future__ import annotations

from typing import Protocol

from atomcast.network.ledger import Ledger
from atomcast.protocol import Agreement, Proposals

#: On the wire a number takes eight bytes: a float64 or an int64.
NUMBER = 8


class Topology(Protocol):
    """How N nodes are connected, and what it costs them to talk."""

    nodes: int

    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Let every node learn the best `count` proposals and the sum of the partial sums."""
        ...

    def broadcast(self, source: int, values: int, size: int, ledger: Ledger) -> None:
        """Carry an atom of `values` real numbers in `size` bytes from its owner to all nodes."""
        ...
