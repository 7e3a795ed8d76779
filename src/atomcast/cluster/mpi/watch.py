"""Deadlines: a rank that waits too long finds out for which other one, and ends the job.

A collective cannot be interrupted, so a thread beside the loop watches it. The loop only notes
where it is, in one attribute; the thread looks at that about once a second, and answers the threads
of other ranks that want to know. What they ask each other goes over a communicator of its own.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mpi.buffers import bytes_of_rank_0, gather_json
from atomcast.cluster.mpi.failures import abort, agreed, import_mpi, told_by_all
from atomcast.cluster.validation import described, raise_described
from atomcast.errors import StallError

#: Where a rank can be.
OUTSIDE, LOADING, SCORING, STEPPING, PROGRAM, STARTING, PROPOSALS, ATOMS = range(8)
#: In these places, it waits for other ranks.
WAITING = (STARTING, PROPOSALS, ATOMS)
_DOING = {
    OUTSIDE: "is not in a fit",
    LOADING: "is still loading or checking its data",
    SCORING: "is still scoring its atoms",
    STEPPING: "is still in its step or in a callback",
    STARTING: "waits for the others before the first round",
    PROPOSALS: "waits for proposals",
    ATOMS: "waits for atoms",
}
#: Before the first round, there is no round to tell.
NO_ROUND = -1
#: How long ranks have to say where they are, in seconds, and how often each looks around.
ANSWER, LOOK = 3.0, 1.0
_ASK, _TELL, _HERE = 1, 2, 31_991

Place = tuple[int, int]
Report = tuple[Place, float]


class Pulse:
    """Where this rank is: a round and a place. Setting `at` is all that the loop does for it."""

    def __init__(self) -> None:
        self.at: Place = (NO_ROUND, OUTSIDE)


@contextmanager
def by_all(comm: Any, pulse: Pulse, who: str = "rank") -> Iterator[None]:
    """Work that takes its time: what goes wrong with it on one rank is raised on all of them.

    Errors name the rank by what it is called here, such as "shard 2", unless that is nothing.
    """
    error: Exception | None = None
    try:
        yield
    except Exception as met:
        error = met
    pulse.at = (NO_ROUND, STARTING)  # the others may still be at it
    told = gather_json(comm, None if error is None else described(error))
    if error is not None and told.count(told[0]) == len(told):
        raise agreed(error)
    with told_by_all():
        for rank, said in enumerate(told):
            if said is not None:
                raise_described(said, f"{who} {rank}" if who else "")


def read_by_rank_0(comm: Any, pulse: Pulse, read: Callable[[], bytes]) -> bytes:
    """What `read` returns on rank 0; an error that it meets there is raised on every rank."""
    pulse.at = (NO_ROUND, LOADING)
    with by_all(comm, pulse, who=""):
        content = read() if comm.Get_rank() == 0 else b""
    return bytes_of_rank_0(comm, content)


class Watch(Pulse):
    """A thread that ends the job if this rank has waited for others longer than the deadline."""

    def __init__(self, comm: Any) -> None:
        super().__init__()
        self.deadline: float | None = None
        self._comm = comm
        self._rank, self._nodes = comm.Get_rank(), comm.Get_size()
        self._seen, self._since = self.at, time.monotonic()
        self._inquiry = 0
        self._sent: list[Any] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="atomcast-watch", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the thread, which must not be inside MPI when that is finalised."""
        atexit.unregister(self.stop)
        self._end.set()
        self._thread.join(2 * ANSWER)

    def _run(self) -> None:
        while not self._end.wait(LOOK if self.deadline is None else min(LOOK, self.deadline / 4)):
            now, at = time.monotonic(), self.at
            if at is not self._seen:
                self._seen, self._since = at, now
            self._tell_who_asked()
            # The lower of two ranks that wait for a third one speaks first, and so alone.
            turn = 0.1 * min(self._rank, 20)
            if (
                self.deadline is not None
                and at[1] in WAITING
                and now - self._since > self.deadline + turn
            ):
                self._inquire(at, self.deadline)

    # -- asking and telling -----------------------------------------------------------------

    def _send(self, numbers: list[int], rank: int, tag: int) -> None:
        self._sent = [pair for pair in self._sent if not pair[0].Test()]
        message = np.array(numbers, dtype=np.int64)
        self._sent.append((self._comm.Isend(message, rank, tag), message))

    def _received(self, tag: int) -> tuple[int, NDArray[np.int64]] | None:
        """The next message of a kind and who sent it, if there is one."""
        MPI = import_mpi()
        status = MPI.Status()
        if not self._comm.Iprobe(MPI.ANY_SOURCE, tag, status):
            return None
        message = np.empty(4, dtype=np.int64)
        self._comm.Recv(message, status.Get_source(), tag)
        return status.Get_source(), message

    def _tell_who_asked(self) -> None:
        while (asked := self._received(_ASK)) is not None:
            rank, message = asked
            at, since = self._seen, self._since
            spent = int(1e6 * (time.monotonic() - since)) if at is self.at else 0
            self._send([int(message[0]), *self.at, spent], rank, _TELL)

    def _inquire(self, at: Place, deadline: float) -> None:
        """Ask all ranks where they are, and end the job if some hold up the others."""
        self._inquiry += 1
        reports: dict[int, Report] = {self._rank: (at, time.monotonic() - self._since)}
        for rank in range(self._nodes):
            if rank != self._rank:
                self._send([self._inquiry, 0, 0, 0], rank, _ASK)
        limit = time.monotonic() + ANSWER
        while len(reports) < self._nodes and time.monotonic() < limit and self.at is at:
            self._tell_who_asked()
            while (told := self._received(_TELL)) is not None:
                rank, (inquiry, round, place, spent) = told[0], told[1].tolist()
                if inquiry == self._inquiry:
                    reports[rank] = (round, place), 1e-6 * spent
            self._end.wait(0.02)
        message = verdict(at[0], reports, self._nodes, deadline)
        if self.at is at and message is not None and not self._end.is_set():
            abort(StallError(message), f"rank {self._rank} has waited too long")
        elif any(place == PROGRAM for (_, place), _ in reports.values()):
            self._since = time.monotonic()  # nobody is to blame: start to count anew


def verdict(round: int, reports: dict[int, Report], nodes: int, deadline: float) -> str | None:
    """What to say of a rank that has waited longer than the deadline; None if all is well.

    Parameters
    ----------
    round : int
        The round in which it waits.
    reports : dict
        By rank, where it is and for how many seconds; a rank that is not in it did not answer.
    nodes : int
        How many ranks there are.
    deadline : float
    """
    silent = [rank for rank in range(nodes) if rank not in reports]
    long = {rank: at for rank, (at, spent) in reports.items() if spent > deadline / 2}
    busy = [rank for rank, (_, place) in long.items() if place not in (*WAITING, PROGRAM)]
    what = [f"{_when(round)}: node {rank} does not answer" for rank in silent]
    if not busy and len(long) == nodes and all(place in WAITING for _, place in long.values()):
        busy = list(long)  # they wait for each other
    what += [f"{_when(long[i][0], round)}: node {i} {_DOING[long[i][1]]}" for i in busy]
    if not what:
        return None
    return (
        f"{'; '.join(what)}, and others have waited for more than {deadline:g} s. If a "
        "node may take that long, raise the deadline of the cluster (--deadline on the command "
        "line); if there is a checkpoint, the run can be resumed from it"
    )


def _when(round: int, otherwise: int = NO_ROUND) -> str:
    known = otherwise if round == NO_ROUND else round
    return "before the first round" if known == NO_ROUND else f"round {known}"


# -- one watch for each communicator ------------------------------------------------------------

_key: int | None = None


def watch_of(comm: Any, deadline: float | None) -> Pulse:
    """The watch of a communicator; all ranks must ask for it when they first meet."""
    global _key
    MPI = import_mpi()
    alone = comm.Get_size() == 1
    if alone or MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return Pulse()  # nobody to wait for, or no way to ask while the loop is in MPI
    if _key is None:
        _key = MPI.Comm.Create_keyval(delete_fn=lambda _comm, _key, held: held.stop())
    watch: Watch | None = comm.Get_attr(_key)
    if watch is None:
        watch = Watch(_met(comm, deadline))
        comm.Set_attr(_key, watch)
    watch.deadline = deadline
    return watch


def _met(comm: Any, deadline: float | None) -> Any:
    """A copy of the communicator, once all ranks are here."""
    rank, nodes, start = comm.Get_rank(), comm.Get_size(), time.monotonic()
    here = comm.Isend(np.zeros(0), 0, _HERE) if rank else None
    copy, request = comm.Idup()
    while not request.Test():
        waited = time.monotonic() - start
        if deadline is not None and waited > deadline + (0 if rank == 0 else ANSWER):
            absent = [str(i) for i in range(1, nodes) if rank == 0 and not comm.Iprobe(i, _HERE)]
            raise StallError(
                f"before the first round: node {', '.join(absent) or 'of another rank'} has not "
                f"come to the fit within {deadline:g} s; all {nodes} ranks must call it"
            )
        time.sleep(1e-4 if waited < 0.1 else 1e-2)
    if here is None:
        for other in range(1, nodes):
            comm.Recv(np.zeros(0), other, _HERE)
    else:
        here.Wait()
    return copy
