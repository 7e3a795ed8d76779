"""Groups of columns turned within each group, so that they are orthogonal under the curvature."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import ActiveSet, ExplicitActiveSet
from atomcast.known.columns import grown
from atomcast.steps.inner.column_model import NOTHING, ColumnModel, ProductModel, Products

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: What turning leaves of a direction without length is rounding.
FLAT = 1e-14


class Turns:
    """The rotation of each known group, and the bend along each of its new axes."""

    def __init__(self) -> None:
        self.rotations: list[Floats] = []
        self.lengths: Floats = np.zeros(0)

    def add(self, corner: Floats) -> Floats:
        """A new group's rotation, from the products of its columns; flat axes become zeros."""
        lengths, rotation = np.linalg.eigh(corner)
        flat = lengths <= FLAT * max(float(lengths[-1]), 0.0)
        lengths[flat], rotation[:, flat] = 0.0, 0.0
        self.rotations.append(rotation)
        self.lengths = np.concatenate([self.lengths, lengths])
        return rotation

    def forth(self, weights: Floats) -> Floats:
        """Weights, or slopes, along the new axes; also of several columns of them."""
        parts = np.split(weights, self._cuts())
        return np.concatenate([q.T @ part for q, part in zip(self.rotations, parts, strict=True)])

    def back(self, weights: Floats) -> Floats:
        """Weights of the columns themselves."""
        parts = np.split(weights, self._cuts())
        return np.concatenate([q @ part for q, part in zip(self.rotations, parts, strict=True)])

    def _cuts(self) -> Positions:
        return np.cumsum([len(rotation) for rotation in self.rotations])[:-1]


class TurnedColumns:
    """Turned columns of an objective whose curvature is the same everywhere."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.along: Floats = np.zeros(0)
        self._rows = np.empty((16, 0))

    @property
    def compiled(self) -> Floats:
        """The columns as compiled passes take them: rows of an array."""
        return self._rows

    def combine(self, weights: Floats) -> Floats:
        """The weighted sum of the columns, shape (d,), or m of them, shape (m, d)."""
        return weights @ self._rows[: weights.shape[-1]]

    def scores(self, vector: Floats) -> Floats:
        """The inner product of every column with a vector."""
        return self._rows[: len(self.turns.lengths)] @ vector

    def cross(self, left: Positions, right: Positions, diagonal: Floats) -> Floats:
        """The products a_j' diag(diagonal) a_k of some columns with others, shape (l, r)."""
        return (self._rows[left] * diagonal) @ self._rows[right].T

    def model(self, active: ActiveSet, starts: Positions) -> ColumnModel:
        """The objective of the active set, whose groups begin at `starts`."""
        assert isinstance(active, ExplicitActiveSet)
        assert active.columns is not None
        curvature = active.objective.curvature(active.image)
        diagonal = np.full(active.objective.d, 0.0) + curvature.diagonal
        u = NOTHING if curvature.rank_one is None else curvature.rank_one
        if not len(self.turns.rotations):
            self._rows = np.empty((len(active), len(diagonal)))
        for begin, end in pairwise(starts):
            if begin < len(self.turns.lengths):
                continue
            block = active.columns.block(int(begin), int(end))
            along = u @ block if len(u) else np.zeros(block.shape[1])
            rotation = self.turns.add((block.T * diagonal) @ block - np.outer(along, along))
            self._rows = grown(self._rows, int(begin), int(end))
            self._rows[begin:end] = rotation.T @ block.T
            self.along = np.concatenate([self.along, rotation.T @ along])
        start, lengths = self.turns.forth(active.weights), self.turns.lengths
        return ColumnModel(self, start, active.gradient, diagonal, u, self.along, lengths)


class TurnedProducts:
    """Products of turned columns, for objectives that are known by these."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.products = Products(np.empty((0, 0)))

    def model(self, active: ActiveSet, starts: Positions) -> ColumnModel:
        """The objective of the active set, whose groups begin at `starts`."""
        old, new = len(self.turns.lengths), len(active)
        if new > old:
            self._extend(active.products(old, new), starts[starts >= old] - old)
        start, slopes = self.turns.forth(active.weights), self.turns.forth(active.scores())
        return ProductModel.with_slopes(self.products, start, slopes)

    def _extend(self, products: Floats, cuts: Positions) -> None:
        """Add the products of new groups, which begin at `cuts`, with all; shape (new, m)."""
        old, new = len(self.turns.lengths), len(products)
        added = [
            self.turns.add(products[old + begin : old + end, begin:end])
            for begin, end in pairwise(cuts)
        ]
        parts = np.split(self.turns.forth(products), cuts[1:-1], axis=1)
        turned = np.hstack([part @ turn for part, turn in zip(parts, added, strict=True)])
        matrix = np.empty((new, new))
        matrix[:old, :old] = self.products.matrix
        matrix[:, old:] = turned
        matrix[old:, :old] = turned[:old].T
        self.products = Products(matrix)
