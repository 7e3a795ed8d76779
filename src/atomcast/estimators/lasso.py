"""Lasso regression with features spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import RegressorMixin

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.estimators.inputs import features_and_target
from atomcast.estimators.linear import LinearModel
from atomcast.objectives import SquaredError


class SparseLinearModel(RegressorMixin, LinearModel):  # type: ignore[misc]
    """What regressors by least squares have in common."""

    coef_: NDArray[np.float64]
    intercept_: float
    fit_intercept: bool

    def _target(self, X: Any, y: Any) -> tuple[Shards, NDArray[np.float64], Any]:
        return features_and_target(self, X, y, self.cluster)

    def _loss(self, target: Any, rows: Any = slice(None)) -> SquaredError:
        return SquaredError(target[rows], self.fit_intercept)

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
class Lasso(SparseLinearModel):
    """Least squares with an l1 constraint, for features that are spread over a network.

    Minimises ``||y - X w - b||^2`` subject to ``||w||_1 <= beta`` by distributed Frank-Wolfe:
    every node keeps its own features, and only the features that the model needs are broadcast.

    Parameters
    ----------
    beta : float, default=1.0
        Radius of the l1 ball: the larger, the more features.
    fit_intercept : bool, default=True
        Whether to fit an unconstrained constant b. Sparse data stays sparse.
    cluster : None, int or cluster, default=None
        Where the features are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step to a relative gap of 1e-4, a str names a step.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
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

    beta: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True

    def _domain(self) -> L1Ball:
        return L1Ball(self.beta)
