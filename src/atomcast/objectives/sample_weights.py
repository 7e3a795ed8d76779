"""How much each example counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from atomcast._checks import check_in_scale, check_numbers
from atomcast.objectives.objective import Floats


def checked_sample_weight(sample_weight: ArrayLike | None, d: int) -> Floats:
    """Weights of the examples as floats, or an error if one of them is negative or missing."""
    if sample_weight is None:
        return np.ones(d)
    weights = check_numbers("sample_weight", sample_weight, "one for each example")
    right = weights.shape == (d,) and bool(np.all((weights >= 0.0) & np.isfinite(weights)))
    if not right:
        raise ValueError(
            f"sample_weight must be {d} finite numbers >= 0, one for each example, "
            f"got {_what_is_wrong(weights, d)}"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero everywhere: some example must count")
    check_in_scale("sample_weight", weights)
    return np.ascontiguousarray(weights)


def _what_is_wrong(weights: Floats, d: int) -> str:
    if weights.shape != (d,):
        return f"shape {weights.shape}"
    k = int(np.argmin((weights >= 0.0) & np.isfinite(weights)))
    return f"{weights[k]} at position {k}"
