"""How dictionaries are saved: their elements, all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from atomcast.saving.layouts import Atoms, finite
from atomcast.storage.container import Arrays


class DictionaryLayout:
    """A coder: the rows of its dictionary."""

    atoms_are = "examples"
    #: Parameters that stand in the arrays, not in the header.
    holds = ("dictionary",)

    def pack(self, estimator: Any) -> Arrays:
        """The elements."""
        elements = getattr(estimator, "components_", None)
        if elements is None:
            raise ValueError(
                "a dictionary in shards stays where it is, and cannot be saved with the coder: "
                "give the dictionary as an array"
            )
        dense = elements.toarray() if sparse.issparse(elements) else elements
        return {"components": np.asarray(dense, dtype=np.float64)}

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set the dictionary."""
        elements = finite(arrays["components"])
        if elements.ndim != 2 or elements.shape[1] != estimator.n_features_in_:
            raise ValueError(f"elements of shape {elements.shape} do not go with the features")
        if hasattr(estimator, "dictionary"):
            estimator.dictionary = elements
        estimator.components_ = elements

    def atoms(self, arrays: Arrays) -> Atoms:
        """The elements and their lengths."""
        lengths = np.linalg.norm(finite(arrays["components"]), axis=1)
        return np.arange(len(lengths)), lengths


class LearnedLayout(DictionaryLayout):
    """A dictionary that was learned, and how the error fell."""

    def pack(self, estimator: Any) -> Arrays:
        """The elements, and the error after each coding."""
        return super().pack(estimator) | {"error": estimator.error_}

    def unpack(self, estimator: Any, arrays: Arrays) -> None:
        """Set `error_` and `n_iter_` too."""
        super().unpack(estimator, arrays)
        estimator.error_ = finite(arrays["error"])
        estimator.n_iter_ = len(estimator.error_)
