"""The fully distributed setting of section 4.1: every proposal and every atom is flooded.

No node uses more than its own neighbourhood, and there is no tree to agree on. All N nodes flood
their proposals at the same time, so that records which cross a link in the same wave share a
message.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from atomcast.messages.proposals import Agreement, Proposals, agree
from atomcast.network.flood import flood
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links
from atomcast.network.topology import Topology, announce, enter_target, spread_atoms
from atomcast.network.wave import Counts, Kind, Payload, numbers


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

    def prepare(self, ledger: Ledger) -> None:
        """Nothing to do: a node needs to know its neighbours only."""
        announce(self.links, ledger, self.labels)

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
            carried = {kind: amount for kind, amount in amounts.items() if amount.any()}
            records = np.arange(self.nodes)
            for used, sums in flood(self.links, records, np.stack(list(carried.values()))):
                parts = {kind: numbers(n) for kind, n in zip(carried, sums, strict=True)}
                self.links.carry(used, parts, ledger)
        return agree(proposals, count)

    def broadcast(
        self, source: ArrayLike, values: ArrayLike, size: ArrayLike, ledger: Ledger
    ) -> None:
        """From each owner to its neighbours, and from everybody who is told to its own."""
        spread_atoms(self.links, source, values, size, ledger)

    def tell_target(self, values: int, ledger: Ledger) -> None:
        """From a coordinator, if there is one, or else from node 0, by flooding."""
        root = self.nodes if self.links.vertices > self.nodes else 0
        waves = (used for used, _ in flood(self.links, np.array([root]), np.ones((1, 1), int)))
        enter_target(self.links, root, values, waves, ledger)

    def add_up(self, values: int, ledger: Ledger, kind: Kind = "prediction") -> None:
        """Every node tells all others its own, and each adds them up."""
        if self.nodes == 1:
            return
        amounts = np.outer([values, int(self.signed)], np.ones(self.nodes, int))
        for used, (carried, signs) in flood(self.links, np.arange(self.nodes), amounts):
            parts: dict[Kind, Payload] = {kind: numbers(carried)}
            if self.signed:
                parts["control"] = numbers(signs)
            self.links.carry(used, parts, ledger)
