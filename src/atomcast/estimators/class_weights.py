"""The weight of each class, from what users may give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight

from atomcast._checks import check_positive
from atomcast.data.shards import Shards


def class_weights(
    given: Any, classes: NDArray[Any], y: NDArray[Any], shards: Shards
) -> NDArray[np.float64]:
    """The weight of each class, shape (T,); None is one for all.

    Parameters
    ----------
    given : dict, "balanced" or None
        Classes that a dict does not name have weight one.
    classes : array of shape (T,)
    y : array of shape (n,)
    shards : Shards
        The examples that y belongs to.
    """
    if shards.kind == "mine" and given == "balanced":
        raise ValueError(
            'class_weight="balanced" needs all labels, but with Shards.mine no process sees them: '
            "pass a dict of weights"
        )
    if not isinstance(given, dict):
        weights = compute_class_weight(given, classes=classes, y=y)
        return np.asarray(weights, dtype=np.float64)
    known = classes.tolist()
    for label, weight in given.items():
        if label not in known:
            raise ValueError(f"class_weight names {label!r}, which is none of the classes {known}")
        check_positive(f"class_weight[{label!r}]", weight, "what its errors cost")
    return np.array([given.get(label, 1.0) for label in known], dtype=np.float64)
