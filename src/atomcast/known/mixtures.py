"""What a coordinator knows of the mixtures that nodes have sent, and what is made of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.mixture import Mixture

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

#: So many mixtures of every node are remembered. The more, the fewer rounds; the time that it takes
#: to combine them grows with the cube.
REMEMBERED = 8
#: Weights that cancel leave this share of the largest behind, at most.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class MixedPoint:
    """A point that is made of mixtures, as far as this process knows it.

    Parameters
    ----------
    ids, weights : arrays of shape (k,)
        The weights that are known here: all at the coordinator, its own at a node.
    shares : array of shape (nodes, REMEMBERED) or None
        What each of the latest mixtures of every node counts, the newest of which is the last;
        None where a run begins with weights that are not made of mixtures.
    """

    ids: Ids
    weights: Floats
    shares: Floats | None = None

    @staticmethod
    def of(parts: Sequence[tuple[Ids, Floats]]) -> MixedPoint:
        """The point with the weights of several nodes, by their global ids."""
        ids = np.concatenate([np.zeros(0, dtype=np.int64), *(part for part, _ in parts)])
        weights = np.concatenate([np.zeros(0), *(part for _, part in parts)])
        weights[np.abs(weights) <= ROUNDING * np.max(np.abs(weights), initial=0.0)] = 0.0
        order = np.argsort(ids)
        return MixedPoint(ids[order], weights[order])

    def support(self) -> tuple[Ids, Floats]:
        """The ids and weights where a weight is not zero."""
        used = np.flatnonzero(self.weights)
        return self.ids[used], self.weights[used]

    def scaled(self, factor: float) -> MixedPoint:
        """The same direction from the origin, at another distance."""
        shares = None if self.shares is None else factor * self.shares
        return MixedPoint(self.ids, factor * self.weights, shares)


@dataclass(frozen=True, eq=False)
class NodeBasis:
    """The mixtures of one node as a basis: what their coefficients mean.

    Parameters
    ----------
    node : int
    images : array of shape (D, k)
        Directions of unit length that are orthogonal to each other.
    ids : array of shape (F,)
        The global ids of what is mixed, increasing.
    rows : array of shape (F, k)
        What each of them weighs in the directions.
    shares : array of shape (r, k)
        How the directions are made of the r mixtures, the newest of which is the last.
    start : array of shape (k,)
        The coefficients at the present point.
    """

    node: int
    images: Floats
    ids: Ids
    rows: Floats
    shares: Floats
    start: Floats


class Mixtures:
    """The latest mixtures of every node.

    Mixtures of one node are more and more alike from round to round, so that their coefficients
    would be large numbers with differences that count. Hence directions in their place.

    Parameters
    ----------
    nodes : int

    Attributes
    ----------
    shares : array of shape (nodes, REMEMBERED)
        What each mixture counts at the present point; the newest is the last.
    """

    def __init__(self, nodes: int) -> None:
        self._latest: list[deque[Mixture]] = [deque(maxlen=REMEMBERED) for _ in range(nodes)]
        self.shares: Floats = np.zeros((nodes, REMEMBERED))

    def add(self, mixture: Mixture) -> None:
        """Know of a further mixture."""
        self._latest[mixture.node].append(mixture)
        shares = self.shares[mixture.node]
        shares[:-1], shares[-1] = shares[1:].copy(), 0.0

    def parts(self) -> list[NodeBasis]:
        """The bases of all nodes that have sent something."""
        known = enumerate(zip(self._latest, self.shares, strict=True))
        return [node_basis(node, latest, shares) for node, (latest, shares) in known if latest]


def node_basis(node: int, known: Sequence[Mixture], present: Floats) -> NodeBasis:
    """The mixtures of a node as a basis; `present` are their shares, the newest of which is last.

    Where weights are not known, it has no rows.
    """
    from scipy.linalg import qr, solve_triangular

    images = np.stack([mixture.image.dense() for mixture in known], axis=1)
    directions, triangle, order = qr(images, mode="economic", pivoting=True, check_finite=False)
    length = np.abs(np.diag(triangle))
    k = int(np.count_nonzero(length > 1e-10 * length[0]))  # the rest is rounding
    shares = np.zeros((len(known), k))
    shares[order[:k]] = solve_triangular(triangle[:k, :k], np.eye(k), check_finite=False)
    ids = np.unique(np.concatenate([mixture.ids for mixture in known]))
    weights = np.zeros((len(ids), len(known)))
    for column, mixture in zip(weights.T, known, strict=True):
        column[np.searchsorted(ids, mixture.ids)] = mixture.weights.values
    directions = directions[:, :k]
    start = directions.T @ (images @ present[-len(known) :])
    return NodeBasis(node, directions, ids, weights @ shares, shares, start)
