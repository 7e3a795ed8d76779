"""Lasso with the radius chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.model_selection import check_cv

from atomcast.domains.base import L1Ball
from atomcast.estimators.inputs import features_and_target
from atomcast.estimators.lasso import SparseLinearModel
from atomcast.estimators.path_cv import Floats, PathCV, Rows
from atomcast.loop.result import Result
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.problems.problem import Problem


class LassoCV(PathCV, SparseLinearModel):
    """Lasso along a path of radii, of which cross-validation picks one.

    Parameters
    ----------
    betas : array of shape (n_betas,), optional
        The radii to try; by default those of the penalised path, from an empty model to the
        solution at 1/1000 of the penalty that leaves it empty, as in scikit-learn.
    n_betas : int, default=30
        How many, if they are found from the data; more are tried while the error falls.
    cv : int, cross-validation generator or iterable, default=5
    n_jobs : int, optional
        How many folds to fit at a time, each in a process of this machine, for a `LocalCluster`;
        -1: as many as there are cores; default: one after the other.
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
        What was sent to find the radii (if they were not given) and for each fold, predictions
        for held-out rows included, by this process if an earlier one was resumed; the ledger of
        `result_` has all that and the fit to all rows.
    coef_, intercept_, result_, dual_gap_, n_iter_
        Of the model refitted on all rows, as for `Lasso`.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the radius and fit the model; parameters as for `Lasso.fit`."""
        solver = self._solver()
        shards, y, cluster = features_and_target(self, X, y, self.cluster)
        folds = list(check_cv(self.cv).split(np.zeros((len(y), 1)), y))
        task = LeastSquares(y, self.fit_intercept)
        self.mse_path_ = self._choose(task, folds, shards, cluster, solver)
        return self


@dataclass(frozen=True)
class LeastSquares:
    """Least squares along a path; a `Task`."""

    y: Floats
    fit_intercept: bool

    def objective(self, rows: Rows | slice) -> SquaredError:
        """The squared error of some of the rows."""
        return SquaredError(self.y[rows], self.fit_intercept)

    def problem(self, objective: Any, beta: float) -> Problem:
        """The l1 ball of a radius."""
        return explicit_problem(objective, L1Ball(beta))

    def coefficients(self, result: Result, objective: Any) -> Floats:
        """The weights, shape (n_features,)."""
        return result.weights

    def loss(self, predicted: Floats, rows: Rows) -> float:
        """The mean squared error."""
        return float(np.mean((self.y[rows] - predicted) ** 2))
