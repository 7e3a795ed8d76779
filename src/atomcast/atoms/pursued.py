"""Features as matching pursuit sees them: how much of all residuals each one explains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.atoms.explicit import PIECE, DenseAtoms, SparseAtoms, explicit_atoms
from atomcast.atoms.images import ManyImages
from atomcast.atoms.kept_rows import KeptRows
from atomcast.data.shards import Shard
from atomcast.messages.atom import EPS, ROUNDINGS, Atom, Misfit
from atomcast.objectives import SquaredError

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: A column that centring leaves less of than this share is constant.
CONSTANT = 1e-12


class PursuitActiveSet(ManyImages):
    """Known features with a weight for each target, and what a pursuit makes of their residuals.

    Parameters
    ----------
    objective : SquaredError
        With targets of shape (d, T).
    normalize : bool
        Whether scores are divided by the lengths of the columns.

    Attributes
    ----------
    roots : float or array of shape (d, 1)
        The roots of the weights of examples: with these, products are those of the objective.
    inverse : array of shape (k, d) or None
        The pseudo-inverse of the chosen columns, once the pursuit is at its end: scores then are
        those of the exact recovery condition.
    recovery : float or None
        The largest of these scores.
    """

    objective: SquaredError

    def __init__(self, objective: SquaredError, normalize: bool) -> None:
        super().__init__(objective, objective.y.shape[1])
        self.normalize = normalize
        weights = objective.sample_weight
        self.roots = 1.0 if weights is None else np.sqrt(weights)[:, np.newaxis]
        self.inverse: Floats | None = None
        self.recovery: float | None = None

    def content(self, ids: NDArray[np.int64]) -> float | None:
        """The exact recovery coefficient, if it was asked for."""
        return self.recovery

    def seen(self, block: Floats) -> Floats:
        """Columns as the objective sees them: with an intercept, without their means; weighted."""
        if self.objective.fit_intercept:
            block = np.where(self._lengths(block) > 0.0, self.objective.centred(block), 0.0)
        return self.roots * block

    def residual(self) -> Floats:
        """What is left of the targets, weighted, shape (d, T)."""
        return self.roots * self.objective.residual(self.image)

    def _lengths(self, block: Floats) -> Floats:
        return lengths_of(block, self.objective.fit_intercept, self.objective.sample_weight)

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Floats | None = None) -> Misfit:
        """Compare stated scores with the lengths of the products of columns and residuals."""
        assert self.columns is not None
        gradient = self.gradient if iterate is None else iterate
        start = self.position[ids[0]] // self.targets
        block = self.columns.block(start, start + len(ids))
        length = np.linalg.norm(block, axis=0)
        units = self._lengths(block) if self.normalize else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.nan_to_num(np.linalg.norm(gradient.T @ block, axis=0) / units)
            size = np.linalg.norm(gradient) * length / units
            whole = np.linalg.norm(self.roots * block, axis=0)
            unsure = 1.0 + (whole / units if self.normalize else 0.0)
        allowed = ROUNDINGS * (self.objective.d + 8) * EPS * np.nan_to_num(size * unsure)
        return Misfit(stated - score, allowed, length)


class PursuitAtoms:
    """A node's features; the score of one is the length of its products with all residuals."""

    def __init__(self, features: DenseAtoms | SparseAtoms, lengths: Floats | None) -> None:
        self.features, self.lengths = features, lengths
        self.d, self.n = features.d, features.n

    def scores(self, replica: Replica) -> Floats:
        """How much of the residuals each feature explains, shape (n,); not negative."""
        active = replica.active
        assert isinstance(active, PursuitActiveSet)
        if active.inverse is None:
            scores = np.linalg.norm(self.features.products(active.gradient), axis=0)
        else:
            scores = np.linalg.norm(self.features.products(active.inverse.T), ord=1, axis=0)
        if self.lengths is None:
            return scores
        return np.divide(scores, self.lengths, out=np.zeros(self.n), where=self.lengths > 0.0)

    def take(self, rows: NDArray[np.int64]) -> PursuitAtoms:
        """Some of the features."""
        lengths = None if self.lengths is None else self.lengths[rows]
        return PursuitAtoms(self.features.take(rows), lengths)

    def atom(self, j: int, id: int) -> Atom:
        """The j-th feature."""
        return self.features.atom(j, id)


def lengths_of(matrix: Any, centred: bool, weights: Floats | None = None) -> Floats:
    """The Euclidean norm of each column, without its mean if centred; zero if only that is left.

    Where rows have weights, these count in the squares, and in the means.
    """
    d, n = matrix.shape
    result = np.empty(n)
    weights = np.ones(d) if weights is None else weights
    total = float(weights.sum())
    if sparse.issparse(matrix):
        column = np.repeat(np.arange(n), np.diff(matrix.indptr))
        counts = weights[matrix.indices]
        sums = partial(np.bincount, column, minlength=n)
        mean = sums(counts * matrix.data) / total if centred else np.zeros(n)
        apart = sums(counts * (matrix.data - mean[column]) ** 2)
        result = np.sqrt(apart + (total - sums(counts)) * mean**2)
        whole = np.sqrt(sums(counts * matrix.data.astype(np.float64) ** 2))
        return np.where(result > CONSTANT * whole, result, 0.0)
    width = max(PIECE // max(d, 1), 1)
    for j in range(0, n, width):
        part = matrix[:, j : j + width].astype(np.float64)
        length = whole = np.sqrt(weights @ part**2)
        if centred:
            length = np.sqrt(weights @ (part - weights @ part / total) ** 2)
        result[j : j + width] = np.where(length > CONSTANT * whole, length, 0.0)
    return result


def pursuit_atoms(
    normalize: bool, centred: bool, weights: Floats | None, shard: Shard
) -> PursuitAtoms:
    """The features of a node's shard as atoms of a pursuit."""
    features = explicit_atoms(shard)
    assert not isinstance(features, KeptRows)  # pursuits have no folds
    lengths = lengths_of(features.matrix, centred, weights) if normalize else None
    return PursuitAtoms(features, lengths)
