"""The losses that ADMM can minimise: what is measured of them, and the coordinator's step."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from atomcast.objectives import Logistic, SquaredError

Floats = NDArray[np.float64]


class SharingLoss(Protocol):
    """A loss l of the whole prediction, a sum over examples."""

    def value(self, image: Floats) -> float:
        """What is measured of it."""
        ...

    def gradient(self, image: Floats) -> Floats:
        """The gradient of what is measured."""
        ...

    def mean_update(self, target: Floats, nodes: int, rho: float) -> Floats:
        """The z that minimises l(N z) + N rho / 2 ||z - target||^2 (Boyd et al., section 7.3)."""
        ...


class SharingSquares(SquaredError):  # noqa: N818 (a squared error is no exception)
    """l(z) = 1/2 ||y - z||^2, of which ||y - z||^2 is measured, as everywhere in atomcast."""

    def mean_update(self, target: Floats, nodes: int, rho: float) -> Floats:
        """The minimiser, in closed form."""
        return (self.y + rho * target) / (nodes + rho)


class SharingLogistic(Logistic):
    """l(z) = sum_i log(1 + exp(-y_i z_i)) for labels -1 and 1."""

    def mean_update(self, target: Floats, nodes: int, rho: float) -> Floats:
        """The minimiser, example by example."""
        return self.y * logistic_prox(self.y * target * nodes, nodes / rho) / nodes


def logistic_prox(v: Floats, step: float, tol: float = 1e-14) -> Floats:
    """The t that minimises log(1 + exp(-t)) + (t - v)^2 / (2 step), for every entry of v.

    Newton's method on all entries at once. The slope, t - v - step / (1 + exp(t)), is concave or
    convex on either side of zero, so that Newton alone may overshoot: it is kept inside a bracket,
    which at first is [v, v + step].
    """
    low, high = v.copy(), v + step
    t = v + step * expit(-v)
    np.minimum(t, high, out=t)
    for _ in range(200):
        missed = expit(-t)
        slope = t - v - step * missed
        np.copyto(low, t, where=slope < 0)
        np.copyto(high, t, where=slope > 0)
        newton = t - slope / (1.0 + step * missed * (1.0 - missed))
        outside = (newton <= low) | (newton >= high)
        new = np.where(outside & (slope != 0), 0.5 * (low + high), newton)
        moved = np.abs(new - t)
        t = new
        if np.all(moved <= tol * (1.0 + np.abs(t))):
            break
    return t
