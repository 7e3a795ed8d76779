"""ProxCoCoA: l1-regularised least squares with distributed features (Smith et al., 2015).

Each node lowers a bound of the objective that is its own, a Lasso on its own features around the
common prediction, and sends how its part of the prediction changes. The changes are added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast._checks import check_count, check_positive
from atomcast.baselines.admm import Features, Run
from atomcast.data.shards import Shards
from atomcast.loop.result import Result

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ProxCocoa:
    """Minimise 1/2 ||y - A x||^2 + lam ||x||_1 by ProxCoCoA, where all changes are added up.

    Parameters
    ----------
    lam : float
        The penalty.
    sigma : float, optional
        By how much nodes take their own curvature to be larger than it is, since others move at the
        same time. Default: the number of nodes, with which the objective never rises. Smaller is
        faster where features of different nodes have little in common, and may not converge.
    beta : float, optional
        Measure objective and gap on the l1 ball of this radius, as for `Admm`.
    max_rounds : int, default=100
    tol : float, default=1e-6
        Stop when predictions change by no more, relatively.
    local_tol : float, default=1e-6
        Accuracy of the local solutions, which are warm-started.
    enough : float, optional
        As for `Admm`.
    """

    lam: float
    sigma: float | None = None
    beta: float | None = None
    max_rounds: int = 100
    tol: float = 1e-6
    local_tol: float = 1e-6
    enough: float | None = None
    loss: ClassVar[Literal["squared"]] = "squared"
    local: ClassVar[Literal["coordinate"]] = "coordinate"

    def __post_init__(self) -> None:
        for name in ("lam", "tol", "local_tol"):
            check_positive(name, getattr(self, name), "a parameter of ProxCoCoA")
        for name in ("sigma", "beta"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), "a parameter of ProxCoCoA")
        check_count("max_rounds", self.max_rounds, "rounds after which to stop")

    def solve(self, y: ArrayLike, shards: Shards | Features) -> Result:
        """Run it on the shards of a star; the result is as that of `Admm.solve`."""
        features = shards if isinstance(shards, Features) else Features.of(shards)
        return CocoaRun(self, np.asarray(y, dtype=np.float64), features).result()


class CocoaRun(Run):
    """One run: nodes send changes of their predictions, and hear the sum of all predictions."""

    how: ProxCocoa

    def _round(self) -> tuple[float, float]:
        """Local problems around the common prediction; returns the change, relatively."""
        how, before = self.how, self.predictions.copy()
        sigma = how.sigma or float(self.nodes)
        residual = 0.5 * self.loss.gradient(before.sum(axis=0))  # of 1/2 ||y - z||^2
        targets = before - residual / sigma
        self.solver.solve(targets, self.x, self.predictions, how.lam / sigma, how.local_tol)
        self.said = self.predictions - before
        size = max(float(np.linalg.norm(self.predictions)), 1e-300)
        change = float(np.linalg.norm(self.said)) / size
        return change, change
