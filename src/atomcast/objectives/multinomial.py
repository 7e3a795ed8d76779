"""Multinomial logistic loss for three or more classes, with the intercepts minimised out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dposv

from atomcast.objectives.objective import Floats, Objective, is_same, kept
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.objectives.search import exponentials


@dataclass(frozen=True)
class SoftmaxCurvature:
    """The Hessian of the multinomial loss: for each example c (diag(p) - p p').

    Parameters
    ----------
    probabilities : array of shape (d, T)
    sample_weight : array of shape (d,)
    intercept_inverse : array of shape (T, T) or None
        Inverse of the Hessian in the intercepts, where these are minimised out.
    """

    probabilities: Floats
    sample_weight: Floats
    intercept_inverse: Floats | None

    @property
    def complements(self) -> Floats:
        """1 - p without the cancellation, shape (d, T): exact also where p is all but one."""
        p = self.probabilities
        return (_others_of(p.shape[1]) @ p.T).T  # sums of the others, class by class as p is

    def bend(self, direction: Floats) -> float:
        """The second derivative along a direction of shape (d, T)."""
        p = self.probabilities
        centred = direction - np.sum(p * direction, axis=1, keepdims=True)
        applied = self.sample_weight[:, None] * p * centred
        bend = float(np.vdot(centred, applied))
        if self.intercept_inverse is not None:
            across = applied.sum(axis=0)
            bend -= float(across @ self.intercept_inverse @ across)
        return bend

    def answer(self, direction: Floats) -> Floats:
        """By how much the best intercepts change along a direction of shape (d, T)."""
        if self.intercept_inverse is None:
            return np.zeros(direction.shape[1])
        p, along = self.probabilities.T, direction.T  # class by class, as p is
        centred = along - (p * along).sum(axis=0)
        return -self.intercept_inverse @ ((p * centred) @ self.sample_weight)

    def applied(self, directions: Floats) -> Floats:
        """The Hessian times directions, shape (d, T, m)."""
        p = self.probabilities[:, :, None]
        bends = self.sample_weight[:, None, None] * p

        def without_intercepts(of: Floats) -> Floats:
            return np.asarray(bends * (of - np.sum(p * of, axis=1, keepdims=True)))

        result = without_intercepts(directions)
        if self.intercept_inverse is not None:
            result -= without_intercepts((self.intercept_inverse @ result.sum(axis=0))[None])
        return result


class Multinomial(Objective):
    """Multinomial loss of images Z of shape (d, T), a score for each example and class.

    g(Z) = sum_i c_i (logsumexp_t(Z_it + b_t) - Z_i,y_i - b_y_i), at the best intercepts b.

    Parameters
    ----------
    y : array of shape (d,)
        The classes as numbers 0, ..., T - 1; each must occur.
    fit_intercept : bool, default=False
        Whether an unpenalised constant for each class is part of the model.
    sample_weight : array of shape (d,), optional
        The weights c_i, not negative; all one by default.
    """

    lower_bound = 0.0

    def __init__(
        self, y: ArrayLike, fit_intercept: bool = False, sample_weight: ArrayLike | None = None
    ) -> None:
        self.y: NDArray[np.int64] = np.asarray(y, dtype=np.int64)
        self.d = len(self.y)
        self.classes = int(self.y.max()) + 1
        self.fit_intercept = fit_intercept
        self.sample_weight = checked_sample_weight(sample_weight, self.d)
        self._counts = np.bincount(self.y, self.sample_weight, minlength=self.classes)
        if fit_intercept and not np.all(self._counts > 0.0):
            raise ValueError(f"y lacks class {int(np.argmin(self._counts))}: each must occur")
        #: Intercepts that were found from another guess change sums of the gradient by less.
        self._total = float(self._counts.sum())
        self.vagueness = 1e-13 * self._total if fit_intercept else 0.0
        #: Where the true class of each example stands, if scores come class by class.
        self._places = self.y * self.d + np.arange(self.d)
        self._solved: tuple[Floats, Floats] | None = None
        self._softmax: tuple[Floats, tuple[Floats, Floats]] | None = None
        self._bent: tuple[Floats, SoftmaxCurvature] | None = None
        # Classes that can be told apart perfectly leave a loss that only measures the radius. Where
        # there are no scores, intercepts make probabilities of how often each class occurs.
        at_zero = self._total * np.log(self.classes)
        if fit_intercept:
            at_zero = self._counts @ np.log(self._total / self._counts)
        self.negligible = 1e-6 * float(at_zero)

    def intercept(self, z: Floats) -> Floats:
        """The constants that go with the image z, shape (T,), summing to zero."""
        if not self.fit_intercept:
            return np.zeros(self.classes)
        if self._solved is None or not is_same(self._solved[0], z):
            self._solved = kept(z), self._best_intercept(z)
        return self._solved[1]

    def _best_intercept(self, z: Floats) -> Floats:
        """The T intercepts, by Newton's method from a guess, or else by way of softer losses.

        Scores far apart make a loss of nearly flat pieces, where Newton steps go astray; the loss
        of scores divided by s has none if s is large, and its intercepts, times s, are a good
        guess for a smaller s.
        """
        start, z = np.log(self._counts), np.asfortranarray(z)  # the best without scores
        b, found = self._newton(z, start if self._solved is None else self._guess(z), 12)
        if not found and self._solved is not None:
            b, found = self._newton(z, start, 12)
        if not found:
            softness = max(float(np.ptp(z)) / 4.0, 1.0)
            b = softness * np.log(self._counts / self._counts.sum()) - z.mean(axis=0)
            while softness > 1.0:
                b = softness * self._newton(z / softness, b / softness, 30)[0]
                softness = max(softness / 3.0, 1.0)
            b, found = self._newton(z, b, 100)
        return b - b.mean()

    def _guess(self, z: Floats) -> Floats:
        """The last intercepts, and what the curvature, if it is known there, makes of them here."""
        assert self._solved is not None
        last, b = self._solved
        if self._bent is None or self._bent[0] is not last:
            return b
        return b + self._bent[1].answer(z - last)

    def _newton(self, z: Floats, b: Floats, steps: int) -> tuple[Floats, bool]:
        """Newton's method with shortened steps; also says whether it got to the minimum."""
        total = self._total
        (p, value), steepness, near = self._at(z, b), np.inf, False
        last = b
        for _ in range(steps):
            slope = self.sample_weight @ p - self._counts
            before, steepness = steepness, float(np.abs(slope).max())
            if near and steepness >= 0.5 * before:  # only rounding is left
                return (b if steepness < before else last), True
            if steepness <= 1e-15 * total:
                return b, True
            # So near the minimum, values no longer tell better from worse, but slopes do.
            near, last = steepness <= 1e-7 * total, b
            hessian = _intercept_hessian(p, self.sample_weight, total)
            # Of a class that is out of the question, the slope is rounding: it leads nowhere.
            hessian.reshape(-1)[:: len(hessian) + 1] += 1e-15 * total
            step = _solved(hessian, slope)
            # Along a step, the Hessian changes by no larger a share than the step is long, about.
            if 2.0 * float(np.abs(step).max()) * steepness <= 1e-15 * total:
                return b - step, True
            promise, size = float(step @ slope), 1.0
            p, reached = self._at(z, b - step)
            while not near and reached > value - 0.1 * size * promise and size > 1e-6:
                size *= 0.25
                p, reached = self._at(z, b - size * step)
            b, value = b - size * step, reached
        return b, False

    def _at(self, z: Floats, b: Floats) -> tuple[Floats, float]:
        """Probabilities and value at an image and intercepts."""
        scores = z + b
        p, logs = exponentials(scores)
        return p, float(self.sample_weight @ (logs - self._chosen(scores)))

    def _chosen(self, scores: Floats) -> Floats:
        """The score of the true class of each example, shape (d,)."""
        return scores.T.reshape(-1)[self._places]

    def _exponentials(self, z: Floats) -> tuple[Floats, Floats]:
        """Probabilities and log-sum-exp at the best intercepts, computed once for an image."""
        if self._softmax is None or not is_same(self._softmax[0], z):
            self._softmax = kept(z), exponentials(z + self.intercept(z))
        return self._softmax[1]

    def value(self, z: Floats) -> float:
        """The weighted sum of the losses at an image of shape (d, T)."""
        chosen = self._chosen(z) + self.intercept(z)[self.y]
        losses = self._exponentials(z)[1] - chosen
        if float(losses.max()) < 0.5:  # small losses are lost in the difference of large scores
            losses = -np.log1p(-self._others(z))
        return float(self.sample_weight @ losses)

    def _others(self, z: Floats) -> Floats:
        """The probability that it is not the true class, shape (d,); 1 - p would lose digits."""
        return -self._chosen(self._off(z).T)

    def _off(self, z: Floats) -> Floats:
        """Probabilities minus one for the true class, from those of the others; shape (T, d)."""
        off = self._exponentials(z)[0].T.copy()
        own = off.reshape(-1)
        own[self._places] = 0.0
        own[self._places] = -off.sum(axis=0)
        return off

    def gradient(self, z: Floats) -> Floats:
        """Probabilities minus one for the true class, weighted; shape (d, T)."""
        return np.ascontiguousarray((self.sample_weight * self._off(z)).T)

    def curvature(  # type: ignore[override]  # of scores for each class, not of one image
        self, z: Floats
    ) -> SoftmaxCurvature:
        """The Hessian at an image of shape (d, T)."""
        if self._bent is None or not is_same(self._bent[0], z):
            p, inverse = self._exponentials(z)[0], None
            if self.fit_intercept:
                hessian = _intercept_hessian(p, self.sample_weight, self._total)
                inverse = _solved(hessian, _unit(self.classes))
                inverse -= inverse.mean()
            self._bent = kept(z), SoftmaxCurvature(p, self.sample_weight, inverse)
        return self._bent[1]

    def steepness(self, z: Floats) -> float:
        """One over the sum of the odds against the true classes, weighted: see `Logistic`."""
        right = self._chosen(self._exponentials(z)[0])
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            total = float(self.sample_weight @ (self._others(z) / right))
        return 1.0 / total if total > 0.0 else 0.0


@cache
def _unit(classes: int) -> Floats:
    return np.eye(classes)


@cache
def _others_of(classes: int) -> Floats:
    return 1.0 - np.eye(classes)


def _intercept_hessian(p: Floats, sample_weight: Floats, total: float) -> Floats:
    """The Hessian in the intercepts, made regular: a constant added to all of them is free."""
    hessian: Floats = (p.T * sample_weight) @ p
    # Each row sums to zero: the diagonal follows from the rest, which loses no digits.
    own = hessian.reshape(-1)[:: len(hessian) + 1]
    own[:] = 0.0
    diagonal = hessian.sum(axis=1)
    level = max(float(diagonal.sum()), 1e-30 * total) / len(hessian) ** 2
    np.subtract(level, hessian, out=hessian)
    # Where the pieces are flat, what is left of the Hessian may be too small to invert.
    own += diagonal + 1e-14 * level * len(hessian)
    return hessian


def _solved(hessian: Floats, sides: Floats) -> Floats:
    """The solution of equations with such a Hessian, shape (T,) or (T, T)."""
    _, solution, failed = dposv(hessian, sides)
    return np.asarray(np.linalg.solve(hessian, sides) if failed else solution, dtype=np.float64)
