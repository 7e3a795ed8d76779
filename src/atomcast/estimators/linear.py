"""What linear models have in common: how they are solved, and what a fit leaves behind."""

from __future__ import annotations

from typing import Any

from atomcast.data.shards import Shards
from atomcast.estimators.solving import SolvedEstimator, warn_unless_converged
from atomcast.loop.result import Result
from atomcast.loop.session import Cluster
from atomcast.loop.solver import Solver
from atomcast.objectives import Objective
from atomcast.problems.problem import Problem


class LinearModel(SolvedEstimator):
    """An estimator with a coefficient for each feature, which takes sparse data."""

    coef_: Any
    intercept_: Any
    result_: Result
    n_features_in_: int

    def _solve(
        self, solver: Solver, problem: Problem, objective: Objective, shards: Shards, where: Cluster
    ) -> None:
        """Fit, and warn, as scikit-learn does, if the tolerance was not reached."""
        result = solver.solve(problem, shards, where)
        self._keep(result, objective)
        warn_unless_converged(result, solver, stacklevel=4)

    def _keep(self, result: Result, objective: Objective) -> None:
        """Take the fitted attributes from a result."""
        assert result.image is not None
        self.result_ = result
        self.coef_ = self._coefficients(result, objective)
        self.intercept_ = objective.intercept(result.image)
        self.dual_gap_ = result.gap
        self.n_iter_ = result.rounds

    def _coefficients(self, result: Result, objective: Objective) -> Any:
        """The coefficients of a result, shape (n_features,) unless there are more classes."""
        return result.weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
