"""Logistic loss for two classes, with the intercept minimised out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from atomcast.objectives.objective import Curvature, Floats, Objective, is_same, kept
from atomcast.objectives.sample_weights import checked_sample_weight

#: An intercept as large as that is found to few digits of what it changes.
FAR = 100.0


class Logistic(Objective):
    """Logistic loss, g(z) = sum_i c_i log(1 + exp(-y_i (z_i + b))), at the best intercept b.

    The intercept that goes with an image is found by Newton's method, and the gradient at it is
    the gradient of the minimum (envelope theorem); atoms are never centred.

    Parameters
    ----------
    y : array of shape (d,)
        The labels, -1 and 1.
    fit_intercept : bool, default=False
        Whether an unpenalised constant b is part of the model; both labels must then occur.
    sample_weight : array of shape (d,), optional
        The weights c_i, not negative; all one by default.
    """

    lower_bound = 0.0

    def __init__(
        self, y: ArrayLike, fit_intercept: bool = False, sample_weight: ArrayLike | None = None
    ) -> None:
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        if self.y.ndim != 1 or not np.all(np.abs(self.y) == 1.0):
            raise ValueError("y must be one-dimensional, of labels -1 and 1")
        self.d = len(self.y)
        self.fit_intercept = fit_intercept
        self.sample_weight = checked_sample_weight(sample_weight, self.d)
        total = float(self.sample_weight.sum())
        positive = float(self.sample_weight[self.y > 0].sum()) if fit_intercept else 0.5 * total
        negative = float(self.sample_weight[self.y < 0].sum()) if fit_intercept else 0.5 * total
        if fit_intercept and not (positive > 0.0 and negative > 0.0):
            raise ValueError(
                "y has examples of only one class that count: with an intercept, both must occur"
            )
        self._total = positive + negative
        #: An intercept that was found from another guess changes the sum of the gradient by less.
        self.vagueness = 1e-13 * self._total if fit_intercept else 0.0
        self._solved: tuple[Floats, float] | None = None
        self._last: tuple[Floats, Floats, Floats] | None = None
        #: Where the loss of each example leads to, and how much it pulls there.
        self._against = -self.y
        self._pull = self.sample_weight * self._against
        # Where z is zero, the best intercept is known; elsewhere it is found from the last one.
        self._start = float(np.log(positive / negative)) if fit_intercept else 0.0
        # Classes that can be told apart perfectly leave a loss that only measures the radius.
        at_zero = positive * np.log1p(negative / positive) + negative * np.log1p(
            positive / negative
        )
        self.negligible = 1e-6 * float(at_zero)

    def intercept(self, z: Floats) -> float:
        """The constant that goes with the image z."""
        if not self.fit_intercept:
            return 0.0
        if self._solved is None or not is_same(self._solved[0], z):
            start = self._start if self._solved is None else self._solved[1]
            self._solved = kept(z), self._best_intercept(z, start)
        return self._solved[1]

    def _best_intercept(self, z: Floats, b: float) -> float:
        """Newton's method for the one variable b, kept inside a bracket of the solution."""
        low, high = self._start - float(z.max()), self._start - float(z.min())
        low, high = low - 1e-12 * (1 + abs(low)), high + 1e-12 * (1 + abs(high))
        b = min(max(b, low), high)
        for _ in range(100):
            slope, bend = self._slope_of_intercept(z, b)
            if abs(slope) <= 1e-15 * self._total or high - low <= 1e-15 * (1 + abs(b)):
                break
            low, high = (b, high) if slope < 0.0 else (low, b)
            newton = b - slope / bend if bend > 0.0 else np.nan
            # Along a step, the bend changes by no larger a share than the step is long, about.
            if abs(newton - b) * abs(slope) <= 1e-15 * self._total:
                return min(max(newton, low), high)
            b = newton if low < newton < high else 0.5 * (low + high)
        return b

    def _slope_of_intercept(self, z: Floats, b: float) -> tuple[float, float]:
        missed = expit(self._against * (z + b))
        return float(missed @ self._pull), float(self.sample_weight @ (missed * (1.0 - missed)))

    def _exponentials(self, z: Floats) -> tuple[Floats, Floats]:
        """The margins m at the best intercept and exp(-|m|), computed once for an image."""
        if self._last is None or not is_same(self._last[0], z):
            margin = self.y * (z + self.intercept(z) if self.fit_intercept else z)
            self._last = kept(z), margin, np.exp(-np.abs(margin))
        return self._last[1:]

    def value(self, z: Floats) -> float:
        """The weighted sum of the losses."""
        margin, small = self._exponentials(z)
        return float(self.sample_weight @ (np.log1p(small) - np.minimum(margin, 0.0)))

    def gradient(self, z: Floats) -> Floats:
        """Minus the label times the probability of the other label, weighted."""
        margin, small = self._exponentials(z)
        missed = np.where(margin > 0.0, small, 1.0) / (1.0 + small)
        gradient: Floats = self._pull * missed
        if self.fit_intercept and abs(self.intercept(z)) > FAR:
            # Columns as far from zero would magnify what is left of the sum: it goes where another
            # intercept would take it from.
            bends = self._bends(small)
            gradient -= float(gradient.sum()) / max(float(bends.sum()), 1e-300) * bends
        return gradient

    def _bends(self, small: Floats) -> Floats:
        bends: Floats = self.sample_weight * small / (1.0 + small) ** 2
        return bends

    def curvature(self, z: Floats) -> Curvature:
        """diag(h), h = c p (1 - p), minus h h' / sum(h) if there is an intercept."""
        diagonal = self._bends(self._exponentials(z)[1])
        total = float(diagonal.sum()) if self.fit_intercept else 0.0
        if total <= 0.0:
            return Curvature(diagonal)
        return Curvature(diagonal, diagonal / np.sqrt(total))

    def steepness(self, z: Floats) -> float:
        """One over the sum of c g^2 / h, which is that of the exponentials of minus the margins."""
        with np.errstate(over="ignore"):
            total = float(self.sample_weight @ np.exp(-self._exponentials(z)[0]))
        return 1.0 / total if total > 0.0 else 0.0
