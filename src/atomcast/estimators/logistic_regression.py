"""Sparse logistic regression with features spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax

from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain
from atomcast.estimators.class_weights import class_weights
from atomcast.estimators.inputs import features_and_classes
from atomcast.estimators.radial import BallModel, RadialModel
from atomcast.estimators.score_classifier import ScoreClassifier
from atomcast.loop.result import Result
from atomcast.objectives import Logistic, Multinomial
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.problems.features import explicit_problem, multiclass_problem
from atomcast.problems.problem import Problem

Floats = NDArray[np.float64]


class SparseLogisticModel(ScoreClassifier, RadialModel):
    """What logistic classifiers have in common."""

    coef_: Floats
    intercept_: Floats
    fit_intercept: bool
    class_weight: Any

    strength_is = "C"

    def _to_penalty(self, strength: float, objective: Any) -> float:
        return 1.0 / strength

    def _to_strength(self, penalty: float, objective: Any) -> float:
        return 1.0 / penalty if penalty else np.inf

    def decision_function(self, X: Any) -> Floats:
        """The linear score of the second class, or of each class if there are more than two.

        Of shape (n_samples,) or (n_samples, n_classes); X as for `fit`.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, shape (n_samples, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        result: Floats = softmax(scores, axis=1)
        return result

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class, shape (n_samples, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        result: Floats = log_softmax(scores, axis=1)
        return result

    def _target(self, X: Any, y: Any) -> tuple[Shards, NDArray[np.int64], Any]:
        return features_and_classes(self, X, y, self.cluster)

    def _loss(
        self, target: Any, sample_weight: Any = None, rows: Any = slice(None)
    ) -> Logistic | Multinomial:
        """Binary for two classes, else multinomial; balanced weights are those of all rows."""
        weights = None
        if not (sample_weight is None and self.class_weight is None):
            weights = checked_sample_weight(sample_weight, len(target))
            labels = self.classes_[target]
            by_class = class_weights(self.class_weight, self.classes_, labels, None, weights)
            weights = (weights * by_class[target])[rows]
        if len(self.classes_) == 2:
            return Logistic(2.0 * target[rows] - 1.0, self.fit_intercept, weights)
        return Multinomial(target[rows], self.fit_intercept, weights)

    def _problem(self, objective: Any, domain: Domain) -> Problem:
        if isinstance(objective, Multinomial):
            return multiclass_problem(objective, domain)
        return explicit_problem(objective, domain)

    def _keep(self, result: Result, objective: Any) -> None:
        super()._keep(result, objective)
        self.intercept_ = np.atleast_1d(self.intercept_)  # as in scikit-learn

    def _coefficients(self, result: Result, objective: Any) -> Floats:
        classes = objective.classes if isinstance(objective, Multinomial) else 1
        return np.ascontiguousarray(result.weights.reshape(-1, classes).T)


@dataclass(eq=False, repr=False)
class SparseLogisticRegression(BallModel, SparseLogisticModel):
    """Logistic regression with an l1 constraint, for features that are spread over a network.

    Minimises the sum of the logistic losses subject to ``||w||_1 <= beta`` by distributed
    Frank-Wolfe: every node keeps its own features, and only those that the model needs are
    broadcast. More than two classes are fitted together (multinomial loss), with the constraint on
    the coefficients of all classes: a feature is broadcast once and then serves every class. Or,
    with `C`, minimises ``||w||_1 + C * losses`` over all weights, as scikit-learn does.

    Parameters
    ----------
    beta : float, optional
        Radius of the l1 ball: the larger, the more features.
    C : float, optional
        Instead of beta: what losses cost, as in scikit-learn. Without either, ten times the
        largest C that leaves no feature, and a warning says so.
    fit_intercept : bool, default=True
        Whether to fit an unconstrained constant for each class. Sparse data stays sparse.
    class_weight : None, "balanced" or dict, default=None
        How much the loss of each class counts, as in scikit-learn.
    warm_start : bool, default=False
        As for `Lasso`.
    cluster : None, int or cluster, default=None
        Where the features are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step to a relative gap of 1e-4, a str names a step.
    tol, max_rounds : optional
        As for `Lasso`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        One row for two classes, else one for each class.
    intercept_ : array of shape (1,) or (n_classes,)
    beta_, C_ : float
        The radius and the penalty that have this solution.
    result_, dual_gap_, n_iter_
        As for `Lasso`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from atomcast import SparseLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseLogisticRegression(beta=5.0, cluster=5).fit(scale(X), y)
    >>> model.result_.status
    'optimal'
    """

    _: KW_ONLY
    C: float | None = None
    class_weight: Any = None
    warm_start: bool = False  # type: ignore[misc]
