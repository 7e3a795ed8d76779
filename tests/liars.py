"""Nodes that do not tell the truth: honest atoms behind a wrapper that sends something else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

#: What the last node may do: what it sends, or says, instead of what is true.
LIES = ("another", "million", "target", "id", "short", "nan", "scores")


class Liar:
    """Atoms of which one after the other is not what it is said to be."""

    def __init__(self, honest, lie, target):
        self.honest, self.lie, self.target = honest, lie, target
        self.d, self.n = honest.d, honest.n

    def __getattr__(self, name):
        if name in ("honest", "__setstate__"):
            raise AttributeError(name)
        return getattr(self.honest, name)

    def scores(self, replica):
        scores = self.honest.scores(replica)
        return np.full_like(scores, np.nan) if self.lie == "scores" else scores

    def batch(self, places, ids):
        return [self.atom(j, id) for j, id in zip(places, ids, strict=True)]

    def atom(self, j, id):
        atom = self.honest.atom(j, id)
        values, dense = atom.values, atom.indices is None
        if self.lie == "another":
            other = self.honest.atom((j + 2) % self.n, id)
            return replace(other, extras=atom.extras)
        if self.lie == "million":
            return replace(atom, values=1e6 * values)
        if self.lie == "target":
            target = np.resize(self.target, atom.d).astype(float)
            return replace(atom, values=target, indices=None)
        if self.lie == "id":
            return replace(atom, id=id + 1)
        if self.lie == "short":
            if not dense:
                return replace(atom, d=atom.d + 1)
            return replace(atom, d=atom.d - 1, values=values[:-1])
        if self.lie == "nan":
            return replace(atom, values=np.where(np.arange(len(values)) == 0, np.nan, values))
        return atom


def _atoms(shard, make, lie, target, liar):
    honest = make(shard)
    return Liar(honest, lie, target) if liar in shard.ids else honest


def lying(problem, lie, target, liar):
    """The same problem, where the node that holds the atom with the id `liar` lies."""
    make = partial(_atoms, make=problem.make_atoms, lie=lie, target=target, liar=liar)
    return replace(problem, make_atoms=make)
