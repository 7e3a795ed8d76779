"""How much each example counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from atomcast._checks import check_in_scale
from atomcast.objectives.objective import Floats


def checked_sample_weight(sample_weight: ArrayLike | None, d: int) -> Floats:
    """Weights of the examples as floats, or an error if one of them is negative or missing."""
    if sample_weight is None:
        return np.ones(d)
    weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.shape != (d,) or not np.all((weights >= 0.0) & np.isfinite(weights)):
        raise ValueError(
            f"sample_weight must be {d} finite numbers >= 0, one for each example, "
            f"got shape {weights.shape}"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero everywhere: some example must count")
    check_in_scale("sample_weight", weights)
    return weights
