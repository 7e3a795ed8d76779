"""Features with a weight for each class, and the multinomial loss of all classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.explicit import ColumnAtoms, explicit_atoms
from atomcast.atoms.images import ManyImages
from atomcast.data.shards import Shard
from atomcast.domains.balls import Domain
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom, Misfit
from atomcast.objectives import Multinomial, SquaredError

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: So many numbers are multiplied with all columns at a time, or as many as there are probabilities.
WIDE = 1 << 18
#: Up to so many products a class, those of all classes with each other take less time than calls.
FEW = 1 << 17


class MulticlassActiveSet(ManyImages):
    """Known features with a weight for each class."""

    # Its curvature has a form of its own, which only `hessian` needs.
    objective: Multinomial  # type: ignore[assignment]

    def __init__(self, objective: Any) -> None:
        super().__init__(objective, objective.classes)
        self.classes = objective.classes

    def merit(self, scores: Floats) -> Floats:
        """How much weights promise: those of an l1 ball may be of either sign."""
        return np.abs(scores)

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
        merit = self.merit(scores)
        difference = np.where(merit >= merit.max(axis=0) - 2 * allowed, stated - scores, np.inf)
        nearest = np.argmin(np.abs(difference), axis=0)
        return Misfit(difference[nearest, np.arange(len(ids))], allowed, length)

    def products(self, start: int, stop: int) -> Floats:
        """Columns start to stop of A'HA, H the curvature at the current image."""
        return self.hessian(np.arange(len(self)))[:, start:stop]

    def hessian(self, positions: NDArray[np.int64]) -> Floats:
        """The part of A'HA that belongs to some of the weights, shape (m, m)."""
        assert self.columns is not None
        curvature = self.objective.curvature(self.image)
        p, c = curvature.probabilities, curvature.sample_weight
        weighted = c[:, None] * p
        own = weighted * curvature.complements
        feature, of_class = np.divmod(positions, self.classes)
        roots = np.ascontiguousarray(p.T * np.sqrt(c))
        result = -self.columns.scaled_products(feature, roots, of_class)
        if len(positions) ** 2 * len(p) <= FEW * self.classes:
            each = self.columns.scaled_products(feature, np.sqrt(own.T), of_class)
            np.copyto(result, each, where=of_class[:, None] == of_class)
        else:
            for t in range(self.classes):
                rows = (of_class == t).nonzero()[0]
                chosen = feature[rows]
                result[np.ix_(rows, rows)] = self.columns.cross(chosen, chosen, own[:, t])
        if curvature.intercept_inverse is not None:
            across = self._with_intercepts(weighted, p, own)[feature, of_class]
            result -= across @ curvature.intercept_inverse @ across.T
        return result

    def _with_intercepts(self, weighted: Floats, p: Floats, own: Floats) -> Floats:
        """The products of features, for a class each, with the intercept of every class.

        The shape is (features, T, T), where the last axis is that of the intercepts.
        """
        assert self.columns is not None
        d, T = p.shape
        result, step = np.empty((self.columns.count, T, T)), max(WIDE // p.size, 1)
        for t in range(0, T, step):  # as many classes at a time as there is room for
            some = np.arange(t, min(t + step, T))
            bends = -weighted[:, some, None] * p[:, None, :]
            bends[:, some - t, some] = own[:, some]
            products = self.columns.products(bends.reshape(d, -1))
            result[:, some] = products.reshape(-1, len(some), T)
        return result


class MultiTargetActiveSet(MulticlassActiveSet):
    """Known features with a weight for each of several targets, which do not depend on others."""

    objective: SquaredError  # type: ignore[assignment]

    def __init__(self, objective: SquaredError, domain: Domain) -> None:
        super().__init__(objective)
        self._domain = domain

    def merit(self, scores: Floats) -> Floats:
        """How much weights promise."""
        return self._domain.merit(scores)

    def products(self, start: int, stop: int) -> Floats:
        """Columns start to stop of A'HA: those of features, for each target by itself."""
        first, last = start // self.classes, -(-stop // self.classes)
        between = np.kron(ExplicitActiveSet.products(self, first, last), np.eye(self.classes))
        within = slice(start - first * self.classes, stop - first * self.classes)
        return np.asarray(between[:, within], dtype=np.float64)

    def hessian(self, positions: NDArray[np.int64]) -> Floats:
        """The part of A'HA that belongs to some of the weights, shape (m, m)."""
        return self.products(0, len(self))[np.ix_(positions, positions)]


class MulticlassAtoms:
    """A node's features; the score of a feature is that of its best class, with its sign."""

    def __init__(self, features: ColumnAtoms) -> None:
        self.features = features
        self.d, self.n = features.d, features.n

    def scores(self, replica: Replica) -> Floats:
        """The score of the class for which each feature promises most, shape (n,)."""
        active = replica.active
        assert isinstance(active, MulticlassActiveSet)
        scores = self.features.products(active.gradient)
        best = np.argmax(active.merit(scores), axis=0)
        return scores[best, np.arange(self.n)]

    def atom(self, j: int, id: int) -> Atom:
        """The j-th feature."""
        return self.features.atom(j, id)


def multiclass_atoms(shard: Shard) -> MulticlassAtoms:
    """The features of a node's shard as atoms."""
    return MulticlassAtoms(explicit_atoms(shard))
