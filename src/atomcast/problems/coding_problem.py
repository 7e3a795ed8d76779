"""Sparse coding of many signals as one problem for the solver."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.signals import SignalsActiveSet, dictionary_atoms
from atomcast.domains.ball_product import BallProduct
from atomcast.domains.span import Span
from atomcast.problems.problem import Problem

Floats = NDArray[np.float64]


def coding_problem(signals: Any, radii: Floats | None) -> Problem:
    """Explain signals of shape (B, d) by the rows of a dictionary.

    Within a ball each, of these radii; or by few atoms, if there are none.
    """
    return Problem(
        Span() if radii is None else BallProduct(radii),
        partial(SignalsActiveSet, signals, balls=radii is not None),
        dictionary_atoms,
        signals.shape[1],
        axis=0,
        targets=signals.shape[0],
    )
