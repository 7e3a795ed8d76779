"""What everybody knows of a structured problem: the sums of corners that were agreed on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.gram import Gram
from atomcast.objectives import Objective


class CornerSums(ExplicitActiveSet):
    """Sums over all nodes, each an atom that has no owner; they are numbered as they come.

    A sum of corners that were found on the way, while nodes took steps of their own, says in its
    extras what they promised and how many of them had to be decoded.
    """

    inner_kind = "sums"
    lasting = False

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self._gram = Gram()

    def hessian(self, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """The part of A'HA that belongs to some of the sums, shape (m, m)."""
        self._gram.extend(self)
        return self._gram.matrix[np.ix_(positions, positions)]

    def total(self, n: int) -> int:
        """As many weights as there are sums."""
        return len(self)

    def length_of(self, id: int, d: int) -> int:
        """As long as the image, whatever the length of an example."""
        return self.objective.d

    def extras_of(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Nothing: extras are about the way to the solution."""
        return np.zeros((len(ids), 0))

    def content(self, ids: NDArray[np.int64]) -> Any:
        """How often all examples were decoded, and how many of them one by one."""
        said = [extras for extras in self.extras.values() if len(extras)]
        return len(self) - len(said), int(sum(extras[1] for extras in said))
