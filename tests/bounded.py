"""Atoms whose scores are bounded however few they are, so that small tests see screening."""

from __future__ import annotations

from dataclasses import replace

from atomcast.atoms.explicit import DenseAtoms, gradient_of


class AlwaysBounded(DenseAtoms):
    """Dense columns that are screened from the first round on, and however many are left open."""

    def __init__(self, matrix, names=None):
        super().__init__(matrix, names)
        self.large, self._unread = True, 0.0

    def read(self, replica, columns):
        return DenseAtoms(self.matrix[:, columns]).products(gradient_of(replica))


def _atoms(shard):
    return AlwaysBounded(shard.matrix, shard.names)


def bounded(problem):
    """The problem with atoms that are screened."""
    return replace(problem, make_atoms=_atoms)
