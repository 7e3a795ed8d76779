"""The objective of boosting: a soft version of the worst margin."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from atomcast._checks import check_in_scale, check_positive
from atomcast.objectives.objective import Curvature, Floats, Objective
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.objectives.search import exponentials


class LogMeanExp(Objective):
    """g(z) = log(mean_i exp(-y_i z_i / T)), problem (5) of the paper with A = diag(y) H.

    Atoms are the predictions h_j(x_i) themselves, and the labels, which everybody knows, belong
    to the objective: a classifier travels as a bit for each example.

    Parameters
    ----------
    y : array of shape (d,)
        The labels, -1 and 1.
    temperature : float
        T > 0; the smaller, the more the examples with the worst margins count.
    sample_weight : array of shape (d,), optional
        Makes the mean a weighted one; not negative.
    """

    def __init__(
        self, y: ArrayLike, temperature: float, sample_weight: ArrayLike | None = None
    ) -> None:
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        if self.y.ndim != 1 or not np.all(np.abs(self.y) == 1.0):
            raise ValueError("y must be one-dimensional, of labels -1 and 1")
        self.d = len(self.y)
        self.temperature = check_positive("temperature", temperature, "T of the objective")
        check_in_scale("temperature", self.temperature)
        weights = checked_sample_weight(sample_weight, self.d)
        with np.errstate(divide="ignore"):  # an example of weight zero never counts
            self._log_share = np.log(weights / weights.sum())
        # Margins lie between -1 and 1, so that values are of this order, and may cross zero.
        self.negligible = 1e-6 / self.temperature

    def _exponents(self, z: Floats) -> Floats:
        exponents: Floats = self._log_share - self.y * z / self.temperature
        return exponents

    def weights(self, z: Floats) -> Floats:
        """The weight w_i of each example in the next round, shape (d,): positive, sum one."""
        return exponentials(self._exponents(z))[0]

    def value(self, z: Floats) -> float:
        """The logarithm of the mean of the exponential losses."""
        return float(exponentials(self._exponents(z))[1])

    def gradient(self, z: Floats) -> Floats:
        """Minus label times weight, divided by the temperature."""
        return -self.y * self.weights(z) / self.temperature

    def curvature(self, z: Floats) -> Curvature:
        """(diag(w) - (y w)(y w)') / T^2."""
        weights = self.weights(z)
        return Curvature(weights / self.temperature**2, self.y * weights / self.temperature)
