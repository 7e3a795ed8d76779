"""Layouts: how the fitted state of an estimator becomes arrays, and back."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from atomcast.saving.container import Arrays


class Layout(Protocol):
    """How the fitted state of one kind of estimator becomes arrays, and back."""

    def pack(self, estimator: Any) -> Arrays:
        """The arrays of a fitted estimator; numbers and booleans only, no objects."""
        ...

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the fitted attributes; must raise ValueError on arrays that make no sense."""
        ...

    def atoms(self, arrays: Arrays) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Global ids, shape (k,), and weights, shape (k,) or (k, T), of the atoms in the model."""
        ...


class LinearLayout:
    """A linear model with few nonzero coefficients: their ids and values, and the intercept.

    Parameters
    ----------
    extras : sequence of str
        Further fitted attributes that are numbers or arrays, such as the path of a CV estimator.
    """

    def __init__(self, *extras: str) -> None:
        self.extras = extras

    def pack(self, estimator: Any) -> Arrays:
        """Coefficients that are not zero, intercept, and the extras."""
        ids = np.flatnonzero(estimator.coef_).astype(np.int64)
        arrays = {
            "coef.ids": ids,
            "coef.weights": np.asarray(estimator.coef_[ids], dtype=np.float64),
            "intercept": np.asarray(estimator.intercept_, dtype=np.float64),
        }
        return arrays | {name: np.asarray(getattr(estimator, name)) for name in self.extras}

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set `coef_`, `intercept_` and the extras."""
        ids, weights = self.atoms(arrays)
        if len(ids) and not 0 <= ids[0] <= ids[-1] < estimator.n_features_in_:
            raise ValueError(f"a coefficient is outside 0 ... {estimator.n_features_in_ - 1}")
        estimator.coef_ = np.zeros(estimator.n_features_in_)
        estimator.coef_[ids] = weights
        estimator.intercept_ = float(_finite(arrays["intercept"]))
        for name in self.extras:
            array = _finite(arrays[name])
            setattr(estimator, name, array.item() if array.ndim == 0 else array)

    def atoms(self, arrays: Arrays) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The features with a coefficient that is not zero."""
        ids, weights = arrays["coef.ids"], _finite(arrays["coef.weights"])
        if ids.dtype != np.int64 or ids.ndim != 1 or weights.shape != ids.shape:
            raise ValueError("coefficients and their ids do not go together")
        if np.any(np.diff(ids) <= 0):
            raise ValueError("the ids of the coefficients do not increase")
        return ids, weights


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(f"finite float64 numbers were expected, got {array.dtype}")
    return array
