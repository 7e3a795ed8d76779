"""A mixture: what a node sends in the place of atoms, a combination of several of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import Atom, same

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

#: There are fewer weights than this.
ALL_IDS = 1 << 48


@dataclass(frozen=True, eq=False)
class Mixture:
    """A combination of the atoms of one node, on its way to the coordinator.

    Parameters
    ----------
    node : int
        Whose atoms are mixed in it.
    image : Atom
        The combination, of the length of an image.
    weights : Atom
        The weights of what is mixed, by their global ids.
    """

    node: int
    image: Atom
    weights: Atom

    @staticmethod
    def of(node: int, image: Floats, ids: Ids, weights: Floats) -> Mixture:
        """The mixture with this image and these weights, whose ids increase."""
        flat = np.ravel(image)
        places = np.flatnonzero(flat)
        sent = Atom(node, len(flat), flat[places], places)
        return Mixture(node, sent, Atom(node, ALL_IDS, weights, ids))

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
