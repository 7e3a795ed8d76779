"""The owners' side of a small problem: norms of images of few coefficients, and their cones.

The problem is

    min over c of  c'Pc / 2 + q'c   so that   sum over groups g of  omega_g ||(W c)_g||_2 <= beta,

where W is made of a block of rows for each node, which has m coefficients of its own. With a
bound t_g for each norm, that is a second-order cone program. A node knows its own rows of W, its
bounds and their duals, and answers questions of whoever solves the problem (`interior_point`) with
few numbers; so it does not matter whether it is asked from near or from afar.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Smaller parts of a whole are rounding.
FLAT = 1e-8

Question = Literal["size", "enter", "settle", "room", "move", "face"]
QUESTIONS: tuple[Question, ...] = get_args(Question)


class Owners(Protocol):
    """The nodes, as far as whoever solves the problem knows them."""

    def __call__(self, question: Question, common: Floats, each: Floats) -> Floats:
        """What the nodes answer, a row each; `common` is for all, a row of `each` for one."""
        ...


@dataclass(frozen=True, eq=False)
class Norms:
    """The rows of W, in the order of nodes and then of groups, and the norms of their groups.

    Parameters
    ----------
    rows : array of shape (F, m)
        Row f says how entry f is made of the coefficients of its node.
    node : array of shape (F,)
        Whose entry it is; every node has one.
    starts : array of shape (G,)
        Where the groups begin.
    omega : array of shape (G,)
    """

    rows: Floats
    node: Positions
    starts: Positions
    omega: Floats

    @cached_property
    def group(self) -> Positions:
        """The group of each entry, shape (F,)."""
        sizes = np.diff(np.append(self.starts, len(self.rows)))
        return np.repeat(np.arange(len(self.starts)), sizes)

    @cached_property
    def of_node(self) -> Positions:
        """Where the entries of each node begin."""
        return np.flatnonzero(np.append(True, np.diff(self.node)))

    @cached_property
    def of_group(self) -> Positions:
        """Where the groups of each node begin."""
        return np.flatnonzero(np.append(True, np.diff(self.node[self.starts])))

    def forth(self, c: Floats) -> Floats:
        """The entries W c of coefficients of shape (N, m)."""
        return np.einsum("fm,fm->f", self.rows, c[self.node])

    def back(self, entries: Floats) -> Floats:
        """The product of W' with entries, shape (N, m)."""
        return np.add.reduceat(self.rows * entries[:, None], self.of_node)

    def dot(self, left: Floats, right: Floats) -> Floats:
        """The inner product of entries, group by group."""
        return np.add.reduceat(left * right, self.starts)

    def total(self, of_groups: Floats) -> Floats:
        """The sum over the groups of each node, shape (N,)."""
        return np.add.reduceat(of_groups, self.of_group)

    def size(self, c: Floats) -> Floats:
        """The norm of the coefficients of each node, shape (N,)."""
        entries = self.forth(c)
        return self.total(self.omega * np.sqrt(self.dot(entries, entries)))

    def curvature(self, scale: Floats, shrink: Floats, along: Floats) -> Floats:
        """W'MW with M = scale (I - shrink along along') for each group; by node, (N, m, m)."""
        rows = self.rows
        outer = (scale[self.group, None, None] * rows[:, :, None]) * rows[:, None, :]
        axes = np.add.reduceat(rows * along[:, None], self.starts)
        less = ((scale * shrink)[:, None, None] * axes[:, :, None]) * axes[:, None, :]
        return np.add.reduceat(outer, self.of_node) - np.add.reduceat(less, self.of_group)


class Cone(NamedTuple):
    """A point of all cones t_g >= ||w_g||, or a step of one."""

    top: Floats
    entries: Floats

    def moved(self, change: Cone, step: float) -> Cone:
        """The point a step away."""
        return Cone(self.top + step * change.top, self.entries + step * change.entries)

    def dot(self, other: Cone, norms: Norms) -> Floats:
        """The inner product of two points, group by group."""
        return self.top * other.top + norms.dot(self.entries, other.entries)

    def depth(self, norms: Norms) -> Floats:
        """The product of t - ||w|| and t + ||w||, which is zero on the border."""
        length = np.sqrt(norms.dot(self.entries, self.entries))
        return (self.top - length) * (self.top + length)

    def mirrored(self, norms: Norms, mean: float) -> Cone:
        """`mean` times the inverse of the point in the algebra of the cones."""
        shrunk = mean / self.depth(norms)
        return Cone(shrunk * self.top, -shrunk[norms.group] * self.entries)

    def room(self, change: Cone, norms: Norms) -> Floats:
        """How many times a change leads to the border, group by group."""
        depth = self.depth(norms)
        bend = change.top**2 - norms.dot(change.entries, change.entries)
        slope = self.top * change.top - norms.dot(self.entries, change.entries)
        nearing = np.sqrt(np.maximum(slope**2 - bend * depth, 0.0)) - slope
        return np.divide(depth, nearing, out=np.full_like(depth, np.inf), where=nearing > 0.0)


class Cones:
    """What nodes know of their part of the problem, and how they answer questions about it.

    "size" asks for the norm of coefficients; "enter" gives coefficients to begin with, and asks how
    much all omega are, and how many groups and entries there are. "settle" says how far the bounds
    are above the norms, and what products of bounds and duals are to be. "room" gives a step, and
    asks how many times it leads to the border; "move" says how often it is taken. Both "settle"
    and "move" ask for what the next step follows from (`_terms`), and "face" for the face of an l1
    ball that this has come near to.

    Parameters
    ----------
    norms : Norms
        Of one or more nodes.
    """

    def __init__(self, norms: Norms) -> None:
        self.norms = norms

    def __call__(self, question: Question, common: Floats, each: Floats) -> Floats:
        """What the nodes answer, a row each."""
        answers = (self._size, self._enter, self._settle, self._room, self._move, self._face)
        return answers[QUESTIONS.index(question)](common, each)

    def _size(self, common: Floats, each: Floats) -> Floats:
        several = np.split(each, each.shape[1] // self.norms.rows.shape[1], axis=1)
        return np.stack([self.norms.size(c) for c in several], axis=1)

    def _enter(self, common: Floats, c: Floats) -> Floats:
        norms = self.norms
        entries = norms.forth(c)
        self._primal = Cone(np.sqrt(norms.dot(entries, entries)), entries)
        groups = norms.total(np.ones(len(norms.starts)))
        return np.stack([norms.total(norms.omega), groups, np.bincount(norms.node)], axis=1)

    def _settle(self, common: Floats, each: Floats) -> Floats:
        above, mean = common
        self._primal = self._primal._replace(top=self._primal.top + above)
        self._dual = self._primal.mirrored(self.norms, mean)
        return self._terms()

    def _terms(self) -> Floats:
        """What a step of Newton's method follows from; not finite where it has come to its end.

        The scaling of Nesterov and Todd has the inverse square e (2 v v' - J) with v = (v0, -v1), J
        the reflection of the entries; the bounds t are eliminated, so that only c is left. A row
        has the product of bounds and duals; sums of omega^2 and of omega times the mirrored bounds,
        both by the curvature along the bounds; two vectors of m numbers; and the upper triangle of
        the curvature.
        """
        norms, primal, dual = self.norms, self._primal, self._dual
        group, omega = norms.group, norms.omega
        with np.errstate(invalid="ignore", divide="ignore"):
            here, there = np.sqrt(primal.depth(norms)), np.sqrt(dual.depth(norms))
            half = 2.0 * np.sqrt(0.5 + 0.5 * primal.dot(dual, norms) / (here * there))
            v0 = (primal.top / here + dual.top / there) / half
            self._v1 = (primal.entries / here[group] - dual.entries / there[group]) / half[group]
            self._e = there / here
            self._top = self._e * (2.0 * v0**2 - 1.0)
            self._cross = -2.0 * (self._e * v0)[group] * self._v1
            self._mirror = mirror = primal.mirrored(norms, 1.0)
            bent = norms.curvature(self._e, 2.0 / (2.0 * v0**2 - 1.0), self._v1)
            along = norms.back(self._cross * (omega / self._top)[group])
            pull = norms.back(self._cross * (mirror.top / self._top)[group] - mirror.entries)
        sums = (primal.dot(dual, norms), omega**2 / self._top, omega * mirror.top / self._top)
        upper = bent[:, *np.triu_indices(bent.shape[1])]
        return np.hstack([np.stack([norms.total(s) for s in sums], axis=1), along, pull, upper])

    def _room(self, common: Floats, c: Floats) -> Floats:
        norms, group, omega = self.norms, self.norms.group, self.norms.omega
        mean, slack, tied = common
        aim = Cone(mean * self._mirror.top, mean * self._mirror.entries)
        entries = norms.forth(c)
        across = norms.dot(self._cross, entries)
        top = (aim.top - omega * (slack + tied) - across) / self._top
        turned = 2.0 * self._v1 * norms.dot(self._v1, entries)[group] + entries
        dual = Cone(
            aim.top - self._top * top - across - self._dual.top,
            aim.entries - self._cross * top[group] - self._e[group] * turned - self._dual.entries,
        )
        self._step = Cone(top, entries), dual
        room = np.minimum(
            self._primal.room(self._step[0], norms), self._dual.room(self._step[1], norms)
        )
        return np.minimum.reduceat(room, norms.of_group)[:, None]

    def _move(self, common: Floats, each: Floats) -> Floats:
        primal, dual = self._step
        self._primal = self._primal.moved(primal, common[0])
        self._dual = self._dual.moved(dual, common[0])
        return self._terms()

    def _face(self, common: Floats, each: Floats) -> Floats:
        """The directions that leave zeros zero, as columns of a matrix, and the norm's slope."""
        from scipy.linalg import null_space

        norms, primal, dual = self.norms, self._primal, self._dual
        zero = primal.top / common[0] < np.sqrt(np.maximum(dual.depth(norms), 0.0)) / dual.top
        width, nodes = norms.rows.shape[1], len(norms.of_node)
        free = np.zeros((nodes, width, width))
        for i in range(nodes):
            found = null_space(norms.rows[zero & (norms.node == i)], rcond=FLAT)
            free[i, :, : found.shape[1]] = found
        slope = norms.back(np.where(zero, 0.0, np.sign(primal.entries)) * norms.omega)
        return np.hstack([free.reshape(nodes, -1), slope])
