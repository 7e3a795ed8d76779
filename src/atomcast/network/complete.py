"""A complete graph: every node sends to every other directly, and nobody forwards."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from atomcast.messages.proposals import Agreement, Proposals, agree
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links, OneWave
from atomcast.network.topology import Topology
from atomcast.network.wave import Counts, Kind, Payload, numbers, proposal_parts


class Complete(Topology):
    """N nodes, each connected to all others; what one says takes N - 1 messages and one hop."""

    def __init__(self, nodes: int, latency: float = 0.0, bandwidth: float = np.inf) -> None:
        self.nodes = nodes
        self.links = Links(nodes, np.stack(np.triu_indices(nodes, 1), axis=1), latency, bandwidth)
        self._every = np.arange(len(self.links.source))

    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Every node tells all others what it proposes; each then finds the winners by itself."""
        offered, partial = proposals.per_node, proposals.partial is not None

        def waves() -> Iterator[OneWave]:
            yield self._every, proposal_parts(offered[self.links.source], partial)

        self.links.carry_all((offered.tobytes(), partial), waves, ledger)
        return agree(proposals, count)

    def broadcast(
        self, source: ArrayLike, values: ArrayLike, size: ArrayLike, ledger: Ledger
    ) -> None:
        """From each owner to all others, its atoms in one message."""
        sent = np.stack([np.atleast_1d(np.asarray(x)) for x in (source, values, size)])

        def waves() -> Iterator[OneWave]:
            owner, which = np.unique(sent[0], return_inverse=True)
            into, _ = self.links.into(owner)
            sums = np.zeros((2, len(owner)), dtype=np.int64)
            for row, amount in zip(sums, sent[1:], strict=True):
                np.add.at(row, which, amount)
            carried = np.repeat(sums, self.nodes - 1, axis=1)
            yield self.links.reverse[into], {"atom": Payload(*carried)}

        self.links.carry_all(sent.tobytes(), waves, ledger)

    def from_root(self) -> list[Counts]:
        """From node 0 to all others."""
        into, _ = self.links.into(np.array([0]))
        return [self.links.reverse[into]]

    def add_up(self, values: int, ledger: Ledger, kind: Kind = "prediction") -> None:
        """Every node tells all others its own, and each adds them up."""
        self.links.carry_all(
            (kind, values), lambda: [(self._every, {kind: numbers(values)})], ledger
        )
