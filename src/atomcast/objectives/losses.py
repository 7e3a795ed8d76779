"""Losses: parameters of an objective, without the target that makes it one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from atomcast.objectives.logistic import Logistic
from atomcast.objectives.objective import Floats, Objective
from atomcast.objectives.pointwise import PointwiseObjective
from atomcast.objectives.squared_error import SquaredError


class Loss(ABC):
    """What `SparseModel` is to minimise: an objective as soon as there is a target."""

    #: Whether the target is one of two classes; `bind` is then given the labels -1 and 1.
    classifies: ClassVar[bool] = False

    @abstractmethod
    def bind(self, y: Floats, sample_weight: Floats | None = None) -> Objective:
        """The objective for a target, and for how much each example counts, of shape (d,)."""


class PointwiseLoss(Loss):
    """A sum over the examples of loss(y_i, z_i + b), from three functions of arrays.

    A subclass says what a loss of one example is; the intercept b comes for free. The loss must be
    convex in z and have a continuous slope.
    """

    #: Whether an unconstrained constant b is part of the model.
    fit_intercept: bool = False
    #: A number that the sum never falls below.
    lower_bound: float = 0.0

    @abstractmethod
    def losses(self, y: Floats, z: Floats) -> Floats:
        """The loss of each example, shape (d,)."""

    @abstractmethod
    def slopes(self, y: Floats, z: Floats) -> Floats:
        """The derivative of each loss with respect to z, shape (d,)."""

    @abstractmethod
    def bends(self, y: Floats, z: Floats) -> Floats:
        """The second derivative of each loss with respect to z, shape (d,)."""

    def bind(self, y: Floats, sample_weight: Floats | None = None) -> Objective:
        """The sum over the examples of this target."""
        return PointwiseObjective(self, y, sample_weight)


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """Least squares, ||y - z - b||^2, with or without the constant b."""

    fit_intercept: bool = True

    def bind(self, y: Floats, sample_weight: Floats | None = None) -> SquaredError:
        """Least squares for this target."""
        return SquaredError(y, self.fit_intercept, sample_weight)


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """Logistic loss of two classes, with or without a constant."""

    fit_intercept: bool = True
    classifies: ClassVar[bool] = True

    def bind(self, y: Floats, sample_weight: Floats | None = None) -> Logistic:
        """Logistic loss for these labels."""
        return Logistic(y, self.fit_intercept, sample_weight)


@dataclass(frozen=True)
class SquaredHingeLoss(PointwiseLoss):
    """What is missing of a margin of one, squared: max(0, 1 - y (z + b))^2, for two classes."""

    fit_intercept: bool = True
    classifies: ClassVar[bool] = True

    def losses(self, y: Floats, z: Floats) -> Floats:
        """The square of what is missing."""
        return np.maximum(1.0 - y * z, 0.0) ** 2

    def slopes(self, y: Floats, z: Floats) -> Floats:
        """Minus twice the label times what is missing."""
        return -2.0 * y * np.maximum(1.0 - y * z, 0.0)

    def bends(self, y: Floats, z: Floats) -> Floats:
        """Two where something is missing."""
        return np.where(y * z < 1.0, 2.0, 0.0)


@dataclass(frozen=True)
class MadeLoss(Loss):
    """The loss behind a function that makes an objective of a target."""

    make: Callable[..., Objective]

    def bind(self, y: Floats, sample_weight: Floats | None = None) -> Objective:
        """What the function makes of this target."""
        return self.make(y) if sample_weight is None else self.make(y, sample_weight=sample_weight)


def as_loss(objective: Any) -> Loss:
    """A loss from what users may give: a loss, or a function (or class) that makes an objective."""
    if isinstance(objective, Loss):
        return objective
    if callable(objective):
        return MadeLoss(objective)
    bound = "an objective that has its target already" if isinstance(objective, Objective) else ""
    raise ValueError(
        "objective must be a loss such as SquaredLoss(), or a function that makes an objective of "
        f"y, such as the class SquaredError, got {bound or repr(objective)}"
    )
