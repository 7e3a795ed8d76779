"""The data of the figures: real where it is at hand, generated only if that is asked for."""

from __future__ import annotations

import numpy as np

from atomcast.data.datasets import DataSet, load_dorothea
from atomcast.data.generators import make_sparse_regression


def dorothea(*, synthetic: bool = False, download: bool = False, n: int = 100_000) -> DataSet:
    """Dorothea, or a stand-in of its shape.

    Parameters
    ----------
    synthetic : bool
        Make the stand-in: binary features as sparse as Dorothea's, labels that follow from a few.
    download : bool
        Download the real data if it is missing.
    n : int
        Number of features of the stand-in.
    """
    if not synthetic:
        return load_dorothea(download=download)
    made = make_sparse_regression(1150, n, 0.009, 50 / n, noise=0.25, random_state=0)
    X = made.X.copy()
    X.data[:] = 1.0
    score = X @ made.alpha
    # One compound in ten binds, as in Dorothea.
    return DataSet(X, np.where(score > np.quantile(score, 0.9), 1.0, -1.0))
