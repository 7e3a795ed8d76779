"""A ball for each of many signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import L1Ball, Symmetric

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BallProduct(Symmetric):
    """Weights of B signals, each with absolute values that sum to at most its own radius.

    Weights stand atom by atom, and within an atom signal by signal. A vertex has an atom for every
    signal, so that steps which keep an account of vertices do not apply.

    Parameters
    ----------
    radii : array of shape (B,)
    """

    radii: Floats
    has_origin: ClassVar[bool] = True
    polytope: ClassVar[bool] = False

    @property
    def scale(self) -> float:
        """The largest radius."""
        return float(self.radii.max())

    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """The nearest weights, signal by signal."""
        nearest = weights.reshape(-1, len(self.radii)).copy()
        for b in np.flatnonzero(np.abs(nearest).sum(axis=0) > self.radii):
            nearest[:, b] = L1Ball(float(self.radii[b])).project(ids, nearest[:, b])
        return nearest.ravel()
