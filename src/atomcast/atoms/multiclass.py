"""Features with a weight for each class: one broadcast of a feature serves all classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.active_set import ActiveSet
from atomcast.atoms.atom import Atom
from atomcast.atoms.explicit import DenseAtoms, SparseAtoms, explicit_atoms
from atomcast.columns import Columns, with_appended
from atomcast.data.shards import Shard
from atomcast.domains import Domain
from atomcast.objectives import Multinomial
from atomcast.problem import Problem

if TYPE_CHECKING:
    from atomcast.replica import Replica

Floats = NDArray[np.float64]


class MulticlassActiveSet(ActiveSet):
    """Known features, T weights each, and an objective of the image Z = A W of shape (d, T).

    The weights stand feature by feature, and within a feature class by class.
    """

    quadratic = False

    def __init__(self, objective: Multinomial) -> None:
        super().__init__()
        self.objective = objective
        self.lower_bound = objective.lower_bound
        self.classes = objective.classes
        self.columns: Columns | None = None
        self.image: Floats = np.zeros((objective.d, self.classes))
        self._gradient: tuple[Floats, Floats] | None = None
        self._value: tuple[Floats, float] | None = None

    def negligible(self) -> float:
        """What the objective says."""
        return self.objective.negligible

    @property
    def gradient(self) -> Floats:
        """The gradient at the current image, shape (d, T), computed once per image."""
        if self._gradient is None or self._gradient[0] is not self.image:
            self._gradient = self.image, self.objective.gradient(self.image)
        return self._gradient[1]

    def _width(self, atom: Atom) -> int:
        return self.classes

    def _store(self, atoms: Sequence[Atom]) -> None:
        self.columns = with_appended(self.columns, self.objective.d, atoms)

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

    def _combined(self, weights: Floats) -> Floats:
        if self.columns is None:
            return np.zeros((self.objective.d, self.classes))
        by_class = weights.reshape(-1, self.classes)
        return np.column_stack(
            [self.columns.combine(np.ascontiguousarray(column)) for column in by_class.T]
        )

    def value(self) -> float:
        """The objective at the current image, computed once per image."""
        if self._value is None or self._value[0] is not self.image:
            self._value = self.image, self.objective.value(self.image)
        return self._value[1]

    def inner(self) -> float:
        """The product of image and gradient."""
        return float(np.vdot(self.image, self.gradient))

    def scores(self) -> Floats:
        """The gradient with respect to each weight."""
        if self.columns is None:
            return np.zeros(0)
        return self.columns.products(self.gradient).ravel()

    def set_weights(self, weights: Floats) -> None:
        """Replace all weights; the image is computed afresh."""
        self._weights[: len(self.ids)] = weights
        self.image = self._combined(self.weights)

    def move(self, change: Floats, step: float) -> None:
        """Add `step` times a change to the weights."""
        self._shift(change, self._combined(change), step)

    def search(self, change: Floats, max_step: float) -> float:
        """Move along a change by the best step in [0, max_step]; returns that step."""
        image_change = self._combined(change)
        step = self.objective.line_search(self.image, image_change, max_step)
        self._shift(change, image_change, step)
        return step

    def _shift(self, change: Floats, image_change: Floats, step: float) -> None:
        self._weights[: len(self.ids)] += step * change
        self.image = self.image + step * image_change

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


def _multiclass_atoms(shard: Shard) -> MulticlassAtoms:
    features = explicit_atoms(shard)
    assert isinstance(features, DenseAtoms | SparseAtoms)
    return MulticlassAtoms(features)


def multiclass_problem(objective: Multinomial, domain: Domain) -> Problem:
    """Minimise the multinomial loss over a domain of all weights, of every feature and class."""
    return Problem(domain, partial(MulticlassActiveSet, objective), _multiclass_atoms, objective.d)
