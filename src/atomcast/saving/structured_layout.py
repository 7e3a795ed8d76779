"""The layout of structured support vector machines whose outputs are labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomcast.estimators.structured_inputs import LABELS
from atomcast.saving.classes import class_arrays, classes_in
from atomcast.saving.layouts import Atoms, finite
from atomcast.storage.container import Arrays, text_array, texts_of


class StructuredLayout:
    """`StructuredSVM` for classes or chains: its weights, and the labels."""

    atoms_are = "examples"

    def pack(self, estimator: Any) -> Arrays:
        """Weights, labels, what outputs are, and how often examples were decoded."""
        kinds = [name for name, kind in LABELS.items() if type(estimator.model_) is kind]
        if not kinds:
            raise ValueError(
                "a model of outputs of your own cannot be saved, because a file that names code "
                f"would have to be trusted: use model={' or '.join(map(repr, LABELS))}, or save "
                "coef_ yourself"
            )
        return {
            "outputs": text_array(kinds),
            **class_arrays(estimator.classes_),
            "coef": np.asarray(estimator.coef_, dtype=np.float64),
            "passes": np.array(estimator.passes_, dtype=np.float64),
        }

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the fitted attributes."""
        (kind,) = texts_of(arrays["outputs"])
        if kind not in LABELS or estimator.model not in LABELS:
            raise ValueError(f"there are no outputs {kind!r} of model={estimator.model!r}")
        estimator.classes_ = classes_in(arrays)
        estimator.model_ = LABELS[kind](len(estimator.classes_), estimator.n_features_in_)
        estimator.coef_ = finite(arrays["coef"], (estimator.model_.d,))
        estimator.passes_ = float(finite(arrays["passes"], ()))

    def atoms(self, arrays: Arrays) -> Atoms:
        """None: the weights are made of sums, which nobody owns."""
        return np.zeros(0, dtype=np.int64), np.zeros(0)


LAYOUT = StructuredLayout()
