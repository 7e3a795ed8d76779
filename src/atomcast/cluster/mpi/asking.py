"""Rank 0 asks the ranks about weights that they keep, while it combines their mixtures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.keeping import Counted, cones_of
from atomcast.cluster.mixing import Mixer
from atomcast.cluster.mpi.buffers import bytes_of_rank_0, gather_at_0
from atomcast.loop.replica import Replica
from atomcast.network.ledger import Accountant
from atomcast.steps.inner.combination import Asked
from atomcast.steps.inner.cone import QUESTIONS, Cones, Question

Floats = NDArray[np.float64]

#: In the place of a question: there are no more.
END = -1


class UnansweredError(Exception):
    """A rank had no answer: it met an error, which it raises once all questions are asked."""


@contextmanager
def asking(
    comm: Any, mixers: Sequence[Mixer], replica: Replica, accountant: Accountant[Any]
) -> Iterator[Asked | None]:
    """What rank 0 may ask through; the others have answered when they are let in.

    Where one had no answer, rank 0 goes on without an error: the other raises its own.
    """
    if replica.step.reveals:
        yield None
        return
    owners = _RankOwners(comm, mixers, replica, accountant)
    if comm.Get_rank():
        owners.answer_all()
        yield None
        return
    try:
        with suppress(UnansweredError):
            yield owners.asked
    finally:
        owners.end()


class _RankOwners:
    """The ranks as owners of what is in their mixtures; one such object on each of them."""

    def __init__(
        self, comm: Any, mixers: Sequence[Mixer], replica: Replica, accountant: Accountant[Any]
    ) -> None:
        self._comm, self._rank, self._size = comm, comm.Get_rank(), comm.Get_size()
        self._mixers, self._replica, self._accountant = mixers, replica, accountant
        self._cones: Cones | None = None
        self._nodes, self._width = list[int](), 0
        self._error: Exception | None = None
        self._account: list[tuple[int, int, int]] = []

    # -- rank 0 -----------------------------------------------------------------------------

    def asked(self, nodes: Sequence[int], width: int) -> Counted:
        """The owners among the ranks."""
        self._nodes, self._width = list(nodes), width
        return Counted(self, self._accountant, nodes)

    def __call__(self, question: Question, common: Floats, each: Floats) -> Floats:
        """What the ranks answer, a row each."""
        self._tell([QUESTIONS.index(question), self._width, each.shape[1], *self._nodes])
        answers = self._exchange(question, common, each)
        if self._error is not None:
            raise self._error
        rows = [np.frombuffer(answers[i]) for i in self._nodes]
        if any(not len(row) for row in rows):
            raise UnansweredError
        self._account.append((len(common), each.shape[1], len(rows[0])))
        return np.stack(rows)

    def end(self) -> None:
        """Let the others know that there are no more questions, and what there were."""
        self._tell([END, 0, 0, *self._nodes])
        self._tell(np.ravel(self._account).tolist())

    # -- the others -------------------------------------------------------------------------

    def answer_all(self) -> None:
        """Answer until rank 0 has no more questions; then raise what has gone wrong here."""
        while True:
            question, self._width, columns, *self._nodes = self._tell([])
            if question == END:
                break
            self._exchange(QUESTIONS[question], np.zeros(0), np.zeros((0, columns)))
        for common, each, answer in np.reshape(self._tell([]), (-1, 3)).tolist():
            self._accountant.combine(self._nodes, (common, each), answer)
        if self._error is not None:
            raise self._error

    # -- both -------------------------------------------------------------------------------

    def _tell(self, numbers: Sequence[int]) -> list[int]:
        """The whole numbers that rank 0 says, on every rank."""
        told = bytes_of_rank_0(self._comm, np.array(numbers, dtype=np.int64).tobytes())
        return np.frombuffer(told, dtype=np.int64).tolist()

    def _exchange(self, question: Question, common: Floats, each: Floats) -> list[bytes]:
        """A question of rank 0, whose arguments count there alone, and the answers to it."""
        columns = each.shape[1]
        common = np.frombuffer(bytes_of_rank_0(self._comm, common.tobytes()))
        rows = np.zeros((self._size if self._rank == 0 else 0, columns))
        if self._rank == 0:
            rows[self._nodes] = each
        own = np.zeros((1, columns))
        self._comm.Scatter(rows, own, root=0)
        return gather_at_0(self._comm, self._answer(question, common, own))

    def _answer(self, question: Question, common: Floats, own: Floats) -> bytes:
        """The answer of this rank, which is none if it has sent no mixture or met an error."""
        if self._rank not in self._nodes or self._error is not None:
            return b""
        try:
            if self._cones is None:
                self._cones = cones_of(self._mixers, self._replica, self._width)
            return self._cones(question, common, own).tobytes()
        except Exception as error:
            self._error = error
            return b""
