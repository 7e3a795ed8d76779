"""The contract of a topology: carry proposals to an agreement, carry atoms to everybody.

A topology moves messages over its edges, wave by wave, and enters every hop in the ledger. It
knows nothing of the algorithm: proposals have a merit to be ranked by and numbers to be added up.
What a message costs is what it holds; no cost is computed by a formula.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from atomcast.messages.proposals import Agreement, Proposals
from atomcast.network.disclosure import BEFORE
from atomcast.network.flood import flood
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links, OneWave
from atomcast.network.wave import Counts, Kind, Payload, numbers


class Topology(ABC):
    """How N nodes are connected, and what it costs them to talk.

    A topology must be able to `agree` and to `add_up`, and enters every hop in the ledger. All else
    is optional: what stands here uses no more than neighbourhoods, by flooding.

    Attributes
    ----------
    nodes : int
        Vertices 0 to nodes - 1 hold atoms; others, such as a coordinator, only pass on.
    links : Links
        All edges that messages may use.
    labels : list or None
        What the user calls the nodes.
    """

    nodes: int
    links: Links
    labels: list[object] | None = None

    def prepare(self, ledger: Ledger) -> None:
        """Do what the nodes must do once before they can talk, such as agree on a tree."""
        ledger.edges, ledger.labels = self.links.edges, self.labels

    @abstractmethod
    def agree(self, proposals: Proposals, count: int, ledger: Ledger) -> Agreement:
        """Let every node learn the best `count` proposals and the sum of the partial sums."""

    @abstractmethod
    def add_up(self, values: int, ledger: Ledger, kind: Kind = "prediction") -> None:
        """Let every node learn the sums, over all nodes, of so many numbers of this kind."""

    def mix(
        self,
        amounts: Mapping[Kind, Counts],
        answer: tuple[int, int],
        ledger: Ledger,
        kind: Kind = "image",
        hearers: Counts | None = None,
    ) -> None:
        """Carry what nodes send to a coordinator, and what it tells them.

        Parameters
        ----------
        amounts : mapping from kinds to arrays of shape (2, nodes)
            The real numbers and bytes of what each node sends.
        answer : pair of int
            So many numbers are for all who hear it, and so many more for each of them.
        ledger : Ledger
        kind : Kind
            Of what it tells.
        hearers : array of shape (nodes,), optional
            1 for nodes that hear it, 0 for others; default: all do.

        Raises
        ------
        ValueError
            Where nobody can be the coordinator.
        """
        raise ValueError(
            f"mixtures need a coordinator, which {type(self).__name__} has not: use "
            'topology="star" or "tree"'
        )

    def broadcast(
        self, source: ArrayLike, values: ArrayLike, size: ArrayLike, ledger: Ledger
    ) -> None:
        """Carry atoms from their owners to all nodes, all of them at the same time.

        On a tree, flooding takes none of them over an edge twice.

        Parameters
        ----------
        source, values, size : int, or arrays of shape (k,)
            The owner of each atom, its real numbers, and its bytes.
        """
        owner, amount, length = (np.atleast_1d(np.asarray(x)) for x in (source, values, size))
        if not len(owner) or not len(self.links.source):
            return
        sent = np.stack((amount, length))

        def waves() -> Iterator[OneWave]:
            for used, carried in flood(self.links, owner, sent):
                yield used, {"atom": Payload(*carried)}

        self.links.carry_all((owner.tobytes(), sent.tobytes()), waves, ledger)

    @property
    def root(self) -> int:
        """The vertex that holds the target: a coordinator, if there is one, or else node 0."""
        return self.nodes if self.links.vertices > self.nodes else 0

    def from_root(self) -> Iterable[Counts]:
        """The links that something crosses from the root to all nodes, wave by wave."""
        return (used for used, _ in flood(self.links, np.array([self.root]), np.ones((1, 1), int)))

    def tell_target(self, values: int, ledger: Ledger) -> None:
        """Carry a target of so many numbers from the root, before the first round and its clock."""
        if not values or not len(self.links.source):
            return
        ledger.round = BEFORE
        for used in self.from_root():
            ledger.deliver(self.links.ends, used, {"target": numbers(values)})
        ledger.tell("target", int(self.links.names[self.root]), "the target", values)
        ledger.round = 0
