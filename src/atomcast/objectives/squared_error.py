"""Least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from atomcast._checks import check_in_scale
from atomcast.objectives.objective import Curvature, Floats, Objective


class SquaredError(Objective):
    """Least squares, g(z) = ||y - z||^2, or min over b of ||y - z - b||^2 with an intercept.

    Minimising the intercept out means centring, and centring the residual is enough: the atoms
    themselves are never centred, so sparse data stays sparse.

    Parameters
    ----------
    y : array of shape (d,) or (d, T)
        The target, or several; images have the same shape.
    fit_intercept : bool, default=False
        Whether an unpenalised constant b is part of the model.
    """

    quadratic = True
    lower_bound = 0.0

    def __init__(self, y: ArrayLike, fit_intercept: bool = False) -> None:
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        if self.y.ndim not in (1, 2):
            raise ValueError(f"y must have one or two dimensions, got shape {self.y.shape}")
        check_in_scale("y", self.y)
        self.d = self.y.shape[0]
        self.fit_intercept = fit_intercept
        self._target = self._centred(self.y)
        # A constant target leaves only rounding noise behind, which must not be fitted.
        if np.linalg.norm(self._target) <= 4 * np.finfo(float).eps * np.linalg.norm(self.y):
            self._target = np.zeros_like(self._target)

    def _centred(self, z: Floats) -> Floats:
        return z - z.mean(axis=0) if self.fit_intercept else z

    def residual(self, z: Floats) -> Floats:
        """What the model does not explain, in the shape of y."""
        return self._target - self._centred(z)

    def value(self, z: Floats) -> float:
        """The sum of squared residuals."""
        residual = self.residual(z)
        return float(np.vdot(residual, residual))

    def gradient(self, z: Floats) -> Floats:
        """Minus twice the residual."""
        return -2.0 * self.residual(z)

    def line_search(self, z: Floats, direction: Floats, max_step: float) -> float:
        """The exact minimiser along the direction, in closed form."""
        direction = self._centred(direction)
        slope = float(np.vdot(direction, self.residual(z)))
        bend = float(np.vdot(direction, direction))
        if slope <= 0.0:
            return 0.0
        return max_step if slope >= max_step * bend else slope / bend

    def curvature(self, z: Floats) -> Curvature:
        """Twice the identity, minus twice the projection on constants if there is an intercept."""
        if not self.fit_intercept:
            return Curvature(2.0)
        return Curvature(2.0, np.full(self.d, np.sqrt(2.0 / self.d)))

    def intercept(self, z: Floats) -> float | Floats:
        """The constant that goes with the image z, one for each target."""
        mean: Floats = (self.y - z).mean(axis=0) * float(self.fit_intercept)
        return mean if self.y.ndim > 1 else float(mean)
