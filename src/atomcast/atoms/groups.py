"""Atoms that are groups of columns, each broadcast once and known in every direction after that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.explicit import ColumnAtoms, explicit_atoms, gradient_of
from atomcast.data.shards import Shard
from atomcast.domains.balls import Domain
from atomcast.domains.group_ball import GroupBall, Groups
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.columns import with_appended
from atomcast.messages.atom import Atom, Misfit
from atomcast.objectives import Objective

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]


class GroupActiveSet(ExplicitActiveSet):
    """Known groups, with a weight for each of their columns."""

    inner_kind = "groups"

    def __init__(self, objective: Objective, groups: Groups) -> None:
        super().__init__(objective)
        self.groups = groups

    def length_of(self, id: int, d: int) -> int:
        """The columns of the group that begins with this one, one after the other."""
        return d * len(self.groups.members(int(self.groups.labels[id])))

    def _width(self, d: int) -> int:
        return d // self.objective.d

    def _store(self, atoms: Sequence[Atom]) -> None:
        columns = [column for atom in atoms for column in split_group(atom, self.objective.d)]
        self.columns = with_appended(self.columns, self.objective.d, columns)

    def _length(self, atom: Atom) -> int:
        """So many columns as the group has, one after the other."""
        return self.objective.d * self._size(atom.id)

    def _size(self, id: int) -> int:
        """How many columns a group has."""
        return int(np.sum(self.groups.labels == self.groups.labels[id]))

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Floats | None = None) -> Misfit:
        """Compare what groups promise, by the norms of the products of their columns."""
        assert self.columns is not None
        gradient = self.gradient if iterate is None else iterate
        starts = np.array([self.position[id] for id in ids])
        stop = int(starts[-1]) + self._size(ids[-1])
        scores, length = self.columns.measured(int(starts[0]), stop, gradient)
        weights = self.groups.weights[self.groups.labels[np.array(ids)]]

        def norms(numbers: Floats) -> Floats:
            return np.sqrt(np.add.reduceat(numbers * numbers, starts - starts[0])) / weights

        promised = norms(scores)
        allowed = norms(self._rounding(length, gradient)) + 64 * np.finfo(float).eps * promised
        return Misfit(stated - promised, allowed, norms(length))

    @property
    def weight_ids(self) -> NDArray[np.int64]:
        """The feature that each weight belongs to."""
        members = [self.groups.members(int(self.groups.labels[leader])) for leader in self.position]
        return np.concatenate([np.zeros(0, dtype=np.int64), *members])

    def atoms_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first feature of the group that each feature belongs to."""
        return self.groups.leaders[self.groups.labels[ids]]

    def vertex(self, domain: Domain, id: int, score: float) -> Floats:
        """The vertex in the group's best direction."""
        assert isinstance(domain, GroupBall)
        start = self.position[id]
        stop = start + self._size(id)
        weights = np.zeros(len(self))
        weights[start:stop] = domain.direction(id, self.scores()[start:stop])
        return weights


class GroupAtoms:
    """A node's groups; each stands in the place of its first column.

    The score of a group is the norm of its columns' scores divided by its weight. The other
    columns of a group have the score -inf: they are nothing that could be proposed.
    """

    def __init__(
        self,
        features: ColumnAtoms,
        ids: NDArray[np.int64],
        groups: Groups,
        names: tuple[str, ...] | None,
    ) -> None:
        self.features = features
        self.names = names
        self.d, self.n = features.d, features.n
        self._group, self._local = np.unique(groups.labels[ids], return_inverse=True)
        self._weights = groups.weights[self._group]
        self._leaders = np.searchsorted(ids, groups.leaders[self._group])

    def scores(self, replica: Replica) -> Floats:
        """What each group promises, at its first column, shape (n,)."""
        scores = self.features.products(gradient_of(replica))
        squares = np.bincount(self._local, scores * scores, minlength=len(self._group))
        result = np.full(self.n, -np.inf)
        result[self._leaders] = np.sqrt(squares) / self._weights
        return result

    def atom(self, j: int, id: int) -> Atom:
        """The columns of the group that begins with the j-th, one after the other."""
        places = np.flatnonzero(self._local == self._local[j])
        columns = [self.features.atom(int(k), id) for k in places]
        name = "" if self.names is None else ", ".join(self.names[k] for k in places)
        return join_columns(id, columns, name)


def join_columns(id: int, columns: Sequence[Atom], name: str) -> Atom:
    """One atom of length m * d of m columns of length d."""
    d = columns[0].d
    values = np.concatenate([column.values for column in columns])
    if columns[0].indices is None:
        return Atom(id, d * len(columns), values, name=name)
    shifted = [np.asarray(c.indices, dtype=np.int64) + k * d for k, c in enumerate(columns)]
    return Atom(id, d * len(columns), values, np.concatenate(shifted), name=name)


def split_group(atom: Atom, d: int) -> list[Atom]:
    """The columns of length d that an atom of length m * d consists of."""
    count = atom.d // d
    if atom.indices is None:
        return [Atom(atom.id, d, atom.values[k * d : (k + 1) * d]) for k in range(count)]
    cuts = np.searchsorted(atom.indices, d * np.arange(count + 1))
    return [
        Atom(atom.id, d, atom.values[cut], atom.indices[cut] - k * d)
        for k, cut in enumerate(map(slice, cuts[:-1], cuts[1:]))
    ]


def group_atoms(groups: Groups, shard: Shard) -> GroupAtoms:
    """The groups of a node's shard as atoms."""
    return GroupAtoms(explicit_atoms(shard), shard.ids, groups, shard.names)
