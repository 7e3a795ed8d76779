"""Synthetic problems: the paper's, and one of the size and shape of its speech data."""

from __future__ import annotations

import os
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._checks import check_count
from atomcast.data.matrices import IntArray, Matrix

_CHUNK_ENTRIES = 1 << 26
"""Matrix entries, stored or not, of which positions of nonzeros are drawn in one go."""

_CHUNK_ROWS = 1 << 16
"""Examples written in one go; part of what a seed means, so not to be changed."""


class SparseRegression(NamedTuple):
    """A regression problem whose true weights are known."""

    X: Matrix
    y: NDArray[np.float64]
    alpha: NDArray[np.float64]


class LowerBoundInstance(NamedTuple):
    """Orthonormal atoms (columns of `A`) and the node, 0 or 1, that owns each."""

    A: NDArray[np.float64]
    owner: IntArray


class LabelledExamples(NamedTuple):
    """Examples (rows of `X`) and their labels, 1 or -1."""

    X: NDArray[np.float32]
    y: IntArray


def make_sparse_regression(
    d: int,
    n: int,
    atom_density: float,
    solution_density: float,
    *,
    noise: float = 1e-3,
    random_state: Any = 0,
) -> SparseRegression:
    """Make the synthetic LASSO problem of section 6.2 of the paper.

    Parameters
    ----------
    d, n : int
        Numbers of examples and of features (the paper: 10,000 and 100,000).
    atom_density : float in (0, 1]
        s_A: every entry of `X` is nonzero with this probability, and then drawn from N(0, 1).
    solution_density : float in (0, 1]
        s_alpha: the share of nonzeros in the true weights (at least one), drawn from N(0, 1).
    noise : float
        *Variance* of the noise in y, as in the paper's N(0, 1e-3 I).
    random_state : int, None or numpy Generator

    Returns
    -------
    SparseRegression
        `X` is CSC of shape (d, n), `y` = X alpha + noise of shape (d,), `alpha` of shape (n,).
    """
    check_count("d", d, "examples")
    check_count("n", n, "features")
    _share("atom_density", atom_density)
    _share("solution_density", solution_density)
    if not noise >= 0:
        raise ValueError(f"noise={noise!r} is not accepted: it is a variance, so 0 or more")
    rng = np.random.default_rng(random_state)
    X = _random_sparse(d, n, atom_density, rng)
    alpha = np.zeros(n)
    support = rng.choice(n, size=max(1, round(solution_density * n)), replace=False)
    alpha[support] = rng.standard_normal(len(support))
    y = X @ alpha + np.sqrt(noise) * rng.standard_normal(d)
    return SparseRegression(X, y, alpha)


def make_lower_bound(eps: float, random_state: Any = 0) -> LowerBoundInstance:
    """Make the instance behind the communication lower bound of section 4.2 of the paper.

    Minimising ||A alpha||^2 over the simplex to within `eps` takes more than 3d/4 of the d
    orthonormal atoms, so more than d/4 of either node.

    Parameters
    ----------
    eps : float in (0, 1/24]
        The accuracy; d is 1/(6 eps), rounded *down* to a multiple of 4 because rounded up the
        claim would no longer hold, so at least 4 only up to eps = 1/24.
    random_state : int, None or numpy Generator

    Returns
    -------
    LowerBoundInstance
        `A` of shape (d, d), block diagonal with two random orthonormal blocks; `owner` of shape
        (d,): 0 for the columns of the first block, 1 for the others.
    """
    if not 0 < eps <= 1 / 24:
        raise ValueError(
            f"eps={eps!r} is not accepted: it must be in (0, 1/24], so that d = 1/(6 eps) is 4 or "
            "more; try eps=0.001"
        )
    half = 2 * int(1 / (24 * eps) + 1e-9)  # the tiny addend undoes rounding in 1/eps
    rng = np.random.default_rng(random_state)
    A = np.zeros((2 * half, 2 * half), order="F")
    A[:half, :half] = _random_orthonormal(half, rng)
    A[half:, half:] = _random_orthonormal(half, rng)
    return LowerBoundInstance(A, np.repeat(np.arange(2), half))


def make_speech_like(
    n: int,
    d: int = 120,
    classes: int = 42,
    *,
    rank: int = 16,
    noise: float = 1.0,
    random_state: Any = 0,
    out: str | os.PathLike[str] | None = None,
) -> LabelledExamples:
    """Make examples like the paper's speech data (8.7 million x 120): largest class against rest.

    Every class is a cloud around its own centre; clouds share a low-dimensional spread, overlap,
    and have sizes that fall like those of speech sounds.

    Parameters
    ----------
    n : int
        Number of examples.
    d, classes : int
        Numbers of features and of classes (2 or more).
    rank : int
        The dimension of the spread that clouds share; d, if d is less.
    noise : float
        How far examples lie off that, in every direction. By default no two examples are close;
        with low rank and little noise, examples cluster.
    random_state : int, None or numpy Generator
    out : path of a .npy file, optional
        Write `X` there, chunk by chunk, and return it as a read-only memory-map; then no more
        than one chunk is in memory.

    Returns
    -------
    LabelledExamples
        `X` is float32 of shape (n, d); `y` of shape (n,) is 1 for the largest class, else -1.
    """
    check_count("n", n, "examples")
    check_count("d", d, "features")
    check_count("classes", classes, "of which the largest is told from the rest", 2)
    check_count("rank", rank, "the dimension of the spread that clouds share")
    if not (isinstance(noise, Real) and 0 <= noise < np.inf):
        raise ValueError(f"noise={noise!r} is not accepted: a number from 0 on is needed")
    if out is not None and Path(out).suffix != ".npy":
        raise ValueError(f"out={os.fspath(out)!r} is not accepted: its name must end in .npy")
    rng = np.random.default_rng(random_state)
    labels = _class_labels(n, classes, rng)
    rank = min(rank, d)
    centres = 0.3 * rng.standard_normal((classes, d), dtype=np.float32)
    spread = rng.standard_normal((rank, d), dtype=np.float32) / np.float32(np.sqrt(rank))

    X: NDArray[np.float32]
    if out is None:
        X = np.empty((n, d), dtype=np.float32)
    else:
        X = np.lib.format.open_memmap(out, mode="w+", dtype=np.float32, shape=(n, d))
    for start in range(0, n, _CHUNK_ROWS):
        rows = X[start : start + _CHUNK_ROWS]
        rng.standard_normal(out=(apart := np.empty(rows.shape, np.float32)), dtype=np.float32)
        shared = rng.standard_normal((len(rows), rank), dtype=np.float32) @ spread
        if noise != 1:
            apart *= np.float32(noise)
        rows[...] = centres[labels[start : start + _CHUNK_ROWS]] + shared + apart
    if isinstance(X, np.memmap):
        X.flush()
        X = np.load(out, mmap_mode="r")  # type: ignore[arg-type]
    return LabelledExamples(X, np.where(labels == 0, 1, -1).astype(np.int64))


def _random_sparse(d: int, n: int, density: float, rng: np.random.Generator) -> Matrix:
    """Return a CSC matrix whose entries are nonzero independently of each other."""
    per_chunk = max(1, int(_CHUNK_ENTRIES * min(1.0, 0.01 / density)) // d)
    rows, counts = [], []
    for start in range(0, n, per_chunk):
        width = min(per_chunk, n - start)
        places = _bernoulli_positions(d * width, density, rng)
        rows.append((places % d).astype(np.int32))
        counts.append(np.bincount(places // d, minlength=width))
    indices = np.concatenate(rows)
    rows.clear()
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(counts))))
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    else:
        indices = indices.astype(np.int64)
    return sparse.csc_matrix((rng.standard_normal(len(indices)), indices, indptr), shape=(d, n))


def _bernoulli_positions(length: int, p: float, rng: np.random.Generator) -> IntArray:
    """Return, sorted, the positions of the successes in `length` trials of probability `p`.

    Gaps between successes are geometric, so the work is that of the successes alone.
    """
    expected = length * p
    batch = int(expected + 4 * np.sqrt(expected) + 16)
    found: list[IntArray] = []
    last = -1
    while last < length:
        steps = rng.geometric(p, size=batch)
        # A tiny p can give gaps whose sum would overflow; beyond the end all gaps are alike.
        positions = last + np.cumsum(np.minimum(steps, length + 1))
        found.append(positions)
        last = int(positions[-1])
    places = np.concatenate(found)
    return places[: np.searchsorted(places, length)]


def _random_orthonormal(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    orthonormal: NDArray[np.float64] = Q * np.sign(np.diag(R))  # else not uniformly distributed
    return orthonormal


def _class_labels(n: int, classes: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return shuffled labels; class k has a share that falls with k, so that 0 is the largest."""
    shares = 1 / np.sqrt(1 + np.arange(classes))
    edges = np.round(n * np.cumsum(shares) / shares.sum()).astype(np.int64)
    counts = np.diff(edges, prepend=0)
    labels = np.repeat(np.arange(classes, dtype=np.int32), counts)
    rng.shuffle(labels)
    return labels


def _share(parameter: str, value: float) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"{parameter}={value!r} is not accepted: it is a share, in (0, 1]")
