"""Regression and classification with groups of features, each group on one node."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast._checks import check_positive
from atomcast.data.grouped import GroupedShards
from atomcast.data.shards import Shards
from atomcast.domains.group_ball import GroupBall, Groups, as_groups, check_whole_groups
from atomcast.estimators.inputs import features_and_classes, features_and_target
from atomcast.estimators.lasso import SparseLinearModel
from atomcast.estimators.logistic import SparseLogisticModel, example_weights
from atomcast.estimators.score_classifier import check_two_classes
from atomcast.loop.solver import Solver
from atomcast.objectives import Logistic, SquaredError
from atomcast.problems.features import group_problem

Floats = NDArray[np.float64]


class GroupLasso(SparseLinearModel):
    """Least squares with a constraint on the norms of groups of features, spread over a network.

    Minimises ``||y - X w - b||^2`` subject to ``sum_g weight_g ||w_g||_2 <= beta``: a group enters
    the model as a whole or not at all. A group lives on one node, and its columns are broadcast
    once, after which everybody can use any combination of them.

    Parameters
    ----------
    beta : float, default=1.0
        Radius of the ball: the larger, the more groups.
    groups : None, "sources" or list of lists of int or str, default=None
        The columns of each group, by number or by name: every column in exactly one group.
        "sources" makes a group of what each node holds, if X is `Shards`. None puts every feature
        in a group of its own, which is the lasso. `atomcast.data.one_hot` makes the groups that
        go with dummy variables.
    weights : array of shape (n_groups,), optional
        The weight of each group in the norm; by default the square root of its size.
    fit_intercept : bool, default=True
        Whether to fit an unconstrained constant b. Sparse data stays sparse.
    cluster : None, int or cluster, default=None
        Where the features are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step to a relative gap of 1e-4, a str names a step. Of
        these, "away", "pairwise" and "blended-pairwise" do not apply to groups.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    groups_ : Groups
        The partition and its weights.
    active_groups_ : list of arrays
        The columns of the groups that are in the model.
    result_, dual_gap_, n_iter_
        As for `Lasso`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomcast import GroupLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GroupLasso(beta=1000.0, groups=[[0, 1], [2, 3], [4, 5, 6, 7, 8, 9]]).fit(X, y)
    >>> model.result_.status
    'optimal'
    """

    groups_: Groups

    def __init__(
        self,
        beta: float = 1.0,
        *,
        groups: Any = None,
        weights: ArrayLike | None = None,
        fit_intercept: bool = True,
        cluster: Any = None,
        solver: str | Solver | None = None,
    ) -> None:
        self.beta = beta
        self.groups = groups
        self.weights = weights
        self.fit_intercept = fit_intercept
        self.cluster = cluster
        self.solver = solver

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The target, known to every node.
        """
        check_positive("beta", self.beta, "the radius of the group-norm ball")
        solver = self._solver()
        shards, y, cluster = features_and_target(self, X, y, self.cluster)
        shards, self.groups_ = in_groups(self, shards, isinstance(X, Shards))
        objective = SquaredError(y, self.fit_intercept)
        problem = group_problem(objective, GroupBall(self.beta, self.groups_))
        self._solve(solver, problem, objective, shards, cluster)
        return self

    @property
    def active_groups_(self) -> list[NDArray[np.int64]]:
        """The columns of the groups that are in the model."""
        return active_groups(self.groups_, self.coef_)


class GroupLogisticRegression(SparseLogisticModel):
    """Logistic regression for two classes with a constraint on the norms of groups of features.

    Minimises the sum of the logistic losses subject to ``sum_g weight_g ||w_g||_2 <= beta``.

    Parameters
    ----------
    beta, groups, weights, fit_intercept, cluster, solver
        As for `GroupLasso`.
    class_weight : None, "balanced" or dict, default=None
        How much the loss of each class counts, as in scikit-learn.

    Attributes
    ----------
    classes_, coef_, intercept_, result_, dual_gap_, n_iter_
        As for `SparseLogisticRegression`.
    groups_, active_groups_
        As for `GroupLasso`.
    """

    groups_: Groups

    def __init__(
        self,
        beta: float = 1.0,
        *,
        groups: Any = None,
        weights: ArrayLike | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        cluster: Any = None,
        solver: str | Solver | None = None,
    ) -> None:
        self.beta = beta
        self.groups = groups
        self.weights = weights
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.cluster = cluster
        self.solver = solver

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model; parameters as for `GroupLasso.fit`, with two classes as the target."""
        check_positive("beta", self.beta, "the radius of the group-norm ball")
        solver = self._solver()
        shards, numbers, cluster = features_and_classes(self, X, y, self.cluster)
        check_two_classes(self.classes_, y)
        shards, self.groups_ = in_groups(self, shards, isinstance(X, Shards))
        weights = example_weights(self.class_weight, self.classes_, numbers)
        objective = Logistic(2.0 * numbers - 1.0, self.fit_intercept, weights)
        problem = group_problem(objective, GroupBall(self.beta, self.groups_))
        self._solve(solver, problem, objective, shards, cluster)
        return self

    @property
    def active_groups_(self) -> list[NDArray[np.int64]]:
        """The columns of the groups that are in the model."""
        return active_groups(self.groups_, self.coef_[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def in_groups(estimator: Any, shards: Shards, given: bool) -> tuple[Shards, Groups]:
    """The partition, and shards that keep to it; shards that the user made must do so already."""
    groups = as_groups(estimator.groups, estimator.weights, shards)
    if not given:
        names = shards.names
        shards = GroupedShards(shards.matrix, shards.nodes, groups.labels, names)
    check_whole_groups(groups, shards)
    return shards, groups


def active_groups(groups: Groups, coef: Floats) -> list[NDArray[np.int64]]:
    """The columns of the groups in which a coefficient is not zero."""
    return [groups.members(int(g)) for g in np.unique(groups.labels[np.flatnonzero(coef)])]
