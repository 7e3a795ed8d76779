"""Sparse logistic regression with the radius chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.model_selection import check_cv

from atomcast.domains.base import L1Ball
from atomcast.estimators.inputs import features_and_classes
from atomcast.estimators.logistic import (
    SparseLogisticModel,
    coefficients,
    example_weights,
    logistic_objective,
    logistic_problem,
)
from atomcast.estimators.path_cv import Floats, PathCV, Rows
from atomcast.loop.result import Result
from atomcast.objectives import Logistic, Multinomial
from atomcast.problems.problem import Problem


@dataclass(eq=False, repr=False)
class SparseLogisticRegressionCV(PathCV, SparseLogisticModel):
    """Sparse logistic regression along a path of radii, of which cross-validation picks one.

    Radii are fitted in rising order, each from the solution before: no feature is sent twice.

    Parameters
    ----------
    betas : array of shape (n_betas,), optional
        The radii to try; by default those of the penalised path, from an empty model to the
        solution at 1/1000 of the penalty that leaves it empty.
    n_betas : int, default=20
        How many, if they are found from the data; more are tried while the loss falls.
    cv : int, cross-validation generator or iterable, default=5
        An int means so many stratified folds.
    n_jobs : int, optional
        As for `LassoCV`.
    fit_intercept, class_weight, cluster, solver
        As for `SparseLogisticRegression`.

    Attributes
    ----------
    beta_ : float
        The radius chosen.
    betas_ : array of shape (n_betas,)
    loss_path_ : array of shape (n_betas, n_folds)
        Mean logistic loss on the held-out rows.
    ledgers_ : list of Ledger
        What was sent to find the radii (if they were not given) and for each fold, predictions
        included, by this process if an earlier one was resumed; the ledger of `result_` has all
        that and the fit to all rows.
    classes_, coef_, intercept_, result_, dual_gap_, n_iter_
        Of the model refitted on all rows, as for `SparseLogisticRegression`.
    """

    _: KW_ONLY
    n_betas: int = 20
    class_weight: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the radius and fit the model; parameters as for `SparseLogisticRegression`."""
        solver = self._solver()
        shards, numbers, cluster = features_and_classes(self, X, y, self.cluster)
        folds = list(check_cv(self.cv, numbers, classifier=True).split(numbers, numbers))
        for train, _ in folds:
            if len(np.unique(numbers[train])) < len(self.classes_):
                raise ValueError(
                    f"a fold of cv={self.cv!r} leaves a class without training examples: use fewer "
                    "folds, or drop the classes with the fewest examples"
                )
        weights = example_weights(self.class_weight, self.classes_, numbers)
        task = Logistics(numbers, self.fit_intercept, weights)
        self.loss_path_ = self._choose(task, folds, shards, cluster, solver)
        return self


@dataclass(frozen=True)
class Logistics:
    """Logistic regression along a path; a `Task`."""

    numbers: Rows
    fit_intercept: bool
    weights: Floats | None

    def objective(self, rows: Rows | slice) -> Logistic | Multinomial:
        """The logistic loss of some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return logistic_objective(self.numbers[rows], self.fit_intercept, weights)

    def problem(self, objective: Any, beta: float) -> Problem:
        """The l1 ball of a radius."""
        return logistic_problem(objective, L1Ball(beta))

    def coefficients(self, result: Result, objective: Any) -> Floats:
        """The coefficients, shape (n_features, 1 or n_classes)."""
        return coefficients(result, objective).T

    def loss(self, predicted: Floats, rows: Rows) -> float:
        """The mean logistic loss."""
        return mean_loss(predicted, self.numbers[rows])


def mean_loss(scores: Floats, numbers: Rows) -> float:
    """The mean logistic loss of scores of shape (n, 1) or (n, n_classes)."""
    if scores.shape[1] == 1:
        return float(np.mean(np.logaddexp(0.0, (1.0 - 2.0 * numbers) * scores[:, 0])))
    chosen = scores[np.arange(len(numbers)), numbers]
    return float(np.mean(logsumexp(scores, axis=1) - chosen))
