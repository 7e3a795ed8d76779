"""Examples as atoms of several kernel machines, which share the kernel columns that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import ranges
from atomcast.atoms.kernel import KernelAtoms
from atomcast.known.kernels.kernel_matrix import kernel_block
from atomcast.known.kernels.machine_set import MachineActiveSet
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.sums import COLUMNS

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: So many examples at a time are brought in order.
PIECE = 1 << 13


class MachineAtoms(KernelAtoms):
    """The examples of one node; the score of one is that of the machine that it fits worst.

    Columns are kept with the examples in order of their classes: those of a class take part in
    the same machines, so that their margins are one product of matrices.
    """

    def _forget(self) -> None:
        super()._forget()
        self._order = np.argsort(self.labels, kind="stable")

    def scores(self, replica: Replica) -> Floats:
        """How much the worst margin of every example exceeds that of its machine, shape (n,)."""
        active = replica.active
        assert isinstance(active, MachineActiveSet)
        self.follow(active)
        if not np.any(active.weights):
            return np.zeros(self.n)
        self._catch_up(active)
        self._keep_columns(active)
        margins, spread, start = np.zeros((self.n, active.width)), active.spread, 0
        for block in self._blocks:
            self._add_margins(margins, active, block, spread[start : start + block.shape[1]])
            start += block.shape[1]
        for first in range(start, len(spread), COLUMNS):
            part = slice(first, first + COLUMNS)
            self._add_margins(margins, active, self._columns(active, part), spread[part])
        scores = np.empty(self.n)
        scores[self._order] = active.relative(margins, self.labels[self._order])
        # The active set has these exactly, with 1/C on the diagonal.
        scores[self._local] = active.scores()[:: active.width][self._known]
        return scores

    def _columns(self, active: KernelActiveSet, part: slice) -> NDArray[Any]:
        points, dtype, cuts = active.points[part], self.storage.dtype, -(-self.n // PIECE)
        parts = [
            kernel_block(active.kernel, self.points[self._order[rows]], points, dtype)
            for rows in ranges(self.n, cuts)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _add_margins(
        self, margins: Floats, active: MachineActiveSet, block: NDArray[Any], spread: Floats
    ) -> None:
        """Add what some points contribute, from their kernel columns, shape (n, m)."""
        start = 0
        for code, count in enumerate(np.bincount(self.labels).tolist()):
            rows = slice(start, start + count)
            margins[rows] += active.machines.sums(code, block[rows], spread)
            start += count
