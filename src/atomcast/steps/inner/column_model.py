"""A quadratic function of the weights of known atoms, through their columns or their products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.columns import DenseColumns

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: What centring leaves of a column that is constant: rounding, not a direction.
CONSTANT = 1e-13
NOTHING: Floats = np.zeros(0)


class Known(Protocol):
    """Columns, as far as a quadratic needs them."""

    def combine(self, weights: Floats) -> Floats:
        """The weighted sum of the columns, shape (d,), or m of them, shape (m, d)."""
        ...

    def scores(self, vector: Floats) -> Floats:
        """The inner product of every column with a vector."""
        ...

    def cross(self, left: Positions, right: Positions, diagonal: Floats) -> Floats:
        """The products a_j' diag(diagonal) a_k of some columns with others, shape (l, r)."""
        ...

    @property
    def compiled(self) -> Any:
        """What the compiled passes take."""
        ...


@dataclass(frozen=True)
class ColumnModel:
    """The change of an objective, in second order, from where its weights are.

    Parameters
    ----------
    columns : Columns
        A, of shape (d, k).
    start : array of shape (k,)
        Weights at which the change is zero,
    gradient : array of shape (d,)
        and the gradient there, with respect to the image A alpha.
    diagonal, rank_one : arrays of shape (d,)
        h and u of the curvature diag(h) - u u'; u may be empty.
    along, lengths : arrays of shape (k,)
        A'u, and the bend along each weight: zero where a column is constant but for rounding.
    image, slopes : arrays of shape (d,) and (k,), optional
        A start and A' gradient, where they are known.
    """

    columns: Known
    start: Floats
    gradient: Floats
    diagonal: Floats
    rank_one: Floats
    along: Floats
    lengths: Floats
    image: Floats | None = None
    slopes: Floats | None = None

    @staticmethod
    def of(active: ExplicitActiveSet, slopes: Floats | None = None) -> ColumnModel:
        """The quadratic that the objective is, or looks like, at its current weights.

        Who knows the slopes there also knows that the image is that of the weights, and of nothing
        else.
        """
        assert active.columns is not None
        columns, curvature = active.columns, active.objective.curvature(active.image)
        diagonal = np.full(active.objective.d, 0.0) + curvature.diagonal
        lengths, along, u = active.lengths(diagonal), np.zeros(len(active)), NOTHING
        if curvature.rank_one is not None:
            u = curvature.rank_one
            along = columns.scores(u)
            squares, lengths = lengths, lengths - along**2
            lengths[lengths <= CONSTANT * squares] = 0.0
        start, gradient = active.weights.copy(), active.gradient
        image = None if slopes is None else active.image
        return ColumnModel(columns, start, gradient, diagonal, u, along, lengths, image, slopes)

    def at_zero(self) -> Floats:
        """The gradient, with respect to the image, where all weights are zero."""
        if self.image is None:
            return self.at(np.zeros(len(self.start)))[1]
        gradient = self.gradient - self.diagonal * self.image
        if len(self.rank_one):
            gradient += float(self.start @ self.along) * self.rank_one
        return gradient

    def at(self, weights: Floats) -> tuple[Any, Floats]:
        """The value at other weights, and the gradient with respect to the image.

        Of several weights, shape (m, k), all are found in one pass over the columns.
        """
        change = weights - self.start
        image = self.columns.combine(change)
        gradient = self.gradient + self.diagonal * image
        if len(self.rank_one):
            gradient -= np.multiply.outer(change @ self.along, self.rank_one)
        return 0.5 * np.sum(image * (self.gradient + gradient), axis=-1), gradient

    def hessian(self, chosen: Positions) -> Floats:
        """The curvature along some of the weights, shape (m, m)."""
        along = self.along[chosen]
        return self.columns.cross(chosen, chosen, self.diagonal) - np.outer(along, along)

    def steps_to_factorise(self, k: int) -> float:
        """With how many steps of conjugate gradients on k weights a factorisation keeps up.

        Sparse columns have products that are dense, and take far longer to find than a step does;
        and of more columns than they have entries, some are flat beside the others.
        """
        d = len(self.diagonal)
        able = isinstance(self.columns, DenseColumns) and k < d
        return (k + k**2 / (3 * d)) / 8 if able else np.inf

    @property
    def bends(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The curvature, as compiled passes take it."""
        return self.lengths, self.along, self.rank_one, self.diagonal


class Products:
    """The matrix A'HA in the place of columns: an image is then a change of slopes."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix = matrix

    @property
    def compiled(self) -> tuple[Floats]:
        """The products as compiled passes take them."""
        return (self.matrix,)

    def combine(self, weights: Floats) -> Floats:
        """The change of slopes that goes with a change of weights, or with several."""
        return weights @ self.matrix

    def scores(self, vector: Floats) -> Floats:
        """The slopes, which are what an image is."""
        return vector

    def cross(self, left: Positions, right: Positions, diagonal: Floats) -> Floats:
        """The products of some columns with others; the diagonal is in them."""
        return self.matrix[np.ix_(left, right)]


class ProductModel(ColumnModel):
    """A quadratic that is known by the products of its columns."""

    @staticmethod
    def with_slopes(products: Products, start: Floats, slopes: Floats) -> ProductModel:
        """The quadratic with these slopes at the start."""
        k, lengths = len(start), np.diag(products.matrix).copy()
        return ProductModel(products, start, slopes, np.ones(k), NOTHING, np.zeros(k), lengths)

    def steps_to_factorise(self, k: int) -> float:
        """The same where the products are known."""
        return k / 6

    def at(self, weights: Floats) -> tuple[Any, Floats]:
        """The value at other weights, and the slopes."""
        change = weights - self.start
        slopes = self.gradient + self.columns.combine(change)
        return 0.5 * np.sum(change * (self.gradient + slopes), axis=-1), slopes
