"""Least squares on a tall table, condensed: as many rows as it has columns say all that it says.

Where R is the triangular factor of the centred columns and the target, ||y - X w - b||^2 at the
best b is ||R (w, -1)||^2. To find R takes one product of the columns with each other; then a path
of many radii reads no long column again. Values and gaps are those of the table, but for rounding:
where that could matter, because columns nearly depend on each other or hardly anything is left
unexplained, nothing is condensed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from atomcast.data._split import SplitShards
from atomcast.data.shards import Shards
from atomcast.objectives import SquaredError

Floats = NDArray[np.float64]

#: Of no more columns, products with each other are worth it, if there are so many times the rows.
MOST_COLUMNS, TALL = 500, 4
#: What a column, or the target, keeps of its square beside the others, at least.
CLEAR = 1e-4
#: Of so many numbers at a time a centred copy is made.
AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Condensed:
    """A table with few rows whose least squares are those of a tall one.

    Parameters
    ----------
    shards : SplitShards
    objective : SquaredError
        Without an intercept, which `intercept` knows.
    means, mean : array of shape (n_features,), float
        Of the columns of the tall table, and of its target; zero without an intercept.
    """

    shards: SplitShards
    objective: SquaredError
    means: Floats
    mean: float

    def intercept(self, coef: Floats) -> float:
        """The constant that goes with coefficients."""
        return self.mean - float(self.means @ coef)


def condensed(shards: Shards, rows: NDArray[np.int64], objective: Any) -> Condensed | None:
    """Some rows of a table, whose target the objective has, if it is a tall one of one target."""
    if not (isinstance(shards, SplitShards) and isinstance(objective, SquaredError)):
        return None
    X, d = shards.matrix, objective.d
    if not isinstance(X, np.ndarray) or objective.y.ndim > 1:
        return None
    n = X.shape[1]
    if n > MOST_COLUMNS or d < TALL * n:
        return None
    weights = np.ones(d) if objective.sample_weight is None else objective.sample_weight
    shares = weights / weights.sum() * float(objective.fit_intercept)
    centre, products = np.zeros(n + 1), np.zeros((n + 1, n + 1))
    step = max(AT_ONCE // (n + 1), 1)
    parts = [slice(start, start + step) for start in range(0, d, step)]
    for part in parts if objective.fit_intercept else []:
        centre[:n] += shares[part] @ X[rows[part]]
    centre[n] = shares @ objective.y
    for part in parts:
        block = np.column_stack([X[rows[part]], objective.y[part]]) - centre
        block *= np.sqrt(weights[part])[:, None]
        products += block.T @ block
    squares = products.diagonal().copy()
    factor, failed = dpotrf(products, clean=True)
    if failed or np.any(factor.diagonal() ** 2 <= CLEAR * squares):
        return None
    few = shards.with_matrix(np.asfortranarray(factor[:, :n]))
    few.finite = True
    return Condensed(few, SquaredError(factor[:, n]), centre[:n], float(centre[n]))
