"""Features with several weights each: one broadcast of a feature serves all targets or classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import ExplicitActiveSet

Floats = NDArray[np.float64]


class ManyImages(ExplicitActiveSet):
    """Known features, T weights each, and an objective of the image Z = A W of shape (d, T).

    The weights stand feature by feature, and within a feature target by target.
    """

    def __init__(self, objective: Any, targets: int) -> None:
        super().__init__(objective)
        self.targets = targets
        self._at(np.zeros((objective.d, targets)))

    def _width(self, d: int) -> int:
        return self.targets

    def total(self, n: int) -> int:
        """A weight for each feature and target."""
        return n * self.targets

    @property
    def weight_ids(self) -> NDArray[np.int64]:
        """Numbers feature * T + target."""
        ids = np.array(self.ids, dtype=np.int64)
        return ids * self.targets + np.arange(len(ids)) % self.targets

    def atoms_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The feature that each of some weights belongs to."""
        return ids // self.targets

    def _combined(self, weights: Floats) -> Floats:
        if self.columns is None:
            return np.zeros((self.objective.d, self.targets))
        by_target = np.ascontiguousarray(weights.reshape(-1, self.targets).T)
        return np.ascontiguousarray(self.columns.combine(by_target).T)

    def inner(self) -> float:
        """The product of image and gradient."""
        return float(np.vdot(self.image, self.gradient))

    def scores(self) -> Floats:
        """The gradient with respect to each weight."""
        if self.columns is None:
            return np.zeros(0)
        return self.columns.products(self.gradient).ravel()
