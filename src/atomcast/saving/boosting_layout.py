"""The layout of boosted classifiers: stumps, or columns of a matrix, with their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.saving.classes import class_arrays, classes_in
from atomcast.saving.layouts import Atoms, check_decisions, finite
from atomcast.storage.container import Arrays


class BoostingLayout:
    """`L1AdaBoost` over stumps or over a matrix of predictions."""

    def pack(self, estimator: Any) -> Arrays:
        """Base classifiers, their weights, the classes, and the weights of the examples."""
        if not isinstance(estimator.base, str):
            raise ValueError(
                "a model of base=[...] cannot be saved, because its fitted classifiers may be "
                'anything: save their predictions and fit base="matrix", or keep estimator_ids_ '
                "and estimator_weights_ beside them"
            )
        arrays = {
            "estimator.weights": np.asarray(estimator.estimator_weights_, dtype=np.float64),
            "example_weights": np.asarray(estimator.example_weights_, dtype=np.float64),
            **class_arrays(estimator.classes_),
        }
        if estimator.base == "stumps":
            stumps = np.reshape(estimator.stumps_, (len(estimator.estimator_weights_), 4))
            return arrays | {"estimator.stumps": stumps}
        return arrays | {"estimator.ids": estimator.estimator_ids_.astype(np.int64)}

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the fitted attributes."""
        ids = self._weighted(estimator, arrays)
        estimator.example_weights_ = finite(arrays["example_weights"])
        estimator.classes_ = classes_in(arrays)
        check_decisions(1, estimator.classes_)
        if estimator.base == "stumps":
            estimator.stumps_ = arrays["estimator.stumps"]
        elif estimator.base == "matrix" and "estimator.ids" in arrays:
            estimator.estimator_ids_ = ids
        else:
            raise ValueError(f"base={estimator.base!r} does not go with what is saved")

    def _weighted(self, estimator: Any, arrays: Arrays) -> NDArray[np.int64]:
        """Set weights and their number, and return the features that they are of."""
        ids, estimator.estimator_weights_ = self.atoms(arrays)
        if len(ids) and not 0 <= ids.min() <= ids.max() < estimator.n_features_in_:
            raise ValueError(f"a feature is outside 0 ... {estimator.n_features_in_ - 1}")
        estimator.n_estimators_ = len(ids)
        return ids

    def atoms(self, arrays: Arrays) -> Atoms:
        """The feature of each stump, or the column of each base classifier."""
        weights = finite(arrays["estimator.weights"])
        if "estimator.stumps" in arrays:
            stumps = finite(arrays["estimator.stumps"], (len(weights), 4))
            features = stumps[:, 0].astype(np.int64)
            if not np.array_equal(features, stumps[:, 0]) or not np.all(abs(stumps[:, 2:]) == 1):
                raise ValueError("stumps are a feature, a threshold, and twice 1 or -1")
            return features, weights
        ids = arrays["estimator.ids"]
        if ids.dtype != np.int64 or ids.shape != weights.shape or weights.ndim != 1:
            raise ValueError("base classifiers and their weights do not go together")
        return ids, weights


class StumpSumLayout(BoostingLayout):
    """`L1BoostRegressor`: stumps, their weights, the constant, radius and penalty."""

    def pack(self, estimator: Any) -> Arrays:
        """Stumps, their weights, and numbers."""
        numbers = [estimator.intercept_, estimator.beta_, estimator.alpha_]
        return {
            "estimator.weights": np.asarray(estimator.estimator_weights_, dtype=np.float64),
            "estimator.stumps": np.reshape(estimator.stumps_, (-1, 4)),
            "numbers": np.array(numbers, dtype=np.float64),
        }

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the fitted attributes."""
        self._weighted(estimator, arrays)
        estimator.stumps_ = arrays["estimator.stumps"]
        numbers = finite(arrays["numbers"], (3,)).tolist()
        estimator.intercept_, estimator.beta_, estimator.alpha_ = numbers
