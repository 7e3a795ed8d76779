"""Scores that follow the weights, so that long runs on much data end in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.atoms.explicit import SparseAtoms
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.messages.atom import Atom

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]


class FollowedAtoms:
    """Sparse columns, all of a run, for the squared error and steps of one atom.

    A step scales all weights and changes one. So do the scores, but for a column of A'A, which
    takes those rows of the data that the atom has, instead of all of it.

    Parameters
    ----------
    atoms : SparseAtoms
        All columns; the id of each is its number.
    rows : csr_array of shape (d, n)
        The same data by rows.
    """

    def __init__(self, atoms: SparseAtoms, rows: sparse.csr_array) -> None:
        self.atoms, self.d, self.n = atoms, atoms.d, atoms.n
        self._rows = rows
        self._indices: NDArray[Any] = rows.indices.view(f"u{rows.indices.itemsize}")
        self._start: Floats | None = None
        self._moved, self._weights = np.zeros(self.n), np.zeros(0)

    def scores(self, replica: Replica) -> Floats:
        """The inner product of each column with the gradient, shape (n,)."""
        from atomcast.known.kernels._loops import add_scattered

        active, rows, columns = replica.active, self._rows, self.atoms.matrix
        assert isinstance(active, ExplicitActiveSet)
        if self._start is None:
            assert not np.any(active.weights)
            self._start = self.atoms.scores(replica)
        scale, rest = shrinking(self._weights, active.weights)
        self._moved *= scale
        curvature = active.objective.curvature(active.image)
        assert curvature.rank_one is None
        for k in np.flatnonzero(rest).tolist():
            part = slice(*columns.indptr[active.ids[k] : active.ids[k] + 2])
            values = float(curvature.diagonal) * rest[k] * columns.data[part]
            add_scattered(
                rows.indptr, self._indices, rows.data, columns.indices[part], values, self._moved
            )
        self._weights = active.weights.copy()
        return self._start + self._moved

    def atom(self, j: int, id: int) -> Atom:
        """The j-th column."""
        return self.atoms.atom(j, id)


def shrinking(old: Floats, new: Floats) -> tuple[float, Floats]:
    """Write new weights as a multiple of the old ones plus a rest, mostly of one entry.

    The factor is not above one, so that rounding errors shrink with the weights.
    """
    before = np.zeros(len(new))
    before[: len(old)] = old
    used = np.flatnonzero(before)
    ratios = new[used] / before[used]
    ratios = ratios[(ratios >= 0) & (ratios <= 1)]
    scale = float(np.median(ratios)) if len(ratios) else 0.0
    rest = new - scale * before
    rest[np.abs(rest) <= 8 * np.finfo(float).eps * np.abs(new)] = 0.0
    return scale, rest
