"""The sets that weights live in: which atom is best, and how far from optimal we are.

A domain is the convex hull of its vertices, and every vertex is a multiple of a single atom
(Algorithm 2 of the paper). That is all the loop needs: the linear minimiser over the domain is
the vertex of the atom with the largest *merit*, and the duality gap follows from that merit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_in_scale, check_positive

Floats = NDArray[np.float64]


class Domain(ABC):
    """A convex set whose vertices are multiples of single atoms.

    A domain must have a `scale`, a `merit`, `signs` and a `project`. All else is optional: what
    stands here is right for hulls of finitely many vertices, with a weight for each atom.
    """

    #: Whether the origin belongs to the set: the run then starts there.
    has_origin: ClassVar[bool] = False
    #: Whether the vertices are finitely many, each a multiple of a single atom.
    polytope: ClassVar[bool] = True
    #: Whether the set is bounded, so that a duality gap says how far the optimum may be.
    bounded: ClassVar[bool] = True
    #: Whether a merit belongs to one score, and changes by no more than that does.
    steady: ClassVar[bool] = False

    @property
    @abstractmethod
    def scale(self) -> float:
        """A vertex is so many times an atom, up to its sign."""

    @abstractmethod
    def merit(self, scores: Floats) -> Floats:
        """How much each atom promises: minus its linear cost as a vertex, divided by `scale`."""

    @abstractmethod
    def signs(self, scores: Floats) -> Floats:
        """The sign with which each atom would enter, given its score."""

    @abstractmethod
    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """The point of the set that is nearest to these weights of known atoms."""

    def sign(self, score: float) -> float:
        """The sign with which a single atom would enter."""
        return float(self.signs(np.array([score]))[0])

    def known_merit(self, ids: Sequence[int], scores: Floats) -> Floats:
        """The merit behind each weight of known atoms, given their ids and gradient."""
        return self.merit(scores)

    def blocks_of(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """Which weights of known atoms belong together: each atom's, as a rule."""
        return np.asarray(ids, dtype=np.int64)

    def gap(self, inner: float, best: float) -> float:
        """The gap <alpha - s, grad f(alpha)> of Algorithm 1, from <alpha, grad f> and best merit.

        It bounds f(alpha) - f* for every feasible alpha. Where the origin is feasible too, the
        linear minimum is never above zero.
        """
        if self.has_origin:
            best = max(best, 0.0)
        return max(inner + self.scale * best, 0.0)


class Symmetric(Domain):
    """A set in which every atom may enter with either sign, and promises as much with both."""

    def merit(self, scores: Floats) -> Floats:
        """The absolute value of each score."""
        return np.abs(scores)

    def signs(self, scores: Floats) -> Floats:
        """Against the gradient; an atom with score zero counts as positive."""
        return np.copysign(1.0, 0.0 - scores)


@dataclass(frozen=True)
class L1Ball(Symmetric):
    """Weights with absolute values that sum to at most `beta` (problem (1) of the paper)."""

    beta: float
    has_origin: ClassVar[bool] = True
    steady: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_in_scale("beta", check_positive("beta", self.beta, "the radius of the l1 ball"))

    @property
    def scale(self) -> float:
        """The radius of the ball."""
        return float(self.beta)

    def sign(self, score: float) -> float:
        """The same without an array, for rounds of one atom."""
        return -1.0 if score > 0 else 1.0

    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """The nearest weights of the ball: smaller ones of the same signs."""
        if float(np.abs(weights).sum()) <= self.scale:
            return weights
        return np.sign(weights) * onto_simplex(np.abs(weights), self.scale)


@dataclass(frozen=True)
class Simplex(Domain):
    """Nonnegative weights that sum to one."""

    steady: ClassVar[bool] = True

    @property
    def scale(self) -> float:
        """Vertices are the atoms."""
        return 1.0

    def merit(self, scores: Floats) -> Floats:
        """Minus each score."""
        return np.negative(scores)

    def signs(self, scores: Floats) -> Floats:
        """Always positive."""
        return np.ones_like(scores)

    def sign(self, score: float) -> float:
        """Positive."""
        return 1.0

    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """The nearest weights of the simplex."""
        return onto_simplex(weights, self.scale)


@dataclass(frozen=True)
class SolidSimplex(Simplex):
    """Nonnegative weights that sum to at most `beta`: the origin is a vertex as well."""

    beta: float = 1.0
    has_origin: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_in_scale("beta", check_positive("beta", self.beta, "the largest sum"))

    @property
    def scale(self) -> float:
        """The largest sum."""
        return float(self.beta)

    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """The nearest weights of the set."""
        inside = np.maximum(weights, 0.0)
        return inside if inside.sum() <= self.scale else onto_simplex(weights, self.scale)


@dataclass(frozen=True)
class Nonnegative(Simplex):
    """Nonnegative weights of any size, for objectives that do not depend on their scale."""

    polytope: ClassVar[bool] = False

    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """Without what is negative."""
        return np.maximum(weights, 0.0)


@dataclass(frozen=True)
class WholeSpace(Symmetric):
    """Weights of any size, for objectives that curve so much that a gap is a sum over all atoms.

    The score of an atom is its share of that sum; as only the best score is known of most atoms,
    the gap is bounded by `count` times that.

    Parameters
    ----------
    count : int
        How many atoms there are on all nodes.
    """

    count: int
    has_origin: ClassVar[bool] = True
    polytope: ClassVar[bool] = False

    @property
    def scale(self) -> float:
        """As many shares as there are atoms."""
        return float(self.count)

    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """The weights as they are."""
        return weights


def onto_simplex(weights: Floats, total: float) -> Floats:
    """The nearest nonnegative weights with this sum (by sorting)."""
    falling = np.sort(weights)[::-1]
    # What all lose alike: as much as the largest k lose, if they have the sum, for the worst k.
    excess = (falling.cumsum() - total) / np.arange(1, len(weights) + 1)
    return np.maximum(weights - excess.max(), 0.0)
