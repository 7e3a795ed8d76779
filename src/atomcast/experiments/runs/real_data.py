"""The data of the figures: real where it is at hand, generated only if that is asked for.

All loaders take `synthetic`, to make a stand-in of the same shape, with n features or examples;
and `download`, to download the real data if it is missing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from atomcast.data.datasets import DataSet, load_adult, load_dorothea, load_letter
from atomcast.data.generators import make_sparse_regression


def dorothea(*, synthetic: bool = False, download: bool = False, n: int = 100_000) -> DataSet:
    """Dorothea, or binary features as sparse as Dorothea's with labels that follow from a few."""
    if not synthetic:
        return _loaded(load_dorothea, download)
    made = make_sparse_regression(1150, n, 0.009, 50 / n, noise=0.25, random_state=0)
    X = made.X.copy()
    X.data[:] = 1.0
    score = X @ made.alpha
    # One compound in ten binds, as in Dorothea.
    return DataSet(X, np.where(score > np.quantile(score, 0.9), 1.0, -1.0))


def adult(
    examples: int | None = None,
    *,
    synthetic: bool = False,
    download: bool = False,
    n: int = 32_561,
) -> DataSet:
    """Adult in its binary encoding, or as many of its examples as are wanted, the first ones.

    Its stand-in has 14 questions with several answers each, 123 in all, of which a noisy score says
    who earns much.
    """
    if not synthetic:
        data = _loaded(load_adult, download)
        return DataSet(data.X[:examples], data.y[:examples])
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
    y = np.where(score > np.quantile(score, 0.76), 1, -1)
    return DataSet(X[:examples], y[:examples])


def letter(*, synthetic: bool = False, download: bool = False, n: int = 16_000) -> DataSet:
    """Letter Recognition as A to M against N to Z; its stand-in are two clouds."""
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
