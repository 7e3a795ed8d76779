"""Probabilities from decisions: a sigmoid for each, fitted by cross-validation (Platt)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from atomcast.data.shards import Shards
from atomcast.loop.callbacks import State
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.network.joined_ledgers import joined, named
from atomcast.network.ledger import Ledger
from atomcast.storage.checkpoint import Checkpoint

Floats = NDArray[np.float64]


class Ledgers:
    """A callback that keeps the ledger of every run it sees, also of copies of its solver."""

    def __init__(self) -> None:
        self.seen: list[Ledger] = []

    def __call__(self, state: State) -> None:
        """Let the run go on."""

    def finish(self, state: State) -> None:
        """Keep the ledger of a run, or of a path, once."""
        if not any(ledger is state.ledger for ledger in self.seen):
            self.seen.append(state.ledger)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def fitted_sigmoids(
    estimator: Any, X: Any, y: Any, sample_weight: Any, solver: Solver
) -> tuple[Floats, list[Ledger]]:
    """Fit sigmoids to the decisions of cross-validated copies, as scikit-learn does.

    Returns
    -------
    sigmoids : array of shape (n_decisions, 2)
        The a and b of each probability 1 / (1 + exp(a * decision + b)).
    ledgers : list of Ledger
        What was sent to fit the copies.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold

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
    ledgers = Ledgers()
    solver = replace(solver, callbacks=[*watchers, ledgers], resume=None)
    plain = clone(estimator).set_params(probability=False, decision_function_shape="ovr")
    plain.set_params(solver=solver)
    seed = estimator.random_state
    cv = StratifiedKFold(folds, shuffle=seed is not None, random_state=seed)
    calibrated = CalibratedClassifierCV(plain, ensemble=False, cv=cv).fit(X, y, sample_weight)
    sigmoids = calibrated.calibrated_classifiers_[0].calibrators
    fitted = np.array([[sigmoid.a_, sigmoid.b_] for sigmoid in sigmoids], dtype=np.float64)
    return fitted, ledgers.seen


def with_ledgers(result: Result, ledgers: list[Ledger]) -> Result:
    """The result of a fit whose ledger also has what was sent to fit cross-validated copies."""
    return replace(result, ledger=joined([("", result.ledger), *named("calibration", ledgers)]))


def probabilities(decisions: Floats, sigmoids: Floats) -> Floats:
    """The probability of each class, shape (n, n_classes), from decisions of shape (n, 1 or T)."""
    slopes, offsets = sigmoids.T
    each = expit(-(slopes * decisions + offsets))
    if each.shape[1] == 1:
        return np.column_stack([1.0 - each, each])
    total = each.sum(axis=1, keepdims=True)
    even = np.full_like(each, 1.0 / each.shape[1])
    return np.divide(each, total, out=even, where=total > 0)
