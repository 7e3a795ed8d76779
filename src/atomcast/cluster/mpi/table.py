"""The proposals of all ranks in one collective: a row of eight-byte numbers from each."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mpi.failures import import_mpi
from atomcast.messages.proposals import Proposals

#: Where in a row stands what; the proposed ids, scores and merits follow.
BEST, PARTIAL, COUNT, DIGEST, VOTE, HEAD = range(6)
_HEAD, _WITH_ONE = Struct("=ddqqq"), Struct("=ddqqqqdd")
#: Up to so many proposals travel in the row; if a rank has more, a second collective follows.
LARGEST_WIDTH = 16
#: The vote of a rank that cannot go on.
FAILED = -1


Columns = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


class Table:
    """The buffers of a rank, used again every round.

    Attributes
    ----------
    votes, digests : list of int
        What the ranks sent along with their last proposals.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._rank, self._nodes = comm.Get_rank(), comm.Get_size()
        self._in_place = import_mpi().IN_PLACE
        self._ranks, self._ones = np.arange(self._nodes), [1] * self._nodes
        self.votes: list[int] = []
        self.digests: list[int] = []
        self.width = 1

    @property
    def width(self) -> int:
        """How many proposals there is room for in a row, the same on every rank during a run."""
        return self._width

    @width.setter
    def width(self, count: int) -> None:
        self._width = min(count, LARGEST_WIDTH)
        self._rows = np.zeros((self._nodes, HEAD + 3 * self._width))
        self._row = self._rows[self._rank]
        # The same memory as whole numbers: ids, digests and votes use all 64 bits; and as bytes.
        self._rows_ints, self._row_ints = self._rows.view(np.int64), self._row.view(np.int64)
        self._bytes = memoryview(self._row).cast("B")

    def gathered(self, own: Proposals | None, digest: int, vote: int) -> Proposals:
        """Send this rank's proposals (None if it failed), and return those of all ranks."""
        self._fill(own, digest, vote)
        if self._nodes > 1:
            self._comm.Allgather(self._in_place, self._rows)
        columns = self._rows.T.copy()
        ints = columns.view(np.int64)
        counts, self.digests, self.votes = ints[COUNT:HEAD].tolist()
        node = self._ranks
        if self._width == 1 and counts == self._ones:
            ids, scores, merits = ints[HEAD], columns[HEAD + 1], columns[HEAD + 2]
        else:
            node = np.repeat(self._ranks, counts)
            ids, scores, merits = self._proposed(own, np.array(counts))
        with_partial = own is not None and own.partial is not None
        partial = columns[PARTIAL] if with_partial else None
        signals = 0 if own is None else own.signals
        return Proposals(node, ids, scores, merits, columns[BEST], partial, signals)

    def _fill(self, own: Proposals | None, digest: int, vote: int) -> None:
        if own is None:
            _HEAD.pack_into(self._bytes, 0, -np.inf, 0.0, 0, digest, vote)
            return
        row, width, count = self._row, self._width, len(own.id)
        best, partial = own.best.item(self._rank), own.partial
        summed = 0.0 if partial is None else partial.item(self._rank)
        head = (best, summed, count, digest, vote)
        if count == width == 1:  # the usual case, which must be quick
            one = (own.id.item(0), own.score.item(0), own.merit.item(0))
            _WITH_ONE.pack_into(self._bytes, 0, *head, *one)
            return
        _HEAD.pack_into(self._bytes, 0, *head)
        if count <= width:
            self._row_ints[HEAD : HEAD + count] = own.id
            row[HEAD + width : HEAD + width + count] = own.score
            row[HEAD + 2 * width : HEAD + 2 * width + count] = own.merit

    def _proposed(self, own: Proposals | None, counts: NDArray[np.int64]) -> Columns:
        """The ids, scores and merits of all ranks, sorted by rank."""
        width = self._width
        if FAILED in self.votes:
            return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        if counts.max() <= width:
            here = np.arange(width) < counts[:, np.newaxis]
            return (
                self._rows_ints[:, HEAD : HEAD + width][here],
                self._rows[:, HEAD + width : HEAD + 2 * width][here],
                self._rows[:, HEAD + 2 * width :][here],
            )
        assert own is not None
        packed = np.stack([own.id.view(np.float64), own.score, own.merit], axis=1)
        everything = np.empty((int(counts.sum()), 3))
        self._comm.Allgatherv(packed, (everything, 3 * counts))
        return (
            np.ascontiguousarray(everything[:, 0]).view(np.int64),
            np.ascontiguousarray(everything[:, 1]),
            np.ascontiguousarray(everything[:, 2]),
        )
