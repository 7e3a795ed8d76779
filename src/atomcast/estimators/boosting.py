"""Boosting with base classifiers that are spread over a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from atomcast._checks import check_positive
from atomcast.data.shards import Shards
from atomcast.domains.balls import Simplex
from atomcast.estimators.base_classifiers import (
    CountsEstimators,
    StumpClassifier,
    check_base,
    features_for,
    predictions_of,
    stump_problem,
    stump_votes,
)
from atomcast.estimators.inputs import features_and_classes, linear_prediction, rows_that_count
from atomcast.estimators.score_classifier import ScoreClassifier, check_two_classes
from atomcast.estimators.solving import Posed
from atomcast.loop.result import Result
from atomcast.objectives import LogMeanExp
from atomcast.problems.features import explicit_problem

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class L1AdaBoost(CountsEstimators, ScoreClassifier):
    """The best convex combination of base classifiers, which are spread over a network.

    Minimises ``log(mean_i exp(-y_i sum_j alpha_j h_j(x_i) / T))`` over weights alpha that are not
    negative and sum to one (problem (5) of the paper). In each round every node finds the base
    classifier of its own that does best on the weighted examples, and only winners are broadcast.

    Parameters
    ----------
    temperature : float, default=0.05
        T: the smaller, the closer the fit, and the more base classifiers.
    base : "stumps", "matrix" or list of fitted classifiers, default="stumps"
        "stumps": decision stumps over the features, which may have missing values (NaN); each
        node finds the best stump over its own features exactly, and keeps their order for that, 2
        bytes a value up to 32,767 examples and 4 beyond. "matrix": the columns of X are
        the predictions h_j(x_i) of base classifiers, at best between -1 and 1. A list: fitted
        classifiers of the same two classes, spread over the nodes, each of which knows X.
    n_estimators : int, optional
        How many base classifiers to combine at most: they then join one a round, and the run ends
        with the last of them; default: as many as the tolerance asks for.
    cluster : None, int or cluster, default=None
        Where the base classifiers are: None is one node, an int so many simulated nodes.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step to a relative gap of 1e-4, a str names a step.
    tol, max_rounds : optional
        As for `Lasso`.

    Attributes
    ----------
    classes_ : array of shape (2,)
    estimator_weights_ : array of shape (n,)
        The weights alpha that are not zero.
    n_estimators_ : int
        How many base classifiers the solution combines.
    estimators_ : list
        These, in the order in which they joined; each has `predict`. Not with base="matrix".
    feature_importances_ : array of shape (n_features,)
        The share of each feature in the weights; of fitted classifiers, their own, weighted.
    stumps_ : array of shape (n, 4)
        With base="stumps": feature, threshold, what is said above it, what if it is missing.
    estimator_ids_ : array of shape (n,)
        Otherwise: columns of X, or places in the list.
    example_weights_ : array of shape (n_samples,)
        The distribution w over the training examples that the next base classifier would face.
    result_, dual_gap_, n_iter_
        As for `Lasso`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from atomcast import L1AdaBoost
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = L1AdaBoost(temperature=0.2, cluster=5).fit(X, y)
    >>> model.result_.status
    'optimal'
    """

    temperature: float = 0.05
    _: KW_ONLY
    base: Any = "stumps"
    n_estimators: int | None = None

    def _pose(self, X: Any, y: Any, sample_weight: Any = None) -> Posed:
        check_positive("temperature", self.temperature, "T of the objective")
        check_base(self.base)
        shards, numbers, cluster = features_and_classes(
            self, X, y, self.cluster, **features_for(self.base)
        )
        check_two_classes(self.classes_, y)
        # Thresholds lie between values of examples that count.
        self._rows = len(numbers)
        shards, numbers, weights, self._kept = rows_that_count(shards, numbers, sample_weight)
        objective = LogMeanExp(2.0 * numbers - 1.0, self.temperature, weights)
        if not isinstance(self.base, str):
            votes = predictions_of(self.base, shards, self.classes_)
            shards = Shards.split(votes, cluster.nodes)
        make = stump_problem if self.base == "stumps" else explicit_problem
        return Posed(objective, make(objective, Simplex()), shards, cluster)

    def _keep(self, result: Result, objective: LogMeanExp) -> None:
        assert result.image is not None
        super()._keep(result, objective)
        self.estimator_weights_ = result.atom_weights
        self.n_estimators_ = len(result.atom_weights)
        self.example_weights_ = weights = objective.weights(result.image)
        if self._kept is not None:
            self.example_weights_ = np.zeros(self._rows)
            self.example_weights_[self._kept] = weights
        if self.base == "stumps":
            self.stumps_ = result.atom_extras
        else:
            self.estimator_ids_ = result.atom_ids

    @property
    def estimators_(self) -> list[Any]:
        """The base classifiers that the solution combines, in the order in which they joined."""
        check_is_fitted(self)
        if isinstance(self.base, str) and self.base == "matrix":
            raise AttributeError('with base="matrix", classifiers are known by their columns only')
        if isinstance(self.base, str):
            return [StumpClassifier(row, self.classes_) for row in self.stumps_]
        return [self.base[j] for j in self.estimator_ids_]

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the weights, shape (n_features,)."""
        check_is_fitted(self)
        weights = self.estimator_weights_
        if not isinstance(self.base, str):
            own = np.array([one.feature_importances_ for one in self.estimators_])
            shares: Floats = weights @ own / weights.sum()
            return shares
        at = self.stumps_[:, 0].astype(int) if self.base == "stumps" else self.estimator_ids_
        return np.bincount(at, np.abs(weights), self.n_features_in_) / np.abs(weights).sum()

    def decision_function(self, X: Any) -> Floats:
        """The weighted vote, between -1 and 1 for base classifiers that say -1 or 1.

        Of shape (n_samples,); X as for `fit`.
        """
        check_is_fitted(self)
        return self._votes(X, slice(None))

    def _votes(self, X: Any, some: slice) -> Floats:
        """The weighted vote of some of the base classifiers."""
        weights = self.estimator_weights_[some]
        if isinstance(self.base, str) and self.base == "stumps":
            return stump_votes(self, X, self.stumps_[some], weights)
        ids = self.estimator_ids_[some]
        if isinstance(self.base, str):
            by_column = np.zeros(self.n_features_in_)
            by_column[ids] = weights
            return linear_prediction(self, X, by_column)
        return np.asarray(predictions_of([self.base[j] for j in ids], X, self.classes_) @ weights)

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """The vote of the first base classifier, of the first two, and so on.

        Their weights are those of the whole, scaled to sum to one.
        """
        check_is_fitted(self)
        votes: Any = 0.0
        weight = 0.0
        for k, own in enumerate(self.estimator_weights_.tolist()):
            votes, weight = votes + self._votes(X, slice(k, k + 1)), weight + own
            yield votes / weight

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """The classes that the first base classifiers predict, one more each time."""
        for votes in self.staged_decision_function(X):
            yield self.classes_[(votes > 0).astype(int)]

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """The probabilities by the first base classifiers, one more each time."""
        for votes in self.staged_decision_function(X):
            yield np.exp(self._log_proba(votes))

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """The share of classes that the first base classifiers predict, one more each time."""
        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities for which the exponential loss is the right one, shape (n, 2)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of these probabilities, shape (n, 2)."""
        return self._log_proba(self.decision_function(X))

    def _log_proba(self, votes: Floats) -> Floats:
        odds = 2.0 * votes / self.temperature
        return np.column_stack([log_expit(-odds), log_expit(odds)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = isinstance(self.base, str) and self.base == "stumps"
        tags.classifier_tags.multi_class = False
        return tags
