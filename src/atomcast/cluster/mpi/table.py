"""The proposals of all ranks in one collective: a row of eight-byte numbers from each."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mpi.failures import import_mpi
from atomcast.messages.proposals import FEW, OneEach, OneProposal, Proposals

#: Where in a row stands what; the proposed ids, scores and merits follow.
BEST, PARTIAL, COUNT, DIGEST, VOTE, UNREAD, HEAD = range(7)
_HEAD, _WITH_ONE = Struct("=ddqqqq"), Struct("=ddqqqqqdd")
#: Where it stands in all rows, one after the other, if each has one proposal.
_EACH = [slice(k, None, HEAD + 3) for k in range(HEAD + 3)]
_BESTS, _PARTIALS, _COUNTS, _DIGESTS, _VOTES, _UNREADS, _IDS, _SCORES, _MERITS = _EACH
#: Up to so many proposals travel in the row; if a rank has more, a second collective follows.
LARGEST_WIDTH = 16
#: The vote of a rank that cannot go on.
FAILED = -1


#: What a rank proposes.
Said = Proposals | OneProposal
Columns = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


class Table:
    """The buffers of a rank, used again every round.

    Attributes
    ----------
    votes, digests, unread : sequence of int
        What the ranks sent along with their last proposals: their wish to stop, what tells their
        states apart, and how many of their atoms they left unread.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._rank, self._nodes = comm.Get_rank(), comm.Get_size()
        self._in_place = import_mpi().IN_PLACE
        self._ranks, self._ones = np.arange(self._nodes), (1,) * self._nodes
        self.votes: Sequence[int] = ()
        self.digests: Sequence[int] = ()
        self.unread: Sequence[int] = ()
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
        self._bytes, self._all = self._row.data.cast("B"), self._rows.data.cast("B")
        plain = self._width == 1 and self._nodes <= FEW
        self._plain = Struct("=" + self._nodes * "ddqqqqqdd") if plain else None

    def gathered(self, own: Said | None, digest: int, vote: int) -> Proposals:
        """Send this rank's proposals (None if it failed), and return those of all ranks."""
        each = self.one_each(own, digest, vote)
        return self.proposals(own) if each is None else each.table()

    def one_each(self, own: Said | None, digest: int, vote: int, unread: int = 0) -> OneEach | None:
        """The same in plain numbers, if all ranks propose one atom; else see `proposals`."""
        self._fill(own, digest, vote, unread)
        if self._nodes > 1:
            self._comm.Allgather(self._in_place, self._rows)
        if self._plain is None:
            self.digests, self.votes, self.unread = self._rows_ints[:, DIGEST:HEAD].T.tolist()
            return None
        said = self._plain.unpack(self._all)
        self.digests, self.votes, self.unread = said[_DIGESTS], said[_VOTES], said[_UNREADS]
        if own is None or said[_COUNTS] != self._ones or (type(own) is Proposals and own.signals):
            return None
        partial = None if own.partial is None else said[_PARTIALS]
        return OneEach(said[_IDS], said[_SCORES], said[_MERITS], said[_BESTS], partial)

    def proposals(self, own: Said | None) -> Proposals:
        """The proposals of all ranks, however many."""
        own = own.table(self._nodes) if isinstance(own, OneProposal) else own
        counts = self._rows_ints[:, COUNT].copy()
        ids, scores, merits = self._proposed(own, counts)
        with_partial = own is not None and own.partial is not None
        partial = self._rows[:, PARTIAL].copy() if with_partial else None
        signals = 0 if own is None else own.signals
        node, best = np.repeat(self._ranks, counts), self._rows[:, BEST].copy()
        return Proposals(node, ids, scores, merits, best, partial, signals)

    def _fill(self, own: Said | None, digest: int, vote: int, unread: int) -> None:
        if own is None:
            _HEAD.pack_into(self._bytes, 0, -np.inf, 0.0, 0, digest, vote, unread)
            return
        if isinstance(own, OneProposal):
            if self._width == 1:
                _, id, score, merit, best, part = own
                _WITH_ONE.pack_into(
                    self._bytes, 0, best, part or 0.0, 1, digest, vote, unread, id, score, merit
                )
                return
            own = own.table(self._nodes)
        row, width, count = self._row, self._width, len(own.id)
        largest, partial = own.best.item(self._rank), own.partial
        summed = 0.0 if partial is None else partial.item(self._rank)
        _HEAD.pack_into(self._bytes, 0, largest, summed, count, digest, vote, unread)
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
