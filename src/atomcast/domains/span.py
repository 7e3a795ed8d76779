"""All weights: what matching pursuit chooses from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import Symmetric

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Span(Symmetric):
    """Every combination of the atoms.

    It has no size, so that it has no vertices and no duality gap; the score of an atom says how
    much of the residual it explains.
    """

    has_origin: ClassVar[bool] = True
    polytope: ClassVar[bool] = False
    bounded: ClassVar[bool] = False

    @property
    def scale(self) -> float:
        """Weights are measured in units of one."""
        return 1.0

    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """All weights are in the set."""
        return weights

    def gap(self, inner: float, best: float) -> float:
        """Infinite: a linear function has no minimum over a span."""
        return math.inf
