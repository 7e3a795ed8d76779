"""A sparse model from parts: what to fit, within what, where, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain
from atomcast.estimators.inputs import features_and_classes, features_and_target
from atomcast.estimators.linear import LinearModel
from atomcast.estimators.score_classifier import check_two_classes
from atomcast.loop.solver import Solver
from atomcast.objectives import Loss, Objective
from atomcast.objectives.losses import as_loss
from atomcast.objectives.sample_weights import checked_sample_weight

Floats = NDArray[np.float64]


def _classifies(model: SparseModel) -> bool:
    """Whether a model is a classifier, which its loss says."""
    return isinstance(model.objective, Loss) and model.objective.classifies


class SparseModel(LinearModel):
    """A sparse linear model from an objective and a domain, your own or ours.

    Minimises ``g(X w)`` over the weights w of a domain, for features that are spread over a
    network; a regressor, or a classifier of two classes if the loss says so.

    Parameters
    ----------
    objective : Loss or callable
        What to fit: a loss such as `atomcast.objectives.SquaredLoss()`, `LogisticLoss()` or one of
        your own, which is bound to y when the model is fitted; or a function that makes an
        objective of y, such as the class `SquaredError`.
    domain : Domain
        Within what: `atomcast.domains.L1Ball(beta)`, `Simplex()`, or one of your own.
    cluster : None, int or cluster, default=None
        Where the features are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step to a relative gap of 1e-4, a str names a step.
    tol, max_rounds : optional
        As for `Lasso`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    classes_ : array of shape (2,)
        Of a classifier.
    result_, dual_gap_, n_iter_
        As for `Lasso`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomcast import SparseModel
    >>> from atomcast.domains import L1Ball
    >>> from atomcast.objectives import SquaredLoss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseModel(SquaredLoss(), L1Ball(1000.0), cluster=5).fit(X, y)
    >>> model.result_.status
    'optimal'
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        objective: Any,
        domain: Domain,
        cluster: Any = None,
        solver: str | Solver | None = None,
        *,
        tol: float | None = None,
        max_rounds: int | None = None,
    ) -> None:
        self.objective = objective
        self.domain = domain
        self.cluster = cluster
        self.solver = solver
        self.tol = tol
        self.max_rounds = max_rounds

    def _domain(self) -> Domain:
        check_domain_of_features(self.domain)
        return self.domain

    def _target(self, X: Any, y: Any) -> tuple[Shards, Floats, Any]:
        if not as_loss(self.objective).classifies:
            return features_and_target(self, X, y, self.cluster)
        shards, numbers, cluster = features_and_classes(self, X, y, self.cluster)
        check_two_classes(self.classes_, y)
        return shards, np.where(numbers == 1, 1.0, -1.0), cluster

    def _loss(self, target: Any, sample_weight: Any = None, rows: Any = slice(None)) -> Objective:
        loss = as_loss(self.objective)
        if sample_weight is None:
            objective = loss.bind(target[rows])
        else:
            objective = loss.bind(
                target[rows], checked_sample_weight(sample_weight, len(target))[rows]
            )
        if not isinstance(objective, Objective):
            raise ValueError(
                f"objective={self.objective!r} makes {objective!r} of the target, which is no "
                "atomcast.objectives.Objective"
            )
        return objective

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """The linear score of the second class, shape (n_samples,)."""
        return self._scores(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the target, or the class, shape (n_samples,); X as for `fit`."""
        scores = self._scores(X)
        if not _classifies(self):
            return scores
        return np.asarray(self.classes_[(scores > 0).astype(int)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of classes that are right, or R^2 of a regressor."""
        measure = accuracy_score if _classifies(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=False)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
        return tags


def check_domain_of_features(domain: Any) -> None:
    """Raise ValueError unless this is a domain whose vertices are multiples of single features."""
    if not isinstance(domain, Domain):
        raise ValueError(
            "domain must be an atomcast.domains.Domain such as L1Ball(beta=5.0) or Simplex(), "
            f"got {domain!r}"
        )
    if not domain.polytope:
        raise ValueError(
            f"SparseModel needs a domain with vertices that are single features, which "
            f"{type(domain).__name__} is not: use GroupLasso or GroupLogisticRegression for groups"
        )
