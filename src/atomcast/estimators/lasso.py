"""Lasso regression with features spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import RegressorMixin

from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain, L1Ball, SolidSimplex
from atomcast.estimators.inputs import features_and_target
from atomcast.estimators.radial import BallModel, RadialModel
from atomcast.objectives import SquaredError
from atomcast.objectives.sample_weights import checked_sample_weight


class SparseLinearModel(RegressorMixin, RadialModel):  # type: ignore[misc]
    """What regressors by least squares have in common."""

    coef_: NDArray[np.float64]
    intercept_: float
    fit_intercept: bool
    positive: bool = False

    strength_is = "alpha"

    def _to_penalty(self, strength: float, objective: SquaredError) -> float:
        return 2.0 * objective.total * strength

    def _to_strength(self, penalty: float, objective: SquaredError) -> float:
        return penalty / (2.0 * objective.total)

    def _within(self, beta: float) -> Domain:
        return SolidSimplex(beta) if self.positive else L1Ball(beta)

    def _target(self, X: Any, y: Any) -> tuple[Shards, NDArray[np.float64], Any]:
        return features_and_target(self, X, y, self.cluster)

    def _loss(
        self, target: Any, sample_weight: Any = None, rows: Any = slice(None)
    ) -> SquaredError:
        if sample_weight is not None:
            sample_weight = checked_sample_weight(sample_weight, len(target))[rows]
        return SquaredError(target[rows], self.fit_intercept, sample_weight)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._scores(X)

    @property
    def sparse_coef_(self) -> sparse.csr_array:
        """The coefficients as a sparse row, shape (1, n_features)."""
        return sparse.csr_array(self.coef_[np.newaxis, :])


@dataclass(eq=False, repr=False)
class Lasso(BallModel, SparseLinearModel):
    """Least squares with an l1 constraint, for features that are spread over a network.

    Minimises ``||y - X w - b||^2`` subject to ``||w||_1 <= beta`` by distributed Frank-Wolfe:
    every node keeps its own features, and only the features that the model needs are broadcast.
    Or, with `alpha`, minimises ``||y - X w - b||^2 / (2 n) + alpha * ||w||_1`` over all weights, as
    scikit-learn does: that is the ball of the radius `beta_`, which is found.

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
    coef_ : array of shape (n_features,)
    intercept_ : float
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
