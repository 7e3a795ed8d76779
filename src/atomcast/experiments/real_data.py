"""The data of the figures: real where it is at hand, generated only if that is asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from atomcast.data.datasets import DataSet, load_adult, load_dorothea, load_letter
from atomcast.data.generators import make_sparse_regression


def name(data: str, synthetic: bool) -> str:
    """What a figure should call its data."""
    return f"generated stand-in for {data}" if synthetic else data


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
        return _loaded(load_dorothea, download)
    made = make_sparse_regression(1150, n, 0.009, 50 / n, noise=0.25, random_state=0)
    X = made.X.copy()
    X.data[:] = 1.0
    score = X @ made.alpha
    # One compound in ten binds, as in Dorothea.
    return DataSet(X, np.where(score > np.quantile(score, 0.9), 1.0, -1.0))


def adult(*, synthetic: bool = False, download: bool = False, n: int = 32_561) -> DataSet:
    """Adult in its binary encoding, or a stand-in of its shape.

    Parameters
    ----------
    synthetic : bool
        Make the stand-in: 14 questions with several answers each, 123 in all, of which a noisy
        score says who earns much.
    download : bool
        Download the real data if it is missing.
    n : int
        Number of examples of the stand-in.
    """
    if not synthetic:
        return _loaded(load_adult, download)
    rng = np.random.default_rng(0)
    questions = np.array_split(np.arange(123), 14)
    answers = [
        rng.choice(choices, size=n, p=rng.dirichlet(np.ones(len(choices)))) for choices in questions
    ]
    columns = np.stack(answers, axis=1).ravel()
    starts = np.arange(0, len(columns) + 1, 14)
    X = sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(n, 123))
    score = X @ rng.standard_normal(123) + rng.standard_normal(n)
    # A quarter earns more than 50,000, as in Adult.
    return DataSet(X, np.where(score > np.quantile(score, 0.76), 1, -1))


def letter(*, synthetic: bool = False, download: bool = False, n: int = 16_000) -> DataSet:
    """Letter Recognition as A to M against N to Z, or a stand-in of its shape: two clouds.

    Parameters
    ----------
    synthetic, download : bool
        Make the stand-in; or download the real data if it is missing.
    n : int
        Number of examples of the stand-in.
    """
    if not synthetic:
        data = _loaded(load_letter, download)
        return DataSet(data.X, np.where(data.y < "N", 1, -1))
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    spread = rng.standard_normal((4, 16))  # the 16 features are far from independent
    return DataSet(rng.standard_normal((n, 4)) @ spread + 0.3 * y[:, None], y)


def _loaded(load: Callable[..., DataSet], download: bool) -> DataSet:
    try:
        return load(download=download)
    except FileNotFoundError as error:
        hint = "on this command line: --download, or --synthetic for a generated stand-in"
        raise FileNotFoundError(f"{error} ({hint})") from error
