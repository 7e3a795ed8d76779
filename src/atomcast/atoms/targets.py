"""Examples with a target each, as atoms of a regression in a kernel space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.kernel import UNKNOWN, KernelAtoms
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.points import Points
from atomcast.known.kernels.storage import Storage
from atomcast.known.kernels.target_set import TargetActiveSet

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]


class TargetAtoms(KernelAtoms):
    """The examples of one node; the score of one is its share of the gap.

    Parameters
    ----------
    points, ids, storage, weights : see `KernelAtoms`
    targets : array of shape (n,)
    """

    def __init__(
        self,
        points: Points,
        targets: Floats,
        ids: NDArray[np.int64],
        storage: Storage,
        weights: Floats | None = None,
    ) -> None:
        super().__init__(points, np.zeros(len(targets), dtype=np.uint8), ids, storage, weights)
        self.told = targets

    def scores(self, replica: Replica) -> Floats:
        """How much each example contributes to the gap, shape (n,)."""
        active = replica.active
        assert isinstance(active, TargetActiveSet)
        self.follow(active)
        used = bool(np.any(active.weights))
        products = 0.5 * super().scores(replica) if used else np.zeros(self.n)
        costs = 1.0 / active.code.ridge(self.labels, self.weights)
        scores = active.shares(0.0, products, self.told, costs)
        if used:  # the active set has these exactly, also where a point has weight
            known = np.flatnonzero(self._position < UNKNOWN)
            scores[known] = active.scores()[self._position[known]]
        return scores

    def _correct(self, active: KernelActiveSet) -> None:
        """Nothing: what a node keeps of a regression is always in double precision."""
