"""What everybody knows of a regression in a kernel space: points, targets, weights, objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import Domain
from atomcast.known.kernels.exact import TIMES, spread
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.point_set import (
    ROUNDING,
    SCORE_ROUNDING,
    KernelActiveSet,
    SupportVectors,
)
from atomcast.known.kernels.storage import Storage
from atomcast.messages.atom import Misfit
from atomcast.messages.proposals import Agreement

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SupportTargets(SupportVectors):
    """The points of a solution, and the middle of all targets that are known.

    If the level is known precisely that goes with some weights, these come with it.
    """

    middle: float
    weights: Floats
    level: float | None


class TargetActiveSet(KernelActiveSet):
    """Points received, and the dual of their regression as an objective of signed weights beta.

    That is ``f = beta' K~ beta / 2 - y' beta + epsilon ||beta||_1`` where the weights sum to zero,
    with K~ as in `KernelActiveSet` for points of one class. As K~ has 1/C on its diagonal, f is at
    most ``sum_i C g_i^2 / 2`` above its minimum, for any subgradient g plus any constant, the same
    for all points: the level, which is the intercept of the regression. The score of a point is its
    share C g_i^2 / 2 of that sum, with the sign of g_i. Where kernel values are in single
    precision, g_i is taken to be larger by what rounding may have made of it.

    Parameters
    ----------
    spec, code, storage : see `KernelActiveSet`
    epsilon : float
        How far a prediction may be off at no cost.
    """

    inner_kind = "targets"

    def __init__(self, spec: KernelSpec, code: LabelCode, storage: Storage, epsilon: float) -> None:
        super().__init__(spec, code, storage)
        self.epsilon = epsilon
        #: Follows from the weights; there is none before the first.
        self.level: float | None = None
        #: What rounding of kernel values may have made of the product of a point of length one.
        self._rounding = 0.0

    @property
    def targets(self) -> Floats:
        """The target of each known point."""
        return self._told[: len(self), 0]

    @property
    def costs(self) -> Floats:
        """C times the weight of each known point."""
        return 1.0 / self.gram.ridge

    def install(self, weights: Floats, products: Floats) -> None:
        """Replace all weights, by someone who knows the products K~ beta too."""
        super().install(weights, products)
        used = np.flatnonzero(weights)
        self._rounding = 0.0
        if len(used) and not self.precise:
            self._rounding = self.gram.rounding_of(weights) / float(self._lengths.max())
        if len(used):
            self.level = level_of(
                weights[used],
                products[used],
                self.targets[used],
                self.costs[used],
                self.epsilon,
            )
        elif len(self):
            self.level = self.middle()

    @property
    def _lengths(self) -> Floats:
        """How long the known points are in the kernel space."""
        return np.sqrt(np.maximum(self.gram.diagonal - self.gram.ridge, 0.0))

    @property
    def slack(self) -> Floats | None:
        """What rounding may have made of the product of each known point; None if nothing."""
        return self._rounding * self._lengths if self._rounding else None

    def measure_rounding(self) -> None:
        """Find out in a few sums what rounding has made of them: mostly less than it might have."""
        if self._rounding:
            some, lengths = spread(0, len(self)), self._lengths
            off = np.abs(self.exact_products(self.weights, some) - self.image_products[some])
            shares = off / np.maximum(lengths[some], 1e-3 * lengths.max())
            self._rounding = min(self._rounding, TIMES * float(shares.max()))

    def sharpen(self) -> bool:
        """Have kernel values, and the products, in double precision from now on."""
        if self.precise or not (super().sharpen() or self.gram.let_go()):
            return False
        self.storage = replace(self.storage, dtype=np.float64)
        self.install(self.weights.copy(), self.gram.times(self.weights))
        return True

    def middle(self) -> float:
        """The number that no known target is further from than necessary."""
        return 0.5 * float(self.targets.min() + self.targets.max())

    def shares(
        self,
        weights: Floats | float,
        products: Floats,
        targets: Floats,
        costs: Floats,
        level: float | None = None,
        slack: Floats | None = None,
    ) -> Floats:
        """The scores of points, now or at another level; zero before there is one."""
        level = self.level if level is None else level
        if level is None:
            return np.zeros(len(targets))
        slope, epsilon = products + level - targets, self.epsilon
        slack = np.zeros(len(slope)) if slack is None else slack
        # A point without weight has the least of all subgradients, one with weight only one.
        least = np.maximum(np.abs(slope) + slack - epsilon, 0.0)
        own = slope + epsilon * np.sign(weights)
        unused = np.asarray(weights == 0.0)
        excess = np.where(unused, np.copysign(least, slope), own + np.copysign(slack, own))
        return np.asarray(0.5 * costs * np.abs(excess) * excess)

    def scores(self) -> Floats:
        """The score of each known point."""
        known = self.weights, self.image_products, self.targets, self.costs
        return self.shares(*known, slack=self.slack)

    def value(self) -> float:
        """The objective; up to rounding, the level makes no difference to it."""
        if self._value is None:
            beta, level = self.weights, self.level or 0.0
            linear = float(beta @ (0.5 * self.image_products - (self.targets - level)))
            self._value = linear + self.epsilon * float(np.abs(beta).sum())
        return self._value

    def inner(self) -> float:
        """Zero: scores are shares of the gap."""
        return 0.0

    def gap(self, domain: Domain, agreement: Agreement) -> float:
        """The bound on the distance to the optimum, which nobody knows before the first points."""
        return np.inf if self.level is None else super().gap(domain, agreement)

    def iterate(self) -> tuple[Floats, float | None]:
        """The weights, and the level that follows from them."""
        return self.weights.copy(), self.level

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Any = None) -> Misfit:
        """Compare stated scores with those of points that came one after the other."""
        start = self.position[ids[0]]
        part = slice(start, start + len(ids))
        weights, level = self.weights, self.level
        products = self.image_products[part]
        if iterate is not None:
            weights, level = np.zeros(len(self)), iterate[1]
            weights[: len(iterate[0])] = iterate[0]
            products = self.gram.rows(np.arange(part.start, part.stop)) @ weights
        targets, costs, length = self.targets[part], self.costs[part], np.sqrt(self.gram.diagonal)
        scores = self.shares(weights[part], products, targets, costs, level)
        slack = SCORE_ROUNDING * length[part] * float(np.abs(weights) @ length)
        slack += ROUNDING * (np.abs(targets) + abs(level or 0.0))
        # The square root of a score is what is off by so much.
        allowed = np.sqrt(2.0 * costs * np.abs(scores)) * slack + costs * slack**2
        return Misfit(stated - scores, allowed, length[part])

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over the products, and what follows from them."""
        super().remember(memory)
        self.install(self.weights, self.image_products)

    def content(self, ids: NDArray[np.int64]) -> SupportTargets | None:
        """The points with these global ids, the kernel, and the middle of all targets."""
        found = super().content(ids)
        if found is None:
            return None
        level = self.level if self.precise else None
        return SupportTargets(
            **vars(found), middle=self.middle(), weights=self.support()[1], level=level
        )


def level_of(
    beta: Floats, products: Floats, targets: Floats, costs: Floats, epsilon: float
) -> float:
    """The level at which points with weight contribute least to the gap."""
    return float((targets - products - epsilon * np.sign(beta)).dot(costs) / costs.sum())
