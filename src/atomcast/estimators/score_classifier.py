"""What classifiers have in common that decide by the sign or the largest of their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target

from atomcast.estimators.solving import SolvedEstimator


class ScoreClassifier(ClassifierMixin, SolvedEstimator):  # type: ignore[misc]
    """A classifier with a `decision_function`."""

    classes_: NDArray[Any]
    n_features_in_: int

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of examples, shape (n_samples,); X as for `fit`."""
        scores = self.decision_function(X)
        numbers = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[numbers])


def check_two_classes(classes: NDArray[Any], y: Any) -> None:
    """Refuse more than two classes, in the words that scikit-learn expects."""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}, with {len(classes)} classes: wrap the estimator in "
            "sklearn.multiclass.OneVsRestClassifier"
        )
