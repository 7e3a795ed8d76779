"""What is minimised: a smooth convex function g of the image z = A alpha.

Every objective here has a Hessian of the form diag(h) - u u', which is what `curvature` returns:
one shape serves least squares, logistic loss and the boosting objective, with or without an
intercept that has been minimised out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.objectives.search import newton_line_search

Floats = NDArray[np.float64]


def kept(z: Floats) -> Floats:
    """An image to know again by `is_same`: itself, if nobody can change it, or a copy."""
    return z.copy() if z.flags.writeable else z


def is_same(known: Floats, z: Floats) -> bool:
    """Whether an image is one that was `kept`."""
    return known is z or (z.flags.writeable and np.array_equal(known, z))


@dataclass(frozen=True)
class Curvature:
    """The Hessian diag(diagonal) - rank_one rank_one'; a diagonal of one number is constant."""

    diagonal: Floats | float
    rank_one: Floats | None = None

    def applied(self, directions: Floats) -> Floats:
        """The Hessian times directions, shape (d, m)."""
        diagonal = np.asarray(self.diagonal)
        result = (diagonal[:, None] if diagonal.ndim else diagonal) * directions
        if self.rank_one is not None:
            result -= np.outer(self.rank_one, self.rank_one @ directions)
        return np.asarray(result)

    def bend(self, direction: Floats) -> float:
        """The second derivative along a direction of shape (d,)."""
        bend = float(np.sum(self.diagonal * direction * direction))
        if self.rank_one is not None:
            bend -= float(np.square(self.rank_one @ direction))  # which may be infinite
        return bend


class Objective(ABC):
    """A smooth convex function of the image z, shape (d,).

    An objective must have a length `d`, a `value`, a `gradient` and a `curvature`. All else is
    optional: what stands here is right for every objective, if not always the fastest.
    """

    #: Length of an image.
    d: int
    #: True if the Hessian is the same everywhere, so that a Gram matrix can be kept.
    quadratic: bool = False
    #: A number that g never falls below (-inf if none is known).
    lower_bound: float = -np.inf
    #: Below this, a value is as good as zero; None: below a tiny share of the value at zero.
    negligible: float | None = None
    #: By so much, the sum of the same gradient may differ from process to process.
    vagueness: float = 0.0

    @abstractmethod
    def value(self, z: Floats) -> float:
        """The value g(z)."""

    @abstractmethod
    def gradient(self, z: Floats) -> Floats:
        """The gradient of g at z, shape (d,)."""

    @abstractmethod
    def curvature(self, z: Floats) -> Curvature:
        """The Hessian of g at z."""

    def line_search(self, z: Floats, direction: Floats, max_step: float) -> float:
        """The step in [0, max_step] that minimises g(z + step * direction)."""
        return newton_line_search(self, z, direction, max_step)

    def steepness(self, z: Floats) -> float:
        """The largest r for which H - r g g' is no concave function, at least; zero is always true.

        Losses that fall like exponentials have all but straight logarithms, and a model with this
        Hessian is one of them: it does not end where it has fallen by one.
        """
        return 0.0

    def intercept(self, z: Floats) -> Any:
        """The constant that goes with the image z: a number, or one for each class."""
        return 0.0
