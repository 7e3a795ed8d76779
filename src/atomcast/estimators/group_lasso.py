"""Regression and classification with groups of features, each group on one node."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast.data.grouped import GroupedShards
from atomcast.data.shards import Shards
from atomcast.domains.group_ball import GroupBall, as_groups, check_whole_groups
from atomcast.estimators.lasso import SparseLinearModel
from atomcast.estimators.logistic_regression import SparseLogisticModel
from atomcast.estimators.radial import BallModel
from atomcast.estimators.score_classifier import check_two_classes
from atomcast.loop.result import Result
from atomcast.problems.features import group_problem
from atomcast.problems.problem import Problem


@dataclass(eq=False, repr=False)
class GroupModel(BallModel):
    """What models with groups of features have in common: the ball of a group norm."""

    _: KW_ONLY
    groups: Any = None
    weights: ArrayLike | None = None

    def _objective(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Shards, Any]:
        objective, shards, cluster = super()._objective(X, y, sample_weight)
        self.groups_ = groups = as_groups(self.groups, self.weights, shards)
        if not isinstance(X, Shards):  # shards that the user made must keep to the groups already
            shards = GroupedShards(shards.matrix, shards.nodes, groups.labels, shards.names)
        check_whole_groups(groups, shards)
        return objective, shards, cluster

    def _ball(self, objective: Any, beta: float) -> Problem:
        return group_problem(objective, GroupBall(beta, self.groups_))

    def _norm(self, result: Result) -> float:
        return self.groups_.norm(result.weights)

    @property
    def active_groups_(self) -> list[NDArray[np.int64]]:
        """The columns of the groups that are in the model."""
        used = np.flatnonzero(self.coef_)  # of one row, if there are rows
        return [self.groups_.members(int(g)) for g in np.unique(self.groups_.labels[used])]


@dataclass(eq=False, repr=False)
class GroupLasso(GroupModel, SparseLinearModel):
    """Least squares with a constraint on the norms of groups of features, spread over a network.

    Minimises ``||y - X w - b||^2`` subject to ``sum_g weight_g ||w_g||_2 <= beta``: a group enters
    the model as a whole or not at all. A group lives on one node, and its columns are broadcast
    once, after which everybody can use any combination of them.

    Parameters
    ----------
    beta : float, optional
        Radius of the ball: the larger, the more groups.
    alpha : float, optional
        Instead of beta: the penalty, as for `Lasso`, with the norm of groups.
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
    tol, max_rounds : optional
        As for `Lasso`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    groups_ : Groups
        The partition and its weights.
    active_groups_ : list of arrays
        The columns of the groups that are in the model.
    beta_, alpha_, result_, dual_gap_, n_iter_
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

    _: KW_ONLY
    alpha: float | None = None


@dataclass(eq=False, repr=False)
class GroupLogisticRegression(GroupModel, SparseLogisticModel):
    """Logistic regression for two classes with a constraint on the norms of groups of features.

    Minimises the sum of the logistic losses subject to ``sum_g weight_g ||w_g||_2 <= beta``.

    Parameters
    ----------
    beta, groups, weights, fit_intercept, cluster, solver, tol, max_rounds
        As for `GroupLasso`.
    C : float, optional
        Instead of beta: what losses cost, as for `SparseLogisticRegression`.
    class_weight : None, "balanced" or dict, default=None
        How much the loss of each class counts, as in scikit-learn.

    Attributes
    ----------
    classes_, coef_, intercept_, beta_, C_, result_, dual_gap_, n_iter_
        As for `SparseLogisticRegression`.
    groups_, active_groups_
        As for `GroupLasso`.
    """

    _: KW_ONLY
    C: float | None = None
    class_weight: Any = None

    def _objective(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Shards, Any]:
        posed = super()._objective(X, y, sample_weight)
        check_two_classes(self.classes_, y)
        return posed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
