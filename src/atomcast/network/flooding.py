"""The fully distributed setting of section 4.1: every proposal and every atom is flooded.

No node uses more than its own neighbourhood, and there is no tree to agree on. All N nodes flood
their proposals at the same time, so that records which cross a link in the same wave share a
message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from atomcast.messages.proposals import Agreement, Proposals, agree
from atomcast.network.flood import flood
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links, OneWave
from atomcast.network.topology import Topology
from atomcast.network.wave import Counts, Kind, numbers


class Flooding(Topology):
    """Nodes that tell everybody everything by flooding.

    Parameters
    ----------
    nodes : int
        Vertices 0 to nodes - 1 hold atoms; others, such as a coordinator, only pass on.
    links : Links
    signed : bool
        Whether each record carries the number of the node it comes from, which it takes to
        recognise one that comes a second time. (An atom carries its global id anyway.)
    labels : list, optional
        What the user calls the nodes.
    """

    def __init__(
        self, nodes: int, links: Links, signed: bool = True, labels: list[object] | None = None
    ) -> None:
        self.nodes = nodes
        self.links = links
        self.signed = signed
        self.labels = labels

    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Every node tells all others what it proposes; each then finds the winners by itself."""
        if self.nodes > 1:
            offered = proposals.per_node
            amounts: dict[Kind, Counts] = {
                "proposal": np.maximum(offered, 1),
                "index": offered,
                "partial sum": np.full(self.nodes, int(proposals.partial is not None)),
                "control": np.full(self.nodes, int(self.signed)),
            }
            self._tell_all({kind: each for kind, each in amounts.items() if each.any()}, ledger)
        return agree(proposals, count)

    def add_up(self, values: int, ledger: Ledger, kind: Kind = "prediction") -> None:
        """Every node tells all others its own, and each adds them up."""
        if self.nodes == 1:
            return
        amounts: dict[Kind, Counts] = {kind: np.full(self.nodes, values)}
        if self.signed:
            amounts["control"] = np.ones(self.nodes, dtype=np.int64)
        self._tell_all(amounts, ledger)

    def _tell_all(self, amounts: Mapping[Kind, Counts], ledger: Ledger) -> None:
        """Flood a record of every node, which has so many numbers of each kind."""
        sizes = np.stack(list(amounts.values()))

        def waves() -> Iterator[OneWave]:
            for used, sums in flood(self.links, np.arange(self.nodes), sizes):
                yield used, {kind: numbers(n) for kind, n in zip(amounts, sums, strict=True)}

        self.links.carry_all((*amounts, sizes.tobytes()), waves, ledger)
