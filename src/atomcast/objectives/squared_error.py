"""Least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from atomcast._checks import check_in_scale
from atomcast.objectives.objective import Curvature, Floats, Objective
from atomcast.objectives.sample_weights import checked_sample_weight

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
#: A mean this many times as large as what is to be explained leaves too much of itself behind.
FAR = 10.0


class SquaredError(Objective):
    """Least squares, g(z) = sum_i c_i (y_i - z_i - b)^2, at the best intercept b, if there is one.

    Minimising the intercept out means centring, and centring the residual is enough: the atoms
    themselves are never centred, so sparse data stays sparse.

    Parameters
    ----------
    y : array of shape (d,) or (d, T)
        The target, or several; images have the same shape.
    fit_intercept : bool, default=False
        Whether an unpenalised constant b is part of the model.
    sample_weight : array of shape (d,), optional
        The weights c_i, not negative; all one by default.
    """

    quadratic = True
    lower_bound = 0.0

    def __init__(
        self, y: ArrayLike, fit_intercept: bool = False, sample_weight: ArrayLike | None = None
    ) -> None:
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        if self.y.ndim not in (1, 2):
            raise ValueError(f"y must have one or two dimensions, got shape {self.y.shape}")
        check_in_scale("y", self.y)
        self.d = self.y.shape[0]
        self.fit_intercept = fit_intercept
        self.sample_weight: Floats | None = None
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, self.d)
            self.sample_weight = weights
            self._shares = weights / weights.sum()
        self._far = 0.0
        self._target = self.centred(self.y)
        # A constant target leaves only rounding noise behind, which must not be fitted.
        if fit_intercept and _square(self._target) <= ROUNDING**2 * _square(self.y):
            self._target = np.zeros_like(self._target)
        self._far = FAR * float(np.abs(self._target).max(initial=0.0))
        self._last: tuple[Floats, Floats] | None = None

    @property
    def classes(self) -> int:
        """How many targets there are."""
        return self.y.shape[1] if self.y.ndim > 1 else 1

    @property
    def total(self) -> float:
        """What all examples count together."""
        return float(self.d if self.sample_weight is None else self.sample_weight.sum())

    def _mean(self, z: Floats) -> Floats:
        # A sum takes half the time of a mean, and is asked for in every round.
        mean: Floats = z.sum(axis=0) / len(z) if self.sample_weight is None else self._shares @ z
        return mean

    def centred(self, z: Floats) -> Floats:
        """What the intercept leaves of images or columns."""
        if not self.fit_intercept:
            return z
        mean = self._mean(z)
        rest: Floats = z - mean
        # Columns as far from zero as that mean would magnify what rounding has left of it.
        size = abs(mean)
        near = size <= self._far if z.ndim == 1 else float(size.max(initial=0.0)) <= self._far
        return rest if near else rest - self._mean(rest)

    def _weighted(self, z: Floats) -> Floats:
        return z if self.sample_weight is None else (self.sample_weight * z.T).T

    def residual(self, z: Floats) -> Floats:
        """What the model does not explain, in the shape of y; computed once for an image."""
        last = self._last
        if z.flags.writeable or z.ndim > 1:  # somebody may change it, or it may be large
            return self._target - self.centred(z)
        if last is None or last[0] is not z:
            last = self._last = z, self._target - self.centred(z)
        return last[1]

    def value(self, z: Floats) -> float:
        """The weighted sum of squared residuals."""
        residual = self.residual(z)
        return float(np.vdot(residual, self._weighted(residual)))

    def gradient(self, z: Floats) -> Floats:
        """Minus twice the residual, weighted."""
        return -2.0 * self._weighted(self.residual(z))

    def line_search(self, z: Floats, direction: Floats, max_step: float) -> float:
        """The exact minimiser along the direction, in closed form."""
        direction = self.centred(direction)
        weighted = self._weighted(direction)
        slope = float(np.vdot(weighted, self.residual(z)))
        bend = float(np.vdot(weighted, direction))
        if slope <= 0.0:
            return 0.0
        return max_step if slope >= max_step * bend else slope / bend

    def curvature(self, z: Floats) -> Curvature:
        """Twice diag(c), minus 2 c c' / sum(c) if there is an intercept."""
        weights = self.sample_weight
        diagonal = 2.0 if weights is None else 2.0 * weights
        if not self.fit_intercept:
            return Curvature(diagonal)
        if weights is None:
            return Curvature(diagonal, np.full(self.d, np.sqrt(2.0 / self.d)))
        return Curvature(diagonal, weights * np.sqrt(2.0 / weights.sum()))

    def intercept(self, z: Floats) -> float | Floats:
        """The constant that goes with the image z, one for each target."""
        if not self.fit_intercept and self.y.ndim == 1:
            return 0.0
        mean = self._mean(self.y - z) * float(self.fit_intercept)
        return mean if self.y.ndim > 1 else float(mean)


def _square(z: Floats) -> float:
    return float(np.vdot(z, z))
