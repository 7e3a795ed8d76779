"""Lasso with the radius chosen by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import check_cv

from atomcast.cluster.mpi_shards import RankShards
from atomcast.data._split import SplitShards
from atomcast.data.shards import Shard, Shards
from atomcast.estimators.inputs import features_and_target
from atomcast.estimators.lasso import SparseLinearModel, warn_unless_converged
from atomcast.estimators.lasso_path import checked_betas, default_betas, results_along
from atomcast.network.ledger import Ledger
from atomcast.objectives import SquaredError
from atomcast.solver import Solver, as_solver

Floats = NDArray[np.float64]


class LassoCV(SparseLinearModel):
    """Lasso along a path of radii, of which cross-validation picks one.

    Parameters
    ----------
    betas : array of shape (n_betas,), optional
        The radii to try; by default found from the data.
    n_betas : int, default=30
        How many, if they are found from the data.
    cv : int, cross-validation generator or iterable, default=5
    fit_intercept, cluster, solver
        As for `Lasso`.

    Attributes
    ----------
    beta_ : float
        The radius chosen.
    betas_ : array of shape (n_betas,)
    mse_path_ : array of shape (n_betas, n_folds)
        Mean squared error on the held-out rows.
    ledgers_ : list of Ledger
        What was sent to find the radii (if they were not given) and for each fold; `result_` has
        the ledger of the model itself. The predictions for held-out rows, which the nodes add up,
        are not in it.
    coef_, intercept_, result_, dual_gap_, n_iter_
        Of the model refitted on all rows, as for `Lasso`.
    """

    def __init__(
        self,
        betas: ArrayLike | None = None,
        *,
        n_betas: int = 30,
        cv: Any = 5,
        fit_intercept: bool = True,
        cluster: Any = None,
        solver: str | Solver | None = None,
    ) -> None:
        self.betas = betas
        self.n_betas = n_betas
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.cluster = cluster
        self.solver = solver

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the radius and fit the model; parameters as for `Lasso.fit`."""
        solver = as_solver(self.solver)
        shards, y, cluster = features_and_target(self, X, y, self.cluster)
        objective = SquaredError(y, self.fit_intercept)
        betas = self.betas
        self.ledgers_: list[Ledger] = []
        if betas is None:
            betas = default_betas(shards, objective, self.n_betas, cluster, self.ledgers_)
        self.betas_ = checked_betas(betas)
        folds = list(check_cv(self.cv).split(np.zeros((len(y), 1)), y))
        errors = [self._errors(shards, y, train, test, cluster, solver) for train, test in folds]
        self.mse_path_ = np.column_stack(errors)
        best = int(np.argmin(self.mse_path_.mean(axis=1)))
        self.beta_ = float(self.betas_[best])
        *_, result = results_along(shards, objective, self.betas_[: best + 1], cluster, solver)
        self._keep(result, objective)
        warn_unless_converged(result, solver)
        return self

    def _errors(
        self,
        shards: Shards,
        y: Floats,
        train: NDArray[np.int64],
        test: NDArray[np.int64],
        cluster: Any,
        solver: Solver,
    ) -> Floats:
        """The mean squared error on the test rows for each radius."""
        objective = SquaredError(y[train], self.fit_intercept)
        errors, held_out = [], HeldOut(shards, test, cluster)
        rows = rows_of(shards, train)
        for result in results_along(rows, objective, self.betas_, cluster, solver):
            predicted = held_out.predicted(result.weights)
            predicted += objective.intercept(np.asarray(result.image))
            errors.append(float(np.mean((y[test] - predicted) ** 2)))
        self.ledgers_.append(result.ledger)
        return np.array(errors)


class HeldOut:
    """Some rows of all shards, to predict; where ranks hold a part each, they add up theirs."""

    def __init__(self, shards: Shards, rows: NDArray[np.int64], cluster: Any) -> None:
        own: Any = range(shards.nodes)
        self._sum_over_ranks = None
        if isinstance(shards, RankShards):
            own, self._sum_over_ranks = [shards.rank], cluster.total
        held = [shards.shard(i) for i in own]
        self._parts = [(shard.ids, shard.matrix[rows]) for shard in held]
        self._rows = len(rows)

    def predicted(self, coef: Floats) -> Floats:
        """The product X coef, shape (rows,) or (rows, classes)."""
        total = np.zeros((self._rows, *coef.shape[1:]))
        for ids, matrix in self._parts:
            total += matrix @ coef[ids]
        return total if self._sum_over_ranks is None else self._sum_over_ranks(total)


def rows_of(shards: Shards, rows: NDArray[np.int64]) -> Shards:
    """The same shards with only some of their rows."""
    if isinstance(shards, RankShards):
        return shards.with_local(ShardsOfRows(shards.local, rows), len(rows))
    if isinstance(shards, SplitShards):
        matrix = shards.matrix
        if sparse.issparse(matrix):  # not every layout gives out rows
            matrix = matrix.tocsr()
        return shards.with_matrix(matrix[rows])
    return ShardsOfRows(shards, rows)


class ShardsOfRows(Shards):
    """A selection of the rows of shards that are not in one piece."""

    kind = "files"

    def __init__(self, shards: Shards, rows: NDArray[np.int64]) -> None:
        self._shards = shards
        self._rows = rows

    @property
    def nodes(self) -> int:
        """As many nodes as before."""
        return self._shards.nodes

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        """The same names as before."""
        return self._shards.column_names(axis)

    def count(self, axis: int = 1) -> int:
        """As many atoms as before."""
        return self._shards.count(axis)

    def rows(self, axis: int = 1) -> int:
        """How many rows were selected."""
        return len(self._rows)

    def assignment(self, axis: int = 1) -> NDArray[np.int64]:
        """The same owners as before."""
        return self._shards.assignment(axis)

    def shard(self, i: int, axis: int = 1) -> Shard:
        """The selected rows of a node's shard."""
        shard = self._shards.shard(i, axis)
        return replace(shard, matrix=shard.matrix[self._rows])
