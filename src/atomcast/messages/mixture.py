"""What a node sends to a coordinator: a mixture of several of its own atoms, or one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import Atom, same

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

#: There are fewer weights than this.
ALL_IDS = 1 << 48


@dataclass(frozen=True, eq=False)
class Mixture:
    """A combination of the atoms of one node, or one of them, on its way to the coordinator.

    Parameters
    ----------
    node : int
        Whose atoms are mixed in it.
    image : Atom
        The combination, of the length of an image; or the atom.
    weights : Atom
        The weights of what is mixed, by their global ids; none for an atom, nor where they stay
        with the owner.
    mixed : int
        How many weights there are; 0 for an atom.
    """

    node: int
    image: Atom
    weights: Atom
    mixed: int

    @staticmethod
    def of(node: int, image: Floats, ids: Ids, weights: Floats) -> Mixture:
        """The mixture with this image and these weights, whose ids increase."""
        flat = np.ravel(image)
        places = np.flatnonzero(flat)
        sent = Atom(node, len(flat), flat[places], places)
        return Mixture(node, sent, Atom(node, ALL_IDS, weights, ids), len(ids))

    @staticmethod
    def whole(node: int, atom: Atom) -> Mixture:
        """An atom as it is."""
        return Mixture(node, atom, _no_weights(node), 0)

    def without_weights(self) -> Mixture:
        """The same as it is known to others if the weights stay with the owner."""
        return replace(self, weights=_no_weights(self.node))

    @property
    def ids(self) -> Ids:
        """The global ids of the weights, increasing."""
        return np.asarray(self.weights.indices, dtype=np.int64)

    def same(self, other: Mixture) -> bool:
        """Whether another mixture has the same weights."""
        return same(self.weights, other.weights)

    @property
    def count(self) -> int:
        """How many real values it takes to send it."""
        return self.image.count + self.weights.count


def _no_weights(node: int) -> Atom:
    return Atom(node, ALL_IDS, np.zeros(0), np.zeros(0, dtype=np.int64))
