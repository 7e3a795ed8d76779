"""Least squares on small tables and tall ones, condensed: few rows say all that there is to say.

Where R is the triangular factor of the centred columns and the target, ||y - X w - b||^2 at the
best b is ||R (w, -1)||^2. To find R takes one product of the columns with each other; then a path
of many radii reads no long column again. The products of a fold are those of all rows but for the
ones that it leaves out. Values and gaps are those of the table, but for rounding: where that could
matter, because columns nearly depend on each other or hardly anything is left unexplained, nothing
is condensed. Of a table that is small as it is, the rows are centred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from atomcast.data._split import SplitShards
from atomcast.data.shards import Shards
from atomcast.objectives import SquaredError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Of no more columns, products with each other are worth it, if there are so many times the rows.
MOST_COLUMNS, TALL = 500, 4
#: What a column, or the target, keeps of its square beside the others, at least.
CLEAR = 1e-4
#: A table of no more numbers than these is small.
SMALL = 1 << 19
#: Of no more columns than so many times the rows, all products with each other are found.
WIDE = 6
#: Of so many numbers at a time a centred copy is made.
AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Condensed:
    """A table with few rows whose least squares are those of another one.

    Parameters
    ----------
    shards : SplitShards
    objective : SquaredError
        Without an intercept, which `intercept` knows.
    means, mean : array of shape (n_features,), float
        Of the columns of the other table, and of its target; zero without an intercept.
    products : callable, optional
        The products of a column with all columns, if they take less time than to multiply them.
    """

    shards: SplitShards
    objective: SquaredError
    means: Floats
    mean: float
    products: Callable[[int], Floats] | None = None

    @property
    def columns(self) -> Floats:
        """The table."""
        columns: Floats = self.shards.matrix
        return columns

    def intercept(self, coef: Floats) -> float:
        """The constant that goes with coefficients."""
        return self.mean - float(self.means @ coef)


@dataclass(frozen=True)
class FoldProducts:
    """Products of the columns of a table with each other, but for rows that are left out."""

    whole: Floats
    left_out: Floats

    def __call__(self, column: int) -> Floats:
        """The products of a column with all columns."""
        found: Floats = self.whole[column] - self.left_out[:, column] @ self.left_out
        return found


class Moments(NamedTuple):
    """What rows count together, and sums of them and of their products, target included."""

    mass: float
    sums: Floats
    products: Floats

    def less(self, other: Moments) -> Moments:
        """Those of the rows that another one does not have."""
        sums, products = self.sums - other.sums, self.products - other.products
        return Moments(self.mass - other.mass, sums, products)


class Tables:
    """Some rows of a table at a time, condensed.

    Parameters
    ----------
    shards : SplitShards
    objective : SquaredError
        Of all rows.
    """

    def __init__(self, shards: SplitShards, objective: SquaredError) -> None:
        self._shards, self._all = shards, objective

    def of(self, rows: Rows, objective: SquaredError) -> Condensed | None:
        """These rows, of which an objective has the target, or None if they stay as they are."""
        d, n = len(rows), self._shards.matrix.shape[1]
        few = self._factored(rows) if n <= MOST_COLUMNS and d >= TALL * n else None
        return self._centred(rows, objective) if few is None and d * n <= SMALL else few

    def whole(self) -> Condensed | None:
        """All rows."""
        return self.of(np.arange(self._all.d), self._all)

    def _centred(self, rows: Rows, objective: SquaredError) -> Condensed:
        """The rows as they are, but for their means and weights."""
        columns, weights = self._shards.matrix[rows].astype(np.float64), objective.sample_weight
        means, mean = np.zeros(columns.shape[1]), 0.0
        if objective.fit_intercept:
            means = np.average(columns, axis=0, weights=weights)
            mean = float(np.average(objective.y, weights=weights))
            columns -= means
        target = objective.residual(np.zeros(objective.d))
        if weights is not None:
            columns *= np.sqrt(weights)[:, None]
            target = target * np.sqrt(weights)
        return self._made(columns, target, means, mean, self._products_of(rows))

    def _factored(self, rows: Rows) -> Condensed | None:
        """As many rows as there are columns, if rounding allows it."""
        n = self._shards.matrix.shape[1]
        mass, sums, products = self._moments_of(rows)
        centre = self._centre.copy()
        if self._all.fit_intercept:
            centre += sums / mass
            products = products - np.outer(sums, sums / mass)
        squares = products.diagonal()
        factor, failed = dpotrf(products, clean=True)
        if failed or np.any(factor.diagonal() ** 2 <= CLEAR * squares):
            return None
        known = products[:n, :n].__getitem__
        return self._made(factor[:, :n], factor[:, n], centre[:n], float(centre[n]), known)

    def _made(
        self,
        columns: Floats,
        target: Floats,
        means: Floats,
        mean: float,
        products: Callable[[int], Floats] | None,
    ) -> Condensed:
        few = self._shards.with_matrix(np.asfortranarray(columns))
        few.finite = True
        return Condensed(few, SquaredError(target), means, mean, products)

    def _products_of(self, rows: Rows) -> FoldProducts | None:
        """Of some rows, if columns are few enough for all products with each other."""
        rest, (d, n) = self._without(rows), self._shards.matrix.shape
        if rest is None or n > WIDE * d:
            return None
        left_out, weights = self._weighted(rest), self._all.sample_weight
        if self._all.fit_intercept and len(rest):  # the mean is another one without them
            counts = np.ones(d) if weights is None else weights
            sums = np.sqrt(counts[rest]) @ left_out
            left_out = np.vstack([left_out, sums / np.sqrt(counts[rows].sum())])
        return FoldProducts(self._gram, left_out)

    def _weighted(self, rows: Rows) -> Floats:
        """Columns less the means of all rows, times the roots of weights."""
        weights = self._all.sample_weight
        columns: Floats = self._shards.matrix[rows] - self._centre[:-1]
        return columns if weights is None else columns * np.sqrt(weights[rows])[:, None]

    @cached_property
    def _gram(self) -> Floats:
        """The products of all rows."""
        columns = self._weighted(np.arange(self._all.d))
        gram: Floats = columns.T @ columns
        return gram

    @cached_property
    def _centre(self) -> Floats:
        """The mean of all rows, from which sums are taken lest rounding count."""
        X, objective = self._shards.matrix, self._all
        centre = np.zeros(X.shape[1] + 1)
        if objective.fit_intercept:
            weights = objective.sample_weight
            shares = np.ones(len(X)) if weights is None else weights
            shares = shares / shares.sum()
            centre[:-1], centre[-1] = shares @ X, shares @ objective.y
        return centre

    @cached_property
    def _whole(self) -> Moments:
        return self._added(np.arange(self._all.d))

    def _moments_of(self, rows: Rows) -> Moments:
        """Of some rows: by those that are left out, if these are fewer."""
        rest = self._without(rows)
        if rest is None:
            return self._added(rows)
        return self._whole.less(self._added(rest)) if len(rest) else self._whole

    def _without(self, rows: Rows) -> Rows | None:
        """All other rows, unless one of these is there twice."""
        out = np.ones(self._all.d, dtype=bool)
        out[rows] = False
        rest: Rows = out.nonzero()[0]
        return rest if len(rest) + len(rows) == self._all.d else None

    def _added(self, rows: Rows) -> Moments:
        X, y, weights = self._shards.matrix, self._all.y, self._all.sample_weight
        side = len(self._centre)
        mass, sums, products = 0.0, np.zeros(side), np.zeros((side, side))
        step = max(AT_ONCE // side, 1)
        for part in (rows[start : start + step] for start in range(0, len(rows), step)):
            block = np.column_stack([X[part], y[part]]) - self._centre
            if weights is None:
                mass += len(part)
                sums += block.sum(axis=0)
            else:
                mass += weights[part].sum()
                sums += weights[part] @ block
                block *= np.sqrt(weights[part])[:, None]
            products += block.T @ block
        return Moments(mass, sums, products)


def condensable(shards: Shards, objective: Any) -> Tables | None:
    """The tables of folds, if they are of numbers that are all here, with one target."""
    if not (isinstance(shards, SplitShards) and isinstance(objective, SquaredError)):
        return None
    dense = isinstance(shards.matrix, np.ndarray)
    return Tables(shards, objective) if dense and objective.y.ndim == 1 else None
