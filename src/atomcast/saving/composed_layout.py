"""The layout of models that are composed of a loss and a domain."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from atomcast.estimators.sparse_model import check_domain_of_features
from atomcast.objectives.losses import as_loss
from atomcast.saving.classes import class_arrays, classes_in
from atomcast.saving.layouts import LinearLayout, check_decisions
from atomcast.saving.parameters import MAKERS, PARTS, encoded, is_saved
from atomcast.storage.container import Arrays


class ComposedLayout(LinearLayout):
    """`SparseModel`: a linear model, and the classes if its loss says that there are some."""

    def pack(self, estimator: Any) -> Arrays:
        """What linear models have, and the classes of a classifier."""
        for name in ("objective", "domain"):
            part = getattr(estimator, name)
            if not is_saved(encoded(part)):
                raise ValueError(
                    f"a model with {name}={part!r} cannot be saved, because a file that names code "
                    f"of yours would have to be trusted: use {', '.join([*PARTS, *MAKERS])}, or "
                    "keep coef_ and intercept_ yourself"
                )
        classes = class_arrays(estimator.classes_) if is_classifier(estimator) else {}
        return super().pack(estimator) | classes

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set `classes_` too, of a classifier."""
        as_loss(estimator.objective)
        check_domain_of_features(estimator.domain)
        super().unpack(estimator, arrays)
        if is_classifier(estimator):
            estimator.classes_ = classes_in(arrays)
            check_decisions(1, estimator.classes_)


LAYOUT = ComposedLayout()
