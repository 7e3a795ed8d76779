"""Probabilities from decisions: a sigmoid for each, fitted by cross-validation (Platt)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from atomcast.checkpoint import Checkpoint
from atomcast.data.shards import Shards
from atomcast.solver import Solver

Floats = NDArray[np.float64]


def fitted_sigmoids(estimator: Any, X: Any, y: Any, solver: Solver) -> Floats:
    """Fit sigmoids to the decisions of cross-validated copies, as scikit-learn does.

    Returns
    -------
    array of shape (n_decisions, 2)
        The a and b of each probability 1 / (1 + exp(a * decision + b)).
    """
    from sklearn.calibration import CalibratedClassifierCV

    if isinstance(X, Shards):
        raise ValueError(
            "probability=True needs all examples in one place to cross-validate: pass arrays, "
            "or use probability=False with Shards"
        )
    folds = int(min(5, np.unique(y, return_counts=True)[1].min()))
    if folds < 2:
        raise ValueError(
            "probability=True needs at least two examples of every class to cross-validate"
        )
    # A checkpoint is one of the fit to all examples, not of these.
    watchers = [watch for watch in solver.callbacks if not isinstance(watch, Checkpoint)]
    solver = replace(solver, callbacks=watchers, resume=None)
    plain = clone(estimator).set_params(probability=False, solver=solver)
    calibrated = CalibratedClassifierCV(plain, ensemble=False, cv=folds).fit(X, y)
    sigmoids = calibrated.calibrated_classifiers_[0].calibrators
    return np.array([[sigmoid.a_, sigmoid.b_] for sigmoid in sigmoids], dtype=np.float64)


def probabilities(decisions: Floats, sigmoids: Floats) -> Floats:
    """The probability of each class, shape (n, n_classes), from decisions of shape (n, 1 or T)."""
    slopes, offsets = sigmoids.T
    each = expit(-(slopes * decisions + offsets))
    if each.shape[1] == 1:
        return np.column_stack([1.0 - each, each])
    total = each.sum(axis=1, keepdims=True)
    even = np.full_like(each, 1.0 / each.shape[1])
    return np.divide(each, total, out=even, where=total > 0)
