"""Boosting for regression: a sum of decision stumps, within a ball, spread over a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain, SolidSimplex
from atomcast.estimators.base_classifiers import (
    CountsEstimators,
    StumpClassifier,
    features_for,
    stump_problem,
    stump_votes,
)
from atomcast.estimators.inputs import features_and_target, rows_that_count
from atomcast.estimators.lasso import LeastSquares
from atomcast.estimators.radial import BallModel
from atomcast.estimators.solving import SolvedEstimator
from atomcast.loop.result import Result
from atomcast.objectives import Objective
from atomcast.problems.problem import Problem

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class L1BoostRegressor(CountsEstimators, BallModel, LeastSquares):
    """The best sum of decision stumps over features that are spread over a network.

    Minimises ``||y - sum_j w_j h_j(x) - b||^2`` subject to ``||w||_1 <= beta``, or with the penalty
    `alpha` as `Lasso` does, over all decision stumps h_j, which say 1 or -1. Each node finds the
    best stump over its own features exactly, so that the gap is one over all stumps there are.

    Parameters
    ----------
    beta : float, optional
        Bound on the sum of weights: the larger, the closer the fit, and the more stumps.
    n_estimators : int, optional
        The most stumps to combine, of which one joins a round; needs beta.
    alpha, fit_intercept, cluster, solver, tol, max_rounds
        As for `Lasso`.

    Attributes
    ----------
    estimator_weights_ : array of shape (n,)
        The weights that are not zero.
    stumps_ : array of shape (n, 4)
        Feature, threshold, what is said above it, what if it is missing.
    n_estimators_ : int
    intercept_ : float
    beta_, alpha_, result_, dual_gap_, n_iter_
        As for `Lasso`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomcast import L1BoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = L1BoostRegressor(beta=100.0, cluster=5).fit(X, y)
    >>> model.result_.status
    'optimal'
    """

    _: KW_ONLY
    alpha: float | None = None
    n_estimators: int | None = None

    def _check_beta(self) -> None:
        super()._check_beta()
        if self.n_estimators is not None and self.beta is None:
            raise ValueError(
                f"n_estimators={self.n_estimators!r} is for one ball, but several are tried for "
                "the radius of a penalty: give beta, or leave n_estimators out"
            )

    def _target(self, X: Any, y: Any) -> tuple[Shards, Floats, Any]:
        return features_and_target(self, X, y, self.cluster, **features_for("stumps"))

    def _objective(self, X: Any, y: Any, sample_weight: Any) -> tuple[Objective, Shards, Any]:
        shards, target, cluster = self._target(X, y)
        # Thresholds lie between values of rows that count.
        shards, target, weights, _ = rows_that_count(shards, target, sample_weight)
        return self._loss(target, weights), shards, cluster

    def _within(self, beta: float) -> Domain:
        return SolidSimplex(beta)  # of every stump there is the opposite one

    def _problem(self, objective: Any, domain: Domain) -> Problem:
        return stump_problem(objective, domain)

    def _keep(self, result: Result, objective: Any) -> None:
        SolvedEstimator._keep(self, result, objective)
        assert result.image is not None
        self.intercept_ = objective.intercept(result.image)
        self.estimator_weights_ = result.atom_weights
        self.stumps_ = result.atom_extras.reshape(-1, 4)
        self.n_estimators_ = len(result.atom_weights)

    @property
    def estimators_(self) -> list[StumpClassifier]:
        """The stumps, which predict 1 or -1, in the order in which they joined."""
        check_is_fitted(self)
        return [StumpClassifier(row, np.array([-1.0, 1.0])) for row in self.stumps_]

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the weights, shape (n_features,)."""
        check_is_fitted(self)
        at = self.stumps_[:, 0].astype(int)
        sums = np.bincount(at, self.estimator_weights_, self.n_features_in_)
        return np.asarray(sums / max(sums.sum(), 1e-300))

    def predict(self, X: Any) -> Floats:
        """Predict the target, shape (n_samples,); X as for `fit`."""
        check_is_fitted(self)
        return stump_votes(self, X, self.stumps_, self.estimator_weights_) + self.intercept_

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """What the first stump predicts, what the first two do, and so on, with final weights."""
        check_is_fitted(self)
        total: Any = self.intercept_
        for k in range(self.n_estimators_):
            one = slice(k, k + 1)
            total = total + stump_votes(self, X, self.stumps_[one], self.estimator_weights_[one])
            yield total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
