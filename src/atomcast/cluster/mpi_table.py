"""The proposals of all ranks in one collective: a row of eight-byte numbers from each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.protocol import Proposals

#: Where in a row stands what; the proposed ids, scores and merits follow.
BEST, PARTIAL, COUNT, DIGEST, VOTE, HEAD = range(6)
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
        self._row = np.zeros(HEAD + 3 * self._width)
        self._rows = np.empty((self._nodes, len(self._row)))
        # The same memory as whole numbers: ids, digests and votes use all 64 bits.
        self._row_ints, self._rows_ints = self._row.view(np.int64), self._rows.view(np.int64)

    def gathered(self, own: Proposals | None, digest: int, vote: int) -> Proposals:
        """Send this rank's proposals (None if it failed), and return those of all ranks."""
        self._fill(own, digest, vote)
        if self._nodes == 1:
            self._rows[0] = self._row
        else:
            self._comm.Allgather(self._row, self._rows)
        self.votes = self._rows_ints[:, VOTE].tolist()
        self.digests = self._rows_ints[:, DIGEST].tolist()
        counts = self._rows_ints[:, COUNT].tolist()
        with_partial = own is not None and own.partial is not None
        node, (ids, scores, merits) = self._ranks, self._one_each()
        if self._width > 1 or counts != self._ones:
            node = np.repeat(self._ranks, counts)
            ids, scores, merits = self._proposed(own, np.array(counts))
        return Proposals(
            node=node,
            id=ids,
            score=scores,
            merit=merits,
            best=self._rows[:, BEST].copy(),
            partial=self._rows[:, PARTIAL].copy() if with_partial else None,
        )

    def _one_each(self) -> Columns:
        """The usual case, which must be quick: every rank proposes one atom."""
        rows = self._rows
        return self._rows_ints[:, HEAD].copy(), rows[:, HEAD + 1].copy(), rows[:, HEAD + 2].copy()

    def _fill(self, own: Proposals | None, digest: int, vote: int) -> None:
        row, ints, width = self._row, self._row_ints, self._width
        ints[DIGEST], ints[VOTE], ints[COUNT] = digest, vote, 0
        if own is None:
            return
        row[BEST] = own.best[self._rank]
        row[PARTIAL] = 0.0 if own.partial is None else own.partial[self._rank]
        ints[COUNT] = count = len(own.id)
        if count <= width:
            ints[HEAD : HEAD + count] = own.id
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
