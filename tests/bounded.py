"""Atoms whose scores are bounded however few they are, so that small tests see screening."""

from __future__ import annotations

from dataclasses import replace

from atomcast.atoms.explicit import DenseAtoms


class AlwaysBounded(DenseAtoms):
    """Dense columns that are screened from the first round on, unless nearly all are left open."""

    def __init__(self, matrix, names=None):
        super().__init__(matrix, names)
        self.large, self.vain, self._unread = True, 0.9, 0.0


def _atoms(shard):
    return AlwaysBounded(shard.matrix, shard.names)


def bounded(problem):
    """The problem with atoms that are screened."""
    return replace(problem, make_atoms=_atoms)
