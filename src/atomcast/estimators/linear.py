"""What linear models have in common: a loss, a set of weights, and what a fit leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain
from atomcast.estimators.inputs import linear_prediction
from atomcast.estimators.solving import Posed, SolvedEstimator
from atomcast.loop.result import Result
from atomcast.objectives import Objective
from atomcast.problems.features import explicit_problem
from atomcast.problems.problem import Problem


class LinearModel(SolvedEstimator):
    """An estimator with a coefficient for each feature: a loss and a domain make one."""

    coef_: Any
    intercept_: Any
    n_features_in_: int

    def _pose(self, X: Any, y: Any, sample_weight: Any = None) -> Posed:
        domain = self._domain()
        objective, shards, cluster = self._objective(X, y, sample_weight)
        return Posed(objective, self._problem(objective, domain), shards, cluster)

    def _domain(self) -> Domain:
        """The set that the weights live in."""
        raise NotImplementedError

    def _objective(self, X: Any, y: Any, sample_weight: Any) -> tuple[Objective, Shards, Any]:
        """Check the data; returns the loss for its target, the features and the cluster."""
        shards, target, cluster = self._target(X, y)
        return self._loss(target, sample_weight), shards, cluster

    def _target(self, X: Any, y: Any) -> tuple[Shards, NDArray[Any], Any]:
        """Check the data; returns the features, the target in the form of `_loss`, the cluster."""
        raise NotImplementedError

    def _loss(self, target: Any, sample_weight: Any = None, rows: Any = slice(None)) -> Objective:
        """The loss over some of the rows of a target, which count as their weights say."""
        raise NotImplementedError

    def _problem(self, objective: Any, domain: Domain) -> Problem:
        """The problem that goes with a loss."""
        return explicit_problem(objective, domain)

    def _keep(self, result: Result, objective: Any) -> None:
        assert result.image is not None
        super()._keep(result, objective)
        self.coef_ = self._coefficients(result, objective)
        self.intercept_ = objective.intercept(result.image)

    def _coefficients(self, result: Result, objective: Any) -> Any:
        """The coefficients of a result, shape (n_features,) unless there are more classes."""
        return result.weights

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """The linear predictions, shape (n_samples,) unless coefficients have rows."""
        check_is_fitted(self)
        return linear_prediction(self, X, self.coef_.T) + self.intercept_
