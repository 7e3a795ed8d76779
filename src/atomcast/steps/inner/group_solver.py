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

from atomcast.domains.group_ball import BlockBall, BlockRanges
from atomcast.known import gram
from atomcast.known.active_set import ActiveSet, ExplicitActiveSet
from atomcast.steps.inner.column_model import ColumnModel, Products
from atomcast.steps.inner.coordinate_descent import FACE_STEPS, SWEEPS, SWEPT, CoordinateDescent
from atomcast.steps.inner.group_cones import descend_in_cones
from atomcast.steps.inner.plane import newton_step
from atomcast.steps.inner.turned import TurnedColumns, TurnedProducts

Floats = NDArray[np.float64]

#: Up to so many rows, sweeps go through columns, beyond through the products of columns.
FEW_ROWS = 500
#: By which share of the radius a Newton step may end outside the ball and still be one.
NEAR = 0.02
#: So many careful steps follow one that went further.
CAREFUL = 1
#: After so many faces, conjugate gradients are seen to be slow, and a factorisation is worth it,
PATIENCE = 8
#: up to so many weights.
FACTORISED = 1500
#: Up to so many weights, an interior-point method goes on where so many alternations were not
#: enough.
INTERIOR, FEW_ALTERNATIONS = 500, 30
#: Up to so many, a compiler is not worth the wait.
UNCOMPILED = 100


class GroupDescent(CoordinateDescent):
    """Coordinate descent over groups whose columns are orthogonal within each."""

    alternations = 300  # there is no other method to fall back on

    def __init__(self, domain: BlockBall, blocks: BlockRanges) -> None:
        self.domain = domain
        self.blocks = blocks
        self._careful = 0  # steps to come that must not go too far, as one did
        self._faces = 0
        self._steps = 0  # of conjugate gradients, on the last face that was solved by them

    def _norm(self, weights: Floats) -> float:
        return self.blocks.size(weights)

    def _merit(self, scores: Floats) -> Floats:
        return (self.blocks.norms(scores) / self.blocks.c)[self.blocks.block]

    def sweep(
        self,
        model: ColumnModel,
        weights: Floats,
        gradient: Floats,
        chosen: NDArray[np.bool_],
        penalty: float,
        enough: float,
    ) -> bool:
        """Coordinate descent at a penalty, group by group, in place; whether it is at rest."""
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
        used = self.blocks.norms(weights) > 0.0
        if not used.any():
            return 0.0
        sizes = np.diff(self.blocks.starts)[used]
        support, starts = np.flatnonzero(used[self.blocks.block]), np.append(0, np.cumsum(sizes))
        self._faces += 1
        if self._factorises(model, len(support)):
            bend = Bend(weights[support], starts, self.blocks.c[used], penalty, self._careful > 0)
            matrix = bend.added_to(model.hessian(support))
            slopes = model.columns.scores(gradient)[support]
            change, level = newton_step(matrix, slopes, bend.normal, excess)
            weights[support] += change
        else:
            from atomcast.steps.inner._face import solve_face

            level, self._steps = solve_face(
                model.columns.compiled, support, starts, self.blocks.c[used], *model.bends,
                weights, gradient, penalty, self._careful > 0, excess is not None,
                excess or 0.0, FACE_STEPS, *accuracy,
            )  # fmt: skip
        # Far outside the ball, the plane that touches it says nothing of its multiplier.
        near = excess is None or self._norm(weights) <= (1.0 + NEAR) * self.domain.scale
        self._careful = max(self._careful - 1, 0) if near else CAREFUL
        return level if near else np.nan

    def _factorises(self, model: ColumnModel, weights: int) -> bool:
        """Whether a face of so many weights is solved by a factorisation."""
        if weights > FACTORISED:
            return False
        if isinstance(model.columns, Products):
            return self._faces > PATIENCE
        # Conjugate gradients took longer on the last face, columns and all.
        return (weights + weights**2 / (3 * len(model.diagonal))) / 8 < self._steps

    def _toward(
        self, model: ColumnModel, weights: Floats, solution: Floats, origin: Floats
    ) -> tuple[Floats, Floats]:
        """What is best on the way of the Newton step; groups that go through zero stay there."""
        products = np.add.reduceat(weights * solution, self.blocks.starts[:-1])
        kept = np.where((products < 0.0)[self.blocks.block], 0.0, solution)
        # The step ends on a plane that touches the ball: without scaling, it would lead outside.
        best, least, there = kept, np.inf, origin
        for step in (1.0, 0.5, 0.2, 0.05, 0.0):
            point = self._feasible(weights + step * (kept - weights))
            value, gradient = model.at(point)
            if value >= least:
                break
            best, least, there = point, value, gradient
        return best, there


class FewGroups(GroupDescent):
    """The same for so few weights that nothing need be compiled: the groups move all at once."""

    def _factorises(self, model: ColumnModel, weights: int) -> bool:
        return True

    def sweep(
        self,
        model: ColumnModel,
        weights: Floats,
        gradient: Floats,
        chosen: NDArray[np.bool_],
        penalty: float,
        enough: float,
    ) -> bool:
        """Each group where it would be best alone, by the largest bend along it; then as far
        towards that as the sum of the quadratic and the norms, by a line above it, falls.
        """
        blocks, scores = self.blocks, model.columns.scores(gradient)
        bends = np.maximum.reduceat(model.lengths, blocks.starts[:-1])
        bends[bends == 0.0] = 1.0  # of groups that stay where they are
        point = weights - scores / bends[blocks.block]
        push = penalty * blocks.c / (bends * np.maximum(blocks.norms(point), 1e-300))
        shrunk = point * np.maximum(1.0 - push, 0.0)[blocks.block]
        change = np.where(chosen & (model.lengths > 0.0), shrunk - weights, 0.0)
        rise = blocks.size(weights + change) - blocks.size(weights)
        slope = float(scores @ change) + penalty * rise
        moved = model.at(weights + change)[1] - gradient
        bend = float(change @ model.columns.scores(moved))
        weights += min(1.0, max(-slope, 0.0) / max(bend, 1e-300)) * change
        gradient[:] = model.at(weights)[1]
        return False


class Bend:
    """The second-order model of the norm of each group in use, as `_face.solve_face` has it.

    Parameters
    ----------
    weights : array of shape (m,)
    starts : where the groups begin, shape (G + 1,)
    c : weights of the groups, shape (G,)
    penalty : float
    careful : bool
        Whether the model should bound the norm from above, not just touch it.
    """

    def __init__(
        self, weights: Floats, starts: NDArray[np.int64], c: Floats, penalty: float, careful: bool
    ) -> None:
        sizes = np.diff(starts)
        norms = np.sqrt(np.add.reduceat(weights * weights, starts[:-1]))
        self.unit = weights / np.repeat(norms, sizes)
        self.normal = np.repeat(c, sizes) * self.unit
        self.starts, self.round, self.careful = starts, max(penalty, 0.0) * c / norms, careful

    def added_to(self, matrix: Floats) -> Floats:
        """A Hessian with that of the norms added, in place."""
        for begin, end, bend in zip(self.starts[:-1], self.starts[1:], self.round, strict=True):
            part, unit = slice(begin, end), self.unit[begin:end]
            matrix[part, part] += bend * np.eye(end - begin)
            if not self.careful:
                matrix[part, part] -= bend * np.outer(unit, unit)
        return matrix


class GroupSolver:
    """The best weights of the known groups, to a given gap.

    What it knows of the columns grows with them: it serves one active set.
    """

    def __init__(self, domain: BlockBall) -> None:
        self.domain = domain
        self.turned: TurnedColumns | TurnedProducts | None = None

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put the best weights over all known groups into the active set."""
        if not len(active):
            return
        blocks = BlockRanges(active.ids, self.domain)
        few_rows = FEW_ROWS
        if len(active) > gram.MOST_WEIGHTS:  # products of columns would take more than columns do
            few_rows = len(active)
        by_columns = isinstance(active, ExplicitActiveSet) and active.objective.d <= few_rows
        if self.turned is None or (by_columns and isinstance(self.turned, TurnedProducts)):
            self.turned = TurnedColumns() if by_columns else TurnedProducts()
        model = self.turned.model(active, blocks.starts)
        kind = FewGroups if len(active) <= UNCOMPILED else GroupDescent
        descent, interior = kind(self.domain, blocks), len(active) <= INTERIOR
        if interior:
            descent.alternations = FEW_ALTERNATIONS
        weights, found = descent.minimise(model, tolerance)
        if not found and interior:
            slopes = model.columns.scores(model.at_zero())
            matrix = model.hessian(np.arange(len(active)))
            inside, found = descend_in_cones(matrix, slopes, weights, blocks, tolerance)
            if found or model.at(inside)[0] < model.at(weights)[0]:
                weights = inside
        active.set_weights(self.turned.turns.back(weights))
