"""Lasso with the radius chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from atomcast.estimators.held_out import Floats, Fold
from atomcast.estimators.lasso import TargetsModel
from atomcast.estimators.path_cv import PathCV


@dataclass(eq=False, repr=False)
class LassoCV(PathCV, TargetsModel):
    """Lasso along a path of radii, of which cross-validation picks one.

    Several targets, the columns of y, share one ball as in `Lasso`, and so one radius: the one with
    the least squared error in the mean over all of them.

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
    scoring : str or callable, optional
        What to choose the radius by, as scikit-learn knows it; default: the mean squared error.
    fit_intercept, positive, cluster, solver, tol, max_rounds
        As for `Lasso`.

    Attributes
    ----------
    beta_, alpha_ : float
        The radius chosen, and the penalty that has its solution.
    betas_ : array of shape (n_betas,)
    mse_path_ : array of shape (n_betas, n_folds)
        Mean squared error on the held-out rows, over all targets.
    scores_ : array of shape (n_folds, n_betas)
        What the radius was chosen by: `scoring`, or minus the mean squared error.
    coefs_paths_ : array of shape (n_folds, n_betas, n_targets, n_features + 1)
        Coefficients of every fold and radius, then intercepts.
    ledgers_ : list of Ledger
        What was sent to find the radii (if they were not given) and for each fold, predictions
        for held-out rows included, by this process if an earlier one was resumed; the ledger of
        `result_` has all that and the fit to all rows.
    coef_, intercept_, result_, dual_gap_, n_iter_
        Of the model refitted on all rows, as for `Lasso`.
    """

    _: KW_ONLY
    positive: bool = False

    _losses_are = "mse_path_"

    def _folds(self, target: Any) -> list[Fold]:
        return list(check_cv(self.cv).split(np.zeros((len(target), 1)), target))

    def _held_out_losses(self, target: Any, predicted: Floats) -> Floats:
        squares: Floats = (target.reshape(len(target), 1, -1) - predicted) ** 2
        return squares.mean(axis=2)
