"""What is minimised: a smooth convex function g of the image z = A alpha.

Every objective here has a Hessian of the form diag(h) - u u', which is what `curvature` returns:
one shape serves least squares, logistic loss and the boosting objective, with or without an
intercept that has been minimised out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curvature:
    """The Hessian diag(diagonal) - rank_one rank_one'; a diagonal of one number is constant."""

    diagonal: Floats | float
    rank_one: Floats | None = None

    def bend(self, direction: Floats) -> float:
        """The second derivative along a direction of shape (d,)."""
        bend = float(np.sum(self.diagonal * direction * direction))
        if self.rank_one is not None:
            bend -= float(self.rank_one @ direction) ** 2
        return bend


@runtime_checkable
class Objective(Protocol):
    """A smooth convex function of the image z, shape (d,)."""

    #: Length of an image.
    d: int
    #: True if the Hessian is the same everywhere, so that a Gram matrix can be kept.
    quadratic: bool
    #: A number that g never falls below (-inf if none is known).
    lower_bound: float

    def value(self, z: Floats) -> float:
        """The value g(z)."""
        ...

    def gradient(self, z: Floats) -> Floats:
        """The gradient of g at z, shape (d,)."""
        ...

    def line_search(self, z: Floats, direction: Floats, max_step: float) -> float:
        """The step in [0, max_step] that minimises g(z + step * direction)."""
        ...

    def curvature(self, z: Floats) -> Curvature:
        """The Hessian of g at z."""
        ...
