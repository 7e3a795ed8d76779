"""Objectives that are sums over the examples, with the intercept minimised out."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from atomcast._checks import check_in_scale
from atomcast.objectives.objective import Curvature, Floats, Objective, is_same, kept
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.objectives.search import least

#: Where no intercept of this size is too large, there is no best one.
LARGEST = 1e300


class Pointwise(Protocol):
    """The loss of one example, as functions of arrays; see `PointwiseLoss`."""

    @property
    def fit_intercept(self) -> bool:
        """Whether there is an intercept."""
        ...

    @property
    def lower_bound(self) -> float:
        """What the sum never falls below."""
        ...

    def losses(self, y: Floats, z: Floats) -> Floats:
        """The loss of each example."""
        ...

    def slopes(self, y: Floats, z: Floats) -> Floats:
        """Its derivative."""
        ...

    def bends(self, y: Floats, z: Floats) -> Floats:
        """Its second derivative."""
        ...


class PointwiseObjective(Objective):
    """g(z) = sum_i c_i loss(y_i, z_i + b), at the best intercept b; weights c_i are one if None.

    The gradient at that intercept is the gradient of the minimum (envelope theorem). It is always
    looked for from zero, so that an image has the same intercept in every process.
    """

    def __init__(
        self, loss: Pointwise, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> None:
        self.loss = loss
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        if self.y.ndim != 1:
            raise ValueError(f"y must have one dimension, got shape {self.y.shape}")
        check_in_scale("y", self.y)
        self.d = len(self.y)
        self.sample_weight = checked_sample_weight(sample_weight, self.d)
        self.lower_bound = loss.lower_bound
        self._solved: tuple[Floats, float] | None = None

    def intercept(self, z: Floats) -> float:
        """The constant that goes with the image z."""
        if not self.loss.fit_intercept:
            return 0.0
        if self._solved is None or not is_same(self._solved[0], z):
            self._solved = kept(z), self._best_intercept(z)
        return self._solved[1]

    def _best_intercept(self, z: Floats) -> float:
        """Newton's method for the one variable b, within twice the first b that is too large."""
        sign = -float(np.sign(self.sample_weight @ self.loss.slopes(self.y, z)))

        def slope_and_bend(size: float) -> tuple[float, float]:
            shifted = z + sign * size
            slope = sign * float(self.sample_weight @ self.loss.slopes(self.y, shifted))
            return slope, float(self.sample_weight @ self.loss.bends(self.y, shifted))

        reach = 1.0
        while sign and slope_and_bend(reach)[0] < 0.0:
            reach *= 2.0
            if reach > LARGEST:
                raise ValueError(
                    f"{type(self.loss).__name__} has no best intercept for this target: the loss "
                    "falls for ever; use fit_intercept=False"
                )
        return sign * least(slope_and_bend, reach)

    def value(self, z: Floats) -> float:
        """The weighted sum of the losses."""
        return float(self.sample_weight @ self.loss.losses(self.y, z + self.intercept(z)))

    def gradient(self, z: Floats) -> Floats:
        """The slope of each loss, weighted."""
        return self.sample_weight * self.loss.slopes(self.y, z + self.intercept(z))

    def curvature(self, z: Floats) -> Curvature:
        """diag(h), h the weighted bends, minus h h' / sum(h) if there is an intercept."""
        bends = self.sample_weight * self.loss.bends(self.y, z + self.intercept(z))
        total = float(bends.sum())
        if not self.loss.fit_intercept or total <= 0.0:
            return Curvature(bends)
        return Curvature(bends, bends / np.sqrt(total))
