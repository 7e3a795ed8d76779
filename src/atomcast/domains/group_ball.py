"""Groups of features: the partition, the ball of the group norm, and how groups are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast._checks import check_in_scale, check_numbers, check_positive
from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = Sequence[int] | Ints

#: So many ids belong to each kernel: one for every time that something of it is sent.
PER_KERNEL = 1 << 24


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of n features into groups, each with a weight in the norm.

    Parameters
    ----------
    labels : array of shape (n,)
        The group of each feature, numbered 0, 1, ... by their first features.
    weights : array of shape (n_groups,)
    leaders : array of shape (n_groups,)
        The first feature of each group, whose id the group has as an atom; increasing.
    """

    labels: Ints
    weights: Floats
    leaders: Ints

    def __len__(self) -> int:
        return len(self.leaders)

    def members(self, group: int) -> Ints:
        """The features of a group."""
        return np.flatnonzero(self.labels == group)

    def norm(self, w: Floats) -> float:
        """The norm sum_g weight_g ||w_g||_2 of weights of shape (n,)."""
        squares = np.bincount(self.labels, w * w, minlength=len(self))
        return float(self.weights @ np.sqrt(squares))


@dataclass(frozen=True)
class BlockBall(Domain):
    """Weights in blocks, with sum_b c_b ||w_b||_2 <= beta.

    The score of an atom is what its block promises: the norm of the block's scores divided by c_b.
    The vertices in a block's direction are infinitely many, so that steps which keep an account of
    vertices do not apply.
    """

    beta: float
    has_origin: ClassVar[bool] = True
    polytope: ClassVar[bool] = False

    def __post_init__(self) -> None:
        radius = check_positive("beta", self.beta, "the radius of the group-norm ball")
        check_in_scale("beta", radius)

    @property
    def scale(self) -> float:
        """The radius of the ball."""
        return float(self.beta)

    def merit(self, scores: Floats) -> Floats:
        """The score of a block is its merit."""
        return scores

    def signs(self, scores: Floats) -> Floats:
        """Directions are found once a block is known; there is no sign to choose."""
        return np.ones_like(scores)

    def weight_of(self, blocks: Ids) -> Floats:
        """The weight c_b of each block: one, unless a ball says otherwise."""
        return np.ones(len(blocks))

    def known_merit(self, ids: Sequence[int], scores: Floats) -> Floats:
        """What the block behind each weight promises."""
        if not len(ids):
            return np.zeros(0)
        blocks, local = np.unique(self.blocks_of(ids), return_inverse=True)
        squares = np.bincount(local, scores * scores, minlength=len(blocks))
        return (np.sqrt(squares) / self.weight_of(blocks))[local]

    def project(self, ids: Sequence[int], weights: Floats) -> Floats:
        """The nearest weights of the ball: each block's shortened in its own direction."""
        if not len(ids):
            return weights
        blocks = self.blocks_of(ids)
        order = np.argsort(blocks, kind="stable")
        nearest = np.empty_like(weights)
        nearest[order] = BlockRanges(blocks[order], self).project(weights[order])
        return nearest

    def direction(self, id: int, scores: Floats) -> Floats:
        """The vertex of a known block that goes most against the scores of its weights."""
        c = float(self.weight_of(self.blocks_of([id]))[0])
        length = float(np.linalg.norm(scores)) * c
        return np.zeros_like(scores) if length == 0.0 else -self.scale * scores / length


@dataclass(frozen=True)
class GroupBall(BlockBall):
    """Weights of features with sum_g weight_g ||w_g||_2 <= beta; an atom is a group."""

    groups: Groups

    def weight_of(self, blocks: Ids) -> Floats:
        """The weight of the group behind each atom id."""
        return self.groups.weights[self.groups.labels[np.asarray(blocks, dtype=np.int64)]]


@dataclass(frozen=True)
class KernelBall(BlockBall):
    """Sums of functions, one for each kernel, with sum_k ||f_k|| <= beta.

    A block has a weight for each direction of its kernel's space that is known, and grows.
    """

    def blocks_of(self, ids: Ids) -> Ints:
        """The kernel behind each atom id."""
        return np.asarray(ids, dtype=np.int64) // PER_KERNEL


class BlockRanges:
    """Known weights in blocks, one for each known group, of which each has a weight c_g."""

    def __init__(self, ids: Ids, domain: BlockBall) -> None:
        first = np.concatenate(([True], np.diff(np.array(ids)) != 0))
        self.block = np.cumsum(first) - 1
        self.starts = np.append(np.flatnonzero(first), len(first))
        self.c = domain.weight_of(np.array(ids)[self.starts[:-1]])
        self.beta = domain.scale

    def norms(self, w: Floats) -> Floats:
        """The Euclidean norm of each block."""
        return np.sqrt(np.add.reduceat(w * w, self.starts[:-1]))

    def size(self, w: Floats) -> float:
        """The norm of the ball."""
        return float(self.c @ self.norms(w))

    def project(self, w: Floats) -> Floats:
        """The nearest point of the ball."""
        norms = self.norms(w)
        if float(self.c @ norms) <= self.beta:
            return w
        ratio = norms / self.c
        order = np.argsort(-ratio)
        c, r = self.c[order], norms[order]
        level = (np.cumsum(c * r) - self.beta) / np.cumsum(c * c)
        theta = level[np.flatnonzero(ratio[order] > level)[-1]]
        with np.errstate(divide="ignore", invalid="ignore"):
            shrink = np.where(norms > 0, np.maximum(1.0 - theta * self.c / norms, 0.0), 0.0)
        return w * shrink[self.block]


def as_groups(
    groups: Any, weights: ArrayLike | None, shards: Shards, called: str = "groups"
) -> Groups:
    """A partition from what users may give; a clear error if it is none.

    Parameters
    ----------
    groups : None, "sources" or sequence of sequences of int or str
        None: every feature alone. "sources": what a node holds is a group. Sequences: the columns
        of each group, by number or by name.
    weights : array of shape (n_groups,), optional
        One for each group, in the order given; by default the square root of its size.
    called : str
        What messages call the groups.
    """
    n = shards.count()
    if groups is None:
        members = [np.array([j]) for j in range(n)]
    elif isinstance(groups, str) or not isinstance(groups, Iterable):
        if groups != "sources":
            raise ValueError(f'{called} must be None, "sources" or a list of lists, got {groups!r}')
        owner = shards.assignment()
        members = [np.flatnonzero(owner == i) for i in np.unique(owner)]
    else:
        members = [_columns(group, f"{called}[{k}]", shards) for k, group in enumerate(groups)]
    labels = _checked_partition(members, n, called)
    sizes = np.bincount(labels, minlength=len(members))
    given = np.sqrt(sizes) if weights is None else _checked_weights(weights, len(members))
    leaders = np.array([member.min() for member in members], dtype=np.int64)
    order = np.argsort(leaders)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return Groups(number[labels], given[order].astype(np.float64), leaders[order])


def _columns(group: Any, called: str, shards: Shards) -> Ints:
    """The numbers of a group's columns, given by number or by name."""
    if isinstance(group, str) or not isinstance(group, Iterable):
        raise ValueError(f"{called} is {group!r}: each group is a list of columns")
    names = shards.names
    place = {} if names is None else {name: j for j, name in enumerate(names)}
    columns = []
    for column in group:
        if isinstance(column, str):
            if column not in place:
                raise ValueError(f"{called} names {column!r}, but X has no such column")
            column = place[column]
        if isinstance(column, bool | np.bool_) or not hasattr(column, "__index__"):
            raise ValueError(f"{called} holds {column!r}: give columns by number or by name")
        if not 0 <= int(column) < shards.count():
            raise ValueError(
                f"{called} holds column {column}, but X has {shards.count()} columns, "
                "numbered from 0"
            )
        columns.append(int(column))
    if not columns:
        raise ValueError(f"{called} is empty: each group needs at least one column")
    return np.array(columns, dtype=np.int64)


def _checked_partition(members: Sequence[Ints], n: int, called: str) -> Ints:
    """The group of each column, if the groups cover all columns and none twice."""
    labels = np.full(n, -1, dtype=np.int64)
    for k, columns in enumerate(members):
        taken = columns[labels[columns] >= 0]
        if len(taken) or len(np.unique(columns)) < len(columns):
            column = int(taken[0]) if len(taken) else int(np.sort(columns)[0])
            raise ValueError(
                f"{called} overlap: column {column} is in {called}[{k}] and in another place; "
                f"repeat the column in X if two {called} should have it"
            )
        labels[columns] = k
    missing = np.flatnonzero(labels < 0)
    if len(missing):
        raise ValueError(
            f"{called} do not cover column {int(missing[0])} (and {len(missing) - 1} more): put "
            "every column in one of them, if need be in one of its own"
        )
    return labels


def _checked_weights(weights: ArrayLike, count: int) -> Floats:
    result = check_numbers("weights", weights, "one for each group")
    if result.shape != (count,) or not np.all((result > 0.0) & np.isfinite(result)):
        raise ValueError(
            f"weights must be {count} finite numbers > 0, one for each group, got {weights!r}"
        )
    return result


def check_whole_groups(groups: Groups, shards: Shards, called: str = "group") -> None:
    """Raise ValueError if a group is split over nodes."""
    owner = shards.assignment()
    apart = np.flatnonzero(owner != owner[groups.leaders[groups.labels]])
    if len(apart):
        j = int(apart[0])
        first = int(groups.leaders[groups.labels[j]])
        raise ValueError(
            f"a {called} is split: column {first} is on node {owner[first]}, but column {j} of the "
            f"same {called} is on node {owner[j]}; a whole {called} must live on one node"
        )
