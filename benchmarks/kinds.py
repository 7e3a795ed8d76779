"""Generated data of several kinds, for benchmarks that should not be tuned to one of them.

Each maker takes a seed and returns (X, y), y real: text-like columns, gene-like rows, a tall dense
matrix, correlated columns, columns in units that have nothing to do with each other, categories,
columns that are copies of others, and a small table.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse


def text_like(seed: int, d: int = 4_000, n: int = 15_000, words: int = 105_000):
    """Documents of few words: columns of Zipf lengths, log(1 + count), rows of norm 1."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, n + 1)
    columns = rng.choice(n, size=words, p=share / share.sum())
    rows = rng.integers(0, d, size=words)
    X = sparse.coo_matrix((np.ones(words), (rows, columns)), shape=(d, n)).tocsc()
    X.data = np.log1p(X.data)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = (sparse.diags(1.0 / np.where(norms > 0.0, norms, 1.0)) @ X).tocsc()
    weights = np.where(rng.random(n) < 0.05, rng.standard_normal(n), 0.0)
    return X, X @ weights + 0.1 * rng.standard_normal(d)


def gene_like(seed: int, d: int = 72, n: int = 7_000, factors: int = 15):
    """Few rows, many columns that a few factors explain for the most part."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, factors)) @ rng.standard_normal((factors, n))
    X += rng.standard_normal((d, n))
    return X, X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(d)


def tall(seed: int, d: int = 2_000, n: int = 3_000):
    """Independent dense columns, a fifth of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    weights = np.where(np.arange(n) < n // 5, rng.standard_normal(n), 0.0)
    return X, X @ weights + rng.standard_normal(d)


def correlated(seed: int, d: int = 1_500, n: int = 600, factors: int = 10):
    """More rows than columns, which a few factors explain but for a tenth."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, factors)) @ rng.standard_normal((factors, n))
    X += rng.standard_normal((d, n))
    return X, X[:, :30] @ rng.standard_normal(30) + 3.0 * rng.standard_normal(d)


def badly_scaled(seed: int):
    """Text-like columns in units that are lognormal, over some six orders of magnitude."""
    X, y = text_like(seed, 2_000, 6_000, 50_000)
    units = np.random.default_rng(seed).lognormal(0.0, 2.0, X.shape[1])
    return (X @ sparse.diags(units)).tocsc(), y


def one_hot(seed: int, d: int = 10_000):
    """Twelve categories, some of them with many values: the columns of each add up to one."""
    rng = np.random.default_rng(seed)
    tables = []
    for values in rng.choice([3, 10, 50, 300, 1_000], 12):
        share = 1.0 / np.arange(1, values + 1)
        drawn = rng.choice(values, d, p=share / share.sum())
        ones = (np.ones(d), (np.arange(d), drawn))
        tables.append(sparse.csc_matrix(ones, shape=(d, values)))
    X = sparse.hstack(tables).tocsc()
    effects = rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < 0.05)
    return X, X @ (effects / np.sqrt(np.maximum(X.mean(axis=0).A1, 1e-3))) + rng.standard_normal(d)


def copies(seed: int, d: int = 400, n: int = 800):
    """Columns of which most stand there several times."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n // 4))[:, rng.integers(0, n // 4, n)]
    return X, X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(d)


def small(seed: int, d: int = 80, n: int = 60):
    """A table of the size of a class exercise: what counts is the time that any fit takes."""
    return tall(seed, d, n)


KINDS = {
    "text": text_like,
    "genes": gene_like,
    "tall": tall,
    "correlated": correlated,
    "badly scaled": badly_scaled,
    "one-hot": one_hot,
    "copies": copies,
    "small": small,
}


def random_groups(seed: int, n: int, count: int) -> list[list[int]]:
    """A partition of n columns into groups of random sizes."""
    label = np.sort(np.random.default_rng(seed).integers(0, count, n))
    return [np.flatnonzero(label == g).tolist() for g in np.unique(label)]


def spread(ratios: list[float]) -> str:
    """The best, the middle and the worst of several ratios."""
    return f"best {min(ratios):.2f}, median {np.median(ratios):.2f}, worst {max(ratios):.2f}"
