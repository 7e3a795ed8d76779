"""Sparse logistic regression with the radius chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.model_selection import check_cv

from atomcast.estimators.held_out import Floats, Fold
from atomcast.estimators.logistic_regression import SparseLogisticModel
from atomcast.estimators.path_cv import PathCV


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
    scoring : str or callable, optional
        What to choose the radius by, as scikit-learn knows it; default: the logistic loss.
    fit_intercept, class_weight, cluster, solver, tol, max_rounds
        As for `SparseLogisticRegression`.

    Attributes
    ----------
    beta_, C_ : float
        The radius chosen, and the penalty that has its solution.
    betas_ : array of shape (n_betas,)
    loss_path_ : array of shape (n_betas, n_folds)
        Mean logistic loss on the held-out rows.
    scores_ : array of shape (n_folds, n_betas)
        What the radius was chosen by: `scoring`, or minus the logistic loss.
    coefs_paths_ : array of shape (n_folds, n_betas, 1 or n_classes, n_features + 1)
        Coefficients of every fold and radius, then intercepts.
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

    _losses_are = "loss_path_"

    def _folds(self, target: Any) -> list[Fold]:
        folds = list(check_cv(self.cv, target, classifier=True).split(target, target))
        for train, _ in folds:
            if len(np.unique(target[train])) < len(self.classes_):
                raise ValueError(
                    f"a fold of cv={self.cv!r} leaves a class without training examples: use fewer "
                    "folds, or drop the classes with the fewest examples"
                )
        return folds

    def _held_out_losses(self, target: Any, predicted: Floats) -> Floats:
        """The logistic losses of one score, or of one for each class."""
        if predicted.shape[2] == 1:
            return np.logaddexp(0.0, (1.0 - 2.0 * target[:, None]) * predicted[..., 0])
        chosen = predicted[np.arange(len(target)), :, target]
        losses: Floats = logsumexp(predicted, axis=2) - chosen
        return losses

    def _labels(self, target: Any) -> Any:
        return self.classes_[target]
