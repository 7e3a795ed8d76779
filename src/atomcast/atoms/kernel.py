"""Examples as atoms of a kernel problem: scored by sums over the points that were broadcast.

Scores follow the weights: where a step scales all weights and changes a few, the scores are
scaled and a few kernel columns are added (section 6.3 of the paper), with O(n_i) memory. Where
all weights change, the sum is taken anew, from kernel columns that are kept within a budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import ranges
from atomcast.data.matrices import cut
from atomcast.data.shards import Shard
from atomcast.data.sparse_format import is_sparse
from atomcast.known.kernels.exact import corrected
from atomcast.known.kernels.kernel_matrix import kernel_block
from atomcast.known.kernels.labels import Codes
from atomcast.known.kernels.point_set import KernelActiveSet, rescaling
from atomcast.known.kernels.points import Points
from atomcast.known.kernels.space import KernelSpace
from atomcast.known.kernels.storage import Storage
from atomcast.known.kernels.sums import (
    COLUMNS,
    COMPILE_FROM,
    FEW,
    BinarySums,
    KernelSums,
    kernel_sums,
)
from atomcast.messages.atom import Atom, AtomBatch

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: So many examples at a time are taken out of the data, or as many as have so many values.
LEAST_PIECE, PIECE, VALUES = 96, 1 << 13, 1 << 20
#: A position that no point ever has.
UNKNOWN = np.iinfo(np.int64).max


class KernelAtoms:
    """The examples of one node and their labels.

    Parameters
    ----------
    points : array or CSR matrix of shape (n, d)
    labels : int array of shape (n,)
        The class of each example, as a code.
    ids : array of shape (n,)
        Global ids, strictly increasing.
    storage : Storage
        The memory that kernel columns may take, and the precision in which they are kept.
    weights : array of shape (n,), optional
        How much each example counts.
    """

    def __init__(
        self,
        points: Points,
        labels: Codes,
        ids: NDArray[np.int64],
        storage: Storage,
        weights: Floats | None = None,
    ) -> None:
        self.points = points
        self.labels = labels
        #: What examples tell of themselves when they are broadcast.
        self.told: NDArray[Any] = labels
        self.weights = weights
        self.ids = ids
        self.storage = storage
        self.n, self.d = points.shape
        self._forget()

    def _forget(self) -> None:
        self._active: KernelActiveSet | None = None
        self._sums: KernelSums | None = None
        self._total: Floats = np.zeros(self.n)
        self._weights: Floats = np.zeros(0)
        self._changes = 0
        self._blocks: list[tuple[NDArray[np.int64], NDArray[Any]]] = []
        self._cached = 0
        #: The position of each example among the known points, later than all if it is not one.
        self._position = np.full(self.n, UNKNOWN)
        self._log = 0

    def take(self, rows: NDArray[np.int64]) -> KernelAtoms:
        """Some of the examples, as atoms of their own."""
        weights = None if self.weights is None else self.weights[rows]
        points, told, ids = self.points[rows], self.told[rows], self.ids[rows]
        return type(self)(points, told, ids, self.storage, weights)

    def atom(self, j: int, id: int) -> Atom:
        """The j-th example with its label or target, and its weight if it has one."""
        extras = np.array([float(self.told[j])])
        if self.weights is not None:
            extras = np.append(extras, self.weights[j])
        if not is_sparse(self.points):
            return Atom(id, self.d, np.array(self.points[j]), extras=extras)
        part = slice(self.points.indptr[j], self.points.indptr[j + 1])
        indices, values = self.points.indices[part], self.points.data[part]
        nonzero = values != 0
        return Atom(id, self.d, values[nonzero], indices[nonzero], extras=extras)

    def batch(self, places: NDArray[np.int64], ids: list[int]) -> AtomBatch:
        """Some examples in one piece."""
        extras = self.told[places, None].astype(np.float64)
        if self.weights is not None:
            extras = np.column_stack([extras, self.weights[places]])
        points = self.points[places]
        if not is_sparse(points):
            return AtomBatch(ids, self.d, np.ascontiguousarray(points), extras=extras)
        points.eliminate_zeros()
        starts = points.indptr.astype(np.int64)
        return AtomBatch(ids, self.d, points.data, points.indices, starts, extras=extras)

    def space(self) -> KernelSpace:
        """The examples in the augmented kernel space; known once gamma is, after a broadcast."""
        active = self._active
        assert active is not None
        kernel, code, sums = active.kernel, active.code, self._kernel_sums(active)
        lengths = kernel.diagonal(self.points) + 1.0 + code.ridge(self.labels, self.weights)
        points, how = self.points, "compiled" if self.n * self.d >= COMPILE_FROM else "plain"
        if isinstance(sums, BinarySums):
            points, how = sums.bits, "bits"
        return KernelSpace(points, self.labels, kernel, code, lengths, how)

    def follow(self, active: KernelActiveSet) -> None:
        """Belong to this active set, which knows the kernel, from now on."""
        if active is not self._active:
            self._forget()
            self._active = active
            active.d = self.d

    def scores(self, replica: Replica) -> Floats:
        """The gradient 2 K~ alpha at every example, shape (n,); overwritten by the next call."""
        active = replica.active
        assert isinstance(active, KernelActiveSet)
        self.follow(active)
        if active.changes != self._changes:
            last = active.last_change
            if last is not None and active.changes == self._changes + 1:
                self._add(active, last.factor, [last.position], [last.amount])
            elif np.any(active.weights):
                self._compare(active, _by_columns(replica))
                if not _by_columns(replica):
                    self._correct(active)
            self._weights, self._changes = active.weights.copy(), active.changes
        return self._total

    def _compare(self, active: KernelActiveSet, by_columns: bool) -> None:
        """Find the cheapest way from the last weights that were scored to the present ones."""
        before = np.zeros(len(active))
        before[: len(self._weights)] = self._weights
        scale, rest = rescaling(before, active.weights)
        changed = np.flatnonzero(rest).tolist()
        # A run of single atoms that is resumed sums as it did before: column by column.
        if len(changed) <= FEW or (not len(self._weights) and by_columns):
            for start in range(0, max(len(changed), 1), FEW):
                part = changed[start : start + FEW]
                self._add(active, 1.0 if start else scale, part, rest[part].tolist())
        else:
            self._sum_afresh(active)

    def _kernel_sums(self, active: KernelActiveSet) -> KernelSums:
        """The way to sum columns over these examples, chosen when it is first needed."""
        if self._sums is None:
            self._sums = kernel_sums(self.points, active.kernel, active.code, self.labels)
        return self._sums

    def _catch_up(self, active: KernelActiveSet) -> None:
        """Find out which of the points that have come since the last round are our own."""
        new = np.array(active.ids[self._log * active.width :: active.width], dtype=np.int64)
        at = np.minimum(np.searchsorted(self.ids, new), max(self.n - 1, 0))
        ours = self.ids[at] == new if self.n else np.zeros(len(new), dtype=bool)
        self._position[at[ours]] = self._log + np.flatnonzero(ours)
        self._log = active.atoms

    def _add(
        self, active: KernelActiveSet, scale: float, changed: list[int], rest: list[float]
    ) -> None:
        """Scale the scores and add a few columns."""
        if not changed:
            self._total *= scale
            return
        # A slice takes no copy, which is quicker for one, as there mostly is.
        part = slice(changed[0], changed[0] + 1) if len(changed) == 1 else changed
        weights = np.array([2.0 * amount for amount in rest])
        sums = self._kernel_sums(active)
        sums.add(self._total, scale, active.points[part], active.labels[part], weights)
        for position, amount in zip(changed, rest, strict=True):
            id = active.ids[position]
            row = int(self.ids.searchsorted(id))
            if row < self.n and self.ids[row] == id:
                self._total[row] += 2.0 * amount * active.gram.ridge[position]

    def _sum_afresh(self, active: KernelActiveSet) -> None:
        """Sum over all known points: from columns that are kept, and anew for the others."""
        self._catch_up(active)
        total, weights = self._total, 2.0 * active.weights
        total[:] = 0.0
        sums = self._kernel_sums(active)
        if sums.cacheable:
            self._keep_columns(active)
        start = 0
        for rows, block in self._blocks:
            part = slice(start, start + block.shape[1])
            some = np.flatnonzero(self._position[rows] == UNKNOWN)
            sums.add_block(rows, total, block, some, active.labels[part], weights[part])
            start = part.stop
        left, unknown = start + np.flatnonzero(weights[start:]), self._unknown(active.atoms)
        step = _at_a_time(active.points)
        for first in range(0, len(left), step):
            some = left[first : first + step]
            points, labels = active.points[some], active.labels[some]
            sums.add_to(unknown, total, points, labels, weights[some])
        # The active set has these exactly, with 1/C on the diagonal.
        known = np.flatnonzero(self._position < UNKNOWN)
        total[known] = 2.0 * active.image_products[self._position[known]]

    def _correct(self, active: KernelActiveSet) -> None:
        """Sum scores in double precision where rounding of kernel values could show in the gap."""
        self._catch_up(active)
        unknown = self._unknown(active.atoms)
        weights, rough = 2.0 * active.weights, self._total[unknown]
        used, sums = np.flatnonzero(weights), self._kernel_sums(active)
        step = _at_a_time(active.points)

        def exact(some: NDArray[np.int64]) -> Floats:
            rows, total = unknown[some], np.zeros(self.n)
            for start in range(0, len(used), step):
                part = used[start : start + step]
                points, labels = active.points[part], active.labels[part]
                sums.add_to(rows, total, points, labels, weights[part])
            return total[rows]

        best, bound = 2.0 * float(active.image_products.min()), active.gram.rounding_of(weights)
        if corrected(rough, active.inner(), exact, best, bound, share=1.0):
            self._total[unknown] = rough

    def _unknown(self, atoms: int) -> NDArray[np.int64]:
        """The examples that are not among so many first points."""
        return np.flatnonzero(self._position >= atoms)

    def _keep_columns(self, active: KernelActiveSet) -> None:
        """Compute and keep columns of new points while the budget lasts.

        Only of examples that are not known themselves: of others, the active set has the scores.
        Blocks end where a broadcast did, so that a run that is resumed has the same ones.
        """
        ends, dtype = np.cumsum(active.arrivals), np.dtype(self.storage.dtype)
        while self._cached < active.atoms:
            end = int(ends[np.searchsorted(ends, self._cached, side="right")])
            part = slice(self._cached, min(self._cached + COLUMNS, end))
            rows = self._unknown(end)
            used = sum(block.nbytes for _, block in self._blocks)
            more = len(rows) * (part.stop - part.start) * dtype.itemsize
            if used + more > self.storage.cache_bytes:
                return
            self._blocks.append((rows, self._columns(active, rows, part)))
            self._cached = part.stop

    def _columns(
        self, active: KernelActiveSet, rows: NDArray[np.int64], part: slice
    ) -> NDArray[Any]:
        """The kernel between some examples and some known points, as it is kept."""
        block = np.empty((len(rows), part.stop - part.start), self.storage.dtype)
        piece = min(max(VALUES // max(self.d, 1), LEAST_PIECE), PIECE)
        known = cut(active.points, part.start, part.stop, 0)
        for some in ranges(len(rows), -(-len(rows) // piece)):
            points = self.points[rows[some]]
            block[some] = kernel_block(active.kernel, points, known, block.dtype)
        return block


def _at_a_time(known: Points) -> int:
    """How many of the known points are copied at a time: of long ones, as few as kernels take."""
    values = known.nnz if is_sparse(known) else known.size
    return int(np.clip(VALUES * known.shape[0] // max(values, 1), 16, COLUMNS))


def _by_columns(replica: Replica) -> bool:
    """Whether the step changes so few weights a round that no columns are ever kept."""
    return replica.step.one_atom


def kernel_atoms(
    shard: Shard,
    labels: LocalLabels,
    storage: Storage,
    kind: type[KernelAtoms] = KernelAtoms,
    numbered: bool = False,
) -> KernelAtoms:
    """The rows of a node's shard as atoms of some kind, with their numbers if asked for."""
    points = shard.matrix.tocsr() if is_sparse(shard.matrix) else shard.matrix
    if numbered:
        points = np.column_stack([points, shard.ids.astype(np.float64)])
    return kind(points, labels.of(shard), shard.ids, storage, labels.weights_of(shard))


class LocalLabels:
    """The labels that go with shards, by global id.

    Parameters
    ----------
    codes : int array of shape (n,)
    weights : array of shape (n,), optional
        How much each example counts.
    """

    def __init__(self, codes: Codes, weights: Floats | None = None) -> None:
        self.codes, self.weights = codes, weights

    def of(self, shard: Shard) -> Codes:
        """The labels of the shard's atoms, in their order."""
        at = self._places(shard)
        if len(at) and at[-1] >= len(self.codes):
            raise ValueError(
                f"y has {len(self.codes)} labels, but {shard.source} has an example numbered "
                f"{int(at[-1])}: give one label for every row"
            )
        in_order = len(at) == len(self.codes) and len(at) > 0 and at[0] == 0
        return self.codes if in_order else np.ascontiguousarray(self.codes[at])

    def weights_of(self, shard: Shard) -> Floats | None:
        """The weights of the shard's atoms, in their order; None if all count the same."""
        return None if self.weights is None else self.weights[self._places(shard)]

    def _places(self, shard: Shard) -> NDArray[np.int64]:
        return shard.ids


class OwnLabels(LocalLabels):
    """The labels of this process's own share, in its order; no other process knows them."""

    #: Not part of the problem that all processes, or a run and its checkpoint, have in common.
    immaterial: ClassVar[bool] = True
    private: ClassVar[bool] = True

    def _places(self, shard: Shard) -> NDArray[np.int64]:
        return shard.ids - shard.origin
