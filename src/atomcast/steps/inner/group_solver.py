"""Minimisation of a quadratic over the ball of the group norm, for the known groups.

The method is that of `coordinate_descent.py`, a group at a time. Columns of a group are first
turned so that they are orthogonal: norms of groups stay what they are, and the best weights of one
group given the others follow from one equation in one variable, their norm. On a face, where it is
known which groups are not zero, the norm is curved, and a Newton step takes the place of the exact
solution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.group_ball import Blocks, GroupBall
from atomcast.known.active_set import ActiveSet, ExplicitActiveSet
from atomcast.steps.inner.column_model import ColumnModel
from atomcast.steps.inner.coordinate_descent import FACE_STEPS, SWEEPS, SWEPT, CoordinateDescent
from atomcast.steps.inner.turned import TurnedColumns, TurnedProducts

Floats = NDArray[np.float64]

#: Up to so many rows, sweeps go through columns, beyond through the products of columns.
FEW_ROWS = 500
#: By which share of the radius a Newton step may end outside the ball and still be one.
NEAR = 0.02
#: So many careful steps follow one that went further.
CAREFUL = 1


class GroupDescent(CoordinateDescent):
    """Coordinate descent over groups whose columns are orthogonal within each."""

    alternations = 300  # there is no other method to fall back on

    def __init__(self, domain: GroupBall, blocks: Blocks) -> None:
        self.domain = domain
        self.blocks = blocks
        self._careful = 0  # steps to come that must not go too far, as one did

    def _norm(self, weights: Floats) -> float:
        return self.blocks.size(weights)

    def _merit(self, scores: Floats) -> Floats:
        return (self.blocks.norms(scores) / self.blocks.c)[self.blocks.block]

    def _sweep(
        self,
        model: ColumnModel,
        weights: Floats,
        gradient: Floats,
        chosen: NDArray[np.bool_],
        penalty: float,
        enough: float,
    ) -> bool:
        from atomcast.steps.inner._group_sweeps import sweep_groups

        blocks = self.blocks
        return bool(
            sweep_groups(
                model.columns.compiled, blocks.starts, np.unique(blocks.block[chosen]), blocks.c,
                *model.bends, weights, gradient, penalty, SWEEPS, SWEPT, enough,
            )
        )  # fmt: skip

    def _solve_face(
        self,
        model: ColumnModel,
        weights: Floats,
        gradient: Floats,
        penalty: float,
        excess: float | None,
        accuracy: tuple[float, float],
    ) -> float:
        from atomcast.steps.inner._face import solve_face

        used = self.blocks.norms(weights) > 0.0
        if not used.any():
            return 0.0
        sizes = np.diff(self.blocks.starts)[used]
        level = float(
            solve_face(
                model.columns.compiled, np.flatnonzero(used[self.blocks.block]),
                np.concatenate(([0], np.cumsum(sizes))), self.blocks.c[used], *model.bends,
                weights, gradient, penalty, self._careful > 0, excess is not None,
                excess or 0.0, FACE_STEPS, *accuracy,
            )
        )  # fmt: skip
        # Far outside the ball, the plane that touches it says nothing of its multiplier.
        near = excess is None or self._norm(weights) <= (1.0 + NEAR) * self.domain.scale
        self._careful = max(self._careful - 1, 0) if near else CAREFUL
        return level if near else np.nan

    def _toward(self, model: ColumnModel, weights: Floats, solution: Floats) -> Floats:
        """What is best on the way of the Newton step; groups that go through zero stay there."""
        products = np.add.reduceat(weights * solution, self.blocks.starts[:-1])
        kept = np.where((products < 0.0)[self.blocks.block], 0.0, solution)
        # The step ends on a plane that touches the ball: without scaling, it would lead outside.
        best, least = kept, np.inf
        for step in (1.0, 0.5, 0.2, 0.05, 0.0):
            point = self._feasible(weights + step * (kept - weights))
            value = model.at(point)[0]
            if value >= least:
                break
            best, least = point, value
        return best


class GroupSolver:
    """The best weights of the known groups, to a given gap.

    What it knows of the columns grows with them: it serves one active set.
    """

    def __init__(self, domain: GroupBall) -> None:
        self.domain = domain
        self.turned: TurnedColumns | TurnedProducts | None = None

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put the best weights over all known groups into the active set."""
        if not len(active):
            return
        blocks = Blocks(active.ids, self.domain)
        if self.turned is None:
            few_rows = isinstance(active, ExplicitActiveSet) and active.objective.d <= FEW_ROWS
            self.turned = TurnedColumns() if few_rows else TurnedProducts()
        model = self.turned.model(active, blocks.starts)
        weights, _ = GroupDescent(self.domain, blocks).minimise(model, tolerance)
        active.set_weights(self.turned.turns.back(weights))
