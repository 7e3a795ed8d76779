"""The minimum of a quadratic on a plane, from a factorisation of its Hessian."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def newton_step(
    matrix: Floats, slopes: Floats, normal: Floats, excess: float | None, flat: float = 0.0
) -> tuple[Floats, float]:
    """The step to the minimum of a quadratic, on the plane without the excess if there is one.

    Where the other directions leave no more than the share `flat` of the bend along one, the way
    along it is rounding: then there is no step, and no multiplier.

    Returns
    -------
    change : array of shape (m,)
    level : float
        The multiplier of the plane; NaN where there is no step.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    diagonal, bends = np.diag_indices_from(matrix), matrix.diagonal().copy()
    for ridge in (1e-14, 1e-10):  # flat directions, as far as rounding leaves them flat
        matrix[diagonal] += ridge * float(matrix[diagonal].max())
        try:
            factor = cho_factor(matrix, lower=True, check_finite=False)
            break
        except LinAlgError:
            continue
    else:
        return np.zeros_like(slopes), np.nan
    if flat and np.any(factor[0].diagonal() ** 2 <= flat * bends):
        return np.zeros_like(slopes), np.nan
    down, across = cho_solve(factor, np.stack([slopes, normal], axis=1), check_finite=False).T
    if excess is None:
        return -down, 0.0
    level = (excess - float(normal @ down)) / max(float(normal @ across), 1e-300)
    return -down - level * across, level
