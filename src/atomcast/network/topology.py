"""The contract of a topology: carry proposals to an agreement, carry atoms to everybody.

A topology moves messages over its edges, wave by wave, and enters every hop in the ledger. It
knows nothing of the algorithm: proposals have a merit to be ranked by and numbers to be added up.
What a message costs is what it holds; no cost is computed by a formula.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from atomcast.messages.proposals import Agreement, Proposals
from atomcast.network.disclosure import BEFORE
from atomcast.network.flood import flood
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links
from atomcast.network.wave import Counts, Kind, Payload, numbers


class Topology(ABC):
    """How N nodes are connected, and what it costs them to talk.

    A topology must be able to `agree`, to `broadcast`, to `tell_target` and to `add_up`, and enters
    every hop in the ledger; `prepare` is optional.
    """

    nodes: int
    links: Links

    def prepare(self, ledger: Ledger) -> None:
        """Do what the nodes must do once before they can talk, such as agree on a tree."""
        announce(self.links, ledger)

    @abstractmethod
    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Let every node learn the best `count` proposals and the sum of the partial sums."""

    @abstractmethod
    def broadcast(
        self, source: ArrayLike, values: ArrayLike, size: ArrayLike, ledger: Ledger
    ) -> None:
        """Carry atoms from their owners to all nodes, all of them at the same time.

        Parameters
        ----------
        source, values, size : int, or arrays of shape (k,)
            The owner of each atom, its real numbers, and its bytes.
        """

    @abstractmethod
    def tell_target(self, values: int, ledger: Ledger) -> None:
        """Carry a target of so many numbers from the root, which holds it, to all nodes."""

    @abstractmethod
    def add_up(self, values: int, ledger: Ledger, kind: Kind = "prediction") -> None:
        """Let every node learn the sums, over all nodes, of so many numbers of this kind."""


def spread_atoms(
    links: Links, source: ArrayLike, values: ArrayLike, size: ArrayLike, ledger: Ledger
) -> None:
    """Broadcast atoms by flooding; on a tree no atom crosses an edge twice."""
    owner, amount, length = (np.atleast_1d(np.asarray(x)) for x in (source, values, size))
    if not len(owner) or not len(links.source):
        return
    for used, (carried, bytes_carried) in flood(links, owner, np.stack((amount, length))):
        links.carry(used, {"atom": Payload(carried, bytes_carried)}, ledger)


def enter_target(
    links: Links, holder: int, values: int, waves: Iterable[Counts], ledger: Ledger
) -> None:
    """Enter that all nodes were told the target, before the first round and its clock.

    Parameters
    ----------
    links : Links
    holder : int
        The vertex that knows it to begin with.
    values : int
        How many numbers it has.
    waves : iterable of arrays
        The links that it crosses, one wave after the other.
    ledger : Ledger
    """
    if not values or not len(links.source):
        return
    ledger.round = BEFORE
    for used in waves:
        ledger.deliver(links.ends, used, {"target": numbers(values)})
    ledger.tell("target", int(links.names[holder]), "the target", values)
    ledger.round = 0


def announce(links: Links, ledger: Ledger, labels: list[object] | None = None) -> None:
    """Tell the ledger what the network looks like."""
    ledger.edges = links.edges
    ledger.labels = labels
