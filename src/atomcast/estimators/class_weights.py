"""The weight of each class, from what users may give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_positive
from atomcast.data.shards import Shards


def class_weights(
    given: Any,
    classes: NDArray[Any],
    y: NDArray[Any],
    shards: Shards | None = None,
    sample_weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The weight of each class, shape (T,); None is one for all.

    Parameters
    ----------
    given : dict, "balanced" or None
        Classes that a dict does not name have weight one.
    classes : array of shape (T,)
    y : array of shape (n,)
    shards : Shards, optional
        The examples that y belongs to.
    sample_weight : array of shape (n,), optional
        How much each example counts among its class, where all classes are to count alike.
    """
    if isinstance(given, str) and given == "balanced":
        if shards is None or shards.kind != "mine":
            counts = np.bincount(np.searchsorted(classes, y), sample_weight, len(classes))
            return np.divide(
                counts.sum() / len(classes), counts, out=np.zeros(len(classes)), where=counts > 0
            )
        raise ValueError(
            'class_weight="balanced" needs all labels, but with Shards.mine no process sees them: '
            "pass a dict of weights"
        )
    if given is None:
        return np.ones(len(classes))
    if not isinstance(given, dict):
        raise ValueError(f'class_weight must be None, "balanced" or a dict, got {given!r}')
    known = classes.tolist()
    for label, weight in given.items():
        if label not in known:
            raise ValueError(f"class_weight names {label!r}, which is none of the classes {known}")
        check_positive(f"class_weight[{label!r}]", weight, "what its errors cost")
    return np.array([given.get(label, 1.0) for label in known], dtype=np.float64)
