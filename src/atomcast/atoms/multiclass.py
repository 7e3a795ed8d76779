"""Features with a weight for each class: one broadcast of a feature serves all classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.explicit import DenseAtoms, SparseAtoms, explicit_atoms
from atomcast.data.shards import Shard
from atomcast.domains.base import Domain
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom, Misfit, misfit_of
from atomcast.objectives import Multinomial

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]


class MulticlassActiveSet(ExplicitActiveSet):
    """Known features, T weights each, and an objective of the image Z = A W of shape (d, T).

    The weights stand feature by feature, and within a feature class by class.
    """

    # Its curvature has a form of its own, which only `hessian` needs.
    objective: Multinomial  # type: ignore[assignment]

    def __init__(self, objective: Multinomial) -> None:
        super().__init__(objective)  # type: ignore[arg-type]
        self.classes = objective.classes
        self.image = np.zeros((objective.d, self.classes))

    def _width(self, atom: Atom) -> int:
        return self.classes

    def total(self, n: int) -> int:
        """A weight for each feature and class."""
        return n * self.classes

    def support(self) -> tuple[NDArray[np.int64], Floats]:
        """Numbers feature * T + class and weights where the weight is not zero."""
        used = np.flatnonzero(self.weights)
        ids = np.array(self.ids, dtype=np.int64)[used] * self.classes + used % self.classes
        return ids, self.weights[used].copy()

    def vertex(self, domain: Domain, id: int, score: float) -> Floats:
        """The weight of the class for which the feature promises most."""
        start = self.position[id]
        scores = self.scores()[start : start + self.classes]
        best = int(np.argmax(domain.merit(scores)))
        weights = np.zeros(len(self))
        weights[start + best] = domain.scale * domain.signs(scores[best : best + 1])[0]
        return weights

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Floats | None = None) -> Misfit:
        """Compare the score of a feature's best class; of classes that tie, it may be any."""
        assert self.columns is not None
        gradient = np.asarray((self.gradient if iterate is None else iterate).T, order="C")
        start = self.position[ids[0]] // self.classes
        scores = np.empty((self.classes, len(ids)))
        for t, row in enumerate(gradient):
            scores[t], length = self.columns.measured(start, start + len(ids), row)
        allowed = np.max([self._rounding(length, row) for row in gradient], axis=0)
        best = np.abs(scores).max(axis=0)
        difference = np.where(np.abs(scores) >= best - 2 * allowed, stated - scores, np.inf)
        nearest = np.argmin(np.abs(difference), axis=0)
        return misfit_of(difference[nearest, np.arange(len(ids))], allowed, length)

    def _combined(self, weights: Floats) -> Floats:
        if self.columns is None:
            return np.zeros((self.objective.d, self.classes))
        by_class = weights.reshape(-1, self.classes)
        return np.column_stack(
            [self.columns.combine(np.ascontiguousarray(column)) for column in by_class.T]
        )

    def inner(self) -> float:
        """The product of image and gradient."""
        return float(np.vdot(self.image, self.gradient))

    def scores(self) -> Floats:
        """The gradient with respect to each weight."""
        if self.columns is None:
            return np.zeros(0)
        return self.columns.products(self.gradient).ravel()

    def products(self, start: int, stop: int) -> Floats:
        """Columns start to stop of A'HA, H the curvature at the current image."""
        return self.hessian(np.arange(len(self)))[:, start:stop]

    def hessian(self, positions: NDArray[np.int64]) -> Floats:
        """The part of A'HA that belongs to some of the weights, shape (m, m)."""
        assert self.columns is not None
        curvature = self.objective.curvature(self.image)
        p, c = curvature.probabilities, curvature.sample_weight
        own = p * curvature.complements
        feature, of_class = np.divmod(positions, self.classes)
        result = np.empty((len(positions),) * 2)
        across = np.empty((self.classes, len(positions)))  # intercepts with weights
        where = [np.flatnonzero(of_class == t) for t in range(self.classes)]
        for t, rows in enumerate(where):
            bends = -c[:, None] * p * p[:, [t]]
            bends[:, t] = c * own[:, t]
            for u, columns in enumerate(where[: t + 1]):
                part = self.columns.cross(feature[rows], feature[columns], bends[:, u])
                result[np.ix_(rows, columns)] = part
                result[np.ix_(columns, rows)] = part.T
            across[:, rows] = self.columns.products(bends)[feature[rows]].T
        if curvature.intercept_inverse is not None:
            result -= across.T @ curvature.intercept_inverse @ across
        return result


class MulticlassAtoms:
    """A node's features; the score of a feature is that of its best class, with its sign."""

    def __init__(self, features: DenseAtoms | SparseAtoms) -> None:
        self.features = features
        self.d, self.n = features.d, features.n

    def scores(self, replica: Replica) -> Floats:
        """The largest score by absolute value over the classes, shape (n,)."""
        active = replica.active
        assert isinstance(active, MulticlassActiveSet)
        best = np.zeros(self.n)
        for t in range(active.classes):
            scores = self.features.products(np.ascontiguousarray(active.gradient[:, t]))
            best = np.where(np.abs(scores) > np.abs(best), scores, best)
        return best

    def atom(self, j: int, id: int) -> Atom:
        """The j-th feature."""
        return self.features.atom(j, id)


def multiclass_atoms(shard: Shard) -> MulticlassAtoms:
    """The features of a node's shard as atoms."""
    features = explicit_atoms(shard)
    assert isinstance(features, DenseAtoms | SparseAtoms)
    return MulticlassAtoms(features)
