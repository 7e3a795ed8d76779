"""Lasso regression with features spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import MultiOutputMixin, RegressorMixin

from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain, L1Ball, SolidSimplex
from atomcast.estimators.inputs import features_and_target
from atomcast.estimators.radial import BallModel, RadialModel
from atomcast.loop.result import Result
from atomcast.objectives import SquaredError
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.problems.features import targets_problem
from atomcast.problems.problem import Problem


class LeastSquares(RegressorMixin, RadialModel):  # type: ignore[misc]
    """What regressors by least squares have in common."""

    intercept_: float
    fit_intercept: bool

    strength_is = "alpha"

    def _to_penalty(self, strength: float, objective: SquaredError) -> float:
        return 2.0 * objective.total * strength

    def _to_strength(self, penalty: float, objective: SquaredError) -> float:
        return penalty / (2.0 * objective.total)

    def _target(self, X: Any, y: Any) -> tuple[Shards, NDArray[np.float64], Any]:
        return features_and_target(self, X, y, self.cluster)

    def _loss(
        self, target: Any, sample_weight: Any = None, rows: Any = slice(None)
    ) -> SquaredError:
        if sample_weight is not None:
            sample_weight = checked_sample_weight(sample_weight, len(target))[rows]
        return SquaredError(target[rows], self.fit_intercept, sample_weight)


class SparseLinearModel(LeastSquares):
    """The same with a coefficient for each feature."""

    coef_: NDArray[np.float64]
    positive: bool = False

    def _within(self, beta: float) -> Domain:
        return SolidSimplex(beta) if self.positive else L1Ball(beta)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target, shape (n_samples,) or (n_samples, n_targets); X as for `fit`."""
        return self._scores(X)

    @property
    def sparse_coef_(self) -> sparse.csr_array:
        """The coefficients as sparse rows, shape (n_targets, n_features)."""
        return sparse.csr_array(np.atleast_2d(self.coef_))


class TargetsModel(MultiOutputMixin, SparseLinearModel):  # type: ignore[misc]
    """The same for one or more targets, whose weights share a ball."""

    def _target(self, X: Any, y: Any) -> tuple[Shards, NDArray[np.float64], Any]:
        shards, y, cluster = features_and_target(self, X, y, self.cluster, multi_output=True)
        return shards, y[:, 0] if y.ndim > 1 and y.shape[1] == 1 else y, cluster

    def _problem(self, objective: Any, domain: Domain) -> Problem:
        if objective.y.ndim > 1:
            return targets_problem(objective, domain)
        return super()._problem(objective, domain)

    def _coefficients(self, result: Result, objective: Any) -> NDArray[np.float64]:
        if objective.y.ndim > 1:
            return np.ascontiguousarray(result.weights.reshape(-1, objective.classes).T)
        return result.weights


@dataclass(eq=False, repr=False)
class Lasso(BallModel, TargetsModel):
    """Least squares with an l1 constraint, for features that are spread over a network.

    Minimises ``||y - X w - b||^2`` subject to ``||w||_1 <= beta`` by distributed Frank-Wolfe:
    every node keeps its own features, and only the features that the model needs are broadcast.
    Or, with `alpha`, minimises ``||y - X w - b||^2 / (2 n) + alpha * ||w||_1`` over all weights, as
    scikit-learn does: that is the ball of the radius `beta_`, which is found. Several targets, the
    columns of y, are fitted together, with the norm of all their weights: a feature is broadcast
    once and then serves every target.

    Parameters
    ----------
    beta : float, optional
        Radius of the l1 ball: the larger, the more features.
    alpha : float, optional
        Instead of beta: the penalty, as in scikit-learn. Without either, it is a tenth of the
        least penalty that leaves no feature, whatever the units of the data, and a warning says so.
    fit_intercept : bool, default=True
        Whether to fit an unconstrained constant b. Sparse data stays sparse.
    positive : bool, default=False
        Whether no coefficient may be negative.
    warm_start : bool, default=False
        Whether to start from the solution of the fit before, if it had as many features: its
        features are then broadcast at once. On clusters other than `LocalCluster`, and on networks
        that lose messages, fits start from nothing.
    cluster : None, int or cluster, default=None
        Where the features are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step to a relative gap of 1e-4, a str names a step.
    tol : float, optional
        The relative gap to reach, instead of that of the solver.
    max_rounds : int, optional
        The rounds after which to stop anyway, instead of those of the solver; with alpha, for each
        ball that is tried.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    beta_, alpha_ : float
        The radius and the penalty that have this solution.
    result_ : Result
        Objective, certified gap, trace, and the ledger of what was sent.
    dual_gap_ : float
        A bound on how far the objective is from its optimum.
    n_iter_ : int
        Rounds taken.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomcast import Lasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Lasso(beta=1000.0, cluster=5).fit(X, y)
    >>> model.result_.status
    'optimal'
    """

    _: KW_ONLY
    alpha: float | None = None
    positive: bool = False
    warm_start: bool = False  # type: ignore[misc]
