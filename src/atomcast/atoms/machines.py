"""Examples as atoms of several kernel machines, which share the kernel columns that are kept."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.kernel import UNKNOWN, KernelAtoms
from atomcast.known.kernels.exact import corrected
from atomcast.known.kernels.kernel_matrix import kernel_block
from atomcast.known.kernels.machine_set import MachineActiveSet
from atomcast.known.kernels.sums import COLUMNS

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]


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
        for rows, block in self._blocks:
            part = slice(start, start + block.shape[1])
            self._add_margins(margins, active, rows, block, spread[part])
            start = part.stop
        unknown = self._unknown(active.atoms)
        for first in range(start, len(spread), COLUMNS):
            part = slice(first, min(first + COLUMNS, len(spread)))
            columns = self._columns(active, unknown, part)
            self._add_margins(margins, active, unknown, columns, spread[part])
        # The active set has the scores of known points exactly, with 1/C on the diagonal.
        known, scores = np.flatnonzero(self._position < UNKNOWN), np.empty(self.n)
        scores[known] = active.scores()[:: active.width][self._position[known]]
        rough = active.relative(margins[unknown], self.labels[unknown])
        best = float(active.scores().min())
        exact = partial(self._exact, active, unknown, spread)
        corrected(rough, active.inner(), exact, best, share=1.0)
        scores[unknown] = rough
        return scores

    def _exact(
        self,
        active: MachineActiveSet,
        unknown: NDArray[np.int64],
        spread: Floats,
        some: NDArray[np.int64],
    ) -> Floats:
        """The scores of some of the unknown examples, in double precision."""
        rows, margins = unknown[some], np.zeros((self.n, active.width))
        used = np.flatnonzero(spread.any(axis=1))
        for first in range(0, len(used), COLUMNS):
            part = used[first : first + COLUMNS]
            block = kernel_block(active.kernel, self.points[rows], active.points[part], np.float64)
            self._add_margins(margins, active, rows, block, spread[part])
        return active.relative(margins[rows], self.labels[rows])

    def _unknown(self, atoms: int) -> NDArray[np.int64]:
        return self._order[self._position[self._order] >= atoms]

    def _add_margins(
        self,
        margins: Floats,
        active: MachineActiveSet,
        rows: NDArray[np.int64],
        block: NDArray[Any],
        spread: Floats,
    ) -> None:
        """Add what some points contribute, from their kernel columns at some examples."""
        some = np.flatnonzero(self._position[rows] == UNKNOWN)
        at, whole = rows[some], len(some) == len(rows)
        ends = np.searchsorted(self.labels[at], np.arange(active.width + 1))
        for code, (start, stop) in enumerate(pairwise(ends.tolist())):
            values = block[start:stop] if whole else block[some[start:stop]]
            margins[at[start:stop]] += active.machines.sums(code, values, spread)
