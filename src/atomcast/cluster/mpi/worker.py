"""What a rank does that `MPICluster.launch` started: run the loop, and tell the program of it.

All ranks run `Solver.solve_path`. Rank 0 asks the program for one problem after the other, shows it
every state and sends it every result: the program has the clock, the callbacks and the user.
"""

from __future__ import annotations

import pickle
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from atomcast.cluster.mpi.buffers import bytes_of_rank_0
from atomcast.cluster.mpi.channel import Channel, connect, dumps
from atomcast.cluster.mpi.failures import abort, import_mpi, told_by_all
from atomcast.cluster.mpi.mpi_session import STATUSES, MPISession
from atomcast.cluster.mpi.watch import ATOMS, PROGRAM, STEPPING, Pulse, watch_of
from atomcast.cluster.validation import described
from atomcast.data.shards import Shards
from atomcast.errors import ClusterError
from atomcast.loop.callbacks import State
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec
from atomcast.messages.proposals import Agreement, Request
from atomcast.messages.status import Status
from atomcast.problems.problem import Problem

#: In place of a decision, that all ranks are wanted for the fingerprint of the data.
TELL_FINGERPRINT = -1


class Program:
    """The program, as rank 0 sees it; once it is gone, there is nobody left to work for."""

    def __init__(self, channel: Channel, folder: str) -> None:
        self._channel, self._folder = channel, folder

    def tell(self, kind: str, what: Any = None) -> None:
        """Send news of this kind."""
        message = dumps((kind, what))
        try:
            self._channel.send_bytes(message)
        except OSError:
            self._is_gone()

    def hear(self) -> bytes:
        """Wait for what the program says."""
        try:
            return self._channel.receive_bytes()
        except EOFError:
            self._is_gone()
            raise

    def _is_gone(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)  # if it was killed, it could not do so
        abort(None)


class Relay:
    """The callback of rank 0: the program's callbacks see the state, and say whether to go on."""

    def __init__(self, program: Program, pulse: Pulse) -> None:
        self._program, self._pulse = program, pulse

    def __call__(self, state: State) -> Status | None:
        """Show the program a state; what its callbacks wish."""
        return self._shown("state", state)

    def finish(self, state: State) -> None:
        """Show the program the last state."""
        self._shown("finish", state)

    def _shown(self, kind: str, state: State) -> Status | None:
        names = ("round", "seconds", "objective", "gap", "relative_gap", "tol", "row")
        said = {name: getattr(state, name) for name in names}
        self._program.tell(kind, {**said, "feasible": state.replica.feasible})
        while True:
            self._pulse.at = (state.round, PROGRAM)
            request, wish = pickle.loads(self._program.hear())
            self._pulse.at = (state.round, STEPPING)
            if request is None:
                return wish  # type: ignore[no-any-return]
            try:
                part = getattr(state, request)
                self._program.tell("part", part() if callable(part) else part)
            except Exception as error:
                self._program.tell("error", sendable(error))


class LaunchedRank(MPISession):
    """A rank of a program that is not itself one: rank 0 has the program's word on when to stop."""

    def __init__(self, *given: Any, program: Program | None) -> None:
        super().__init__(*given)
        self._program = program
        if program is not None:
            program.tell("open", [asdict(report) for report in self.reports])

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Begin a run, whose rounds begin when it has come to where it is resumed from."""
        self._first = True
        return super().begin(replica, spec)

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let the program know when rounds begin."""
        if self._program is not None and self._first:
            self._program.tell("rounds")
        self._first = False
        return super().propose(replica, request)

    def leave(self) -> None:
        """The others wait for rank 0, which shows the program the last round, too."""

    def vote(self, status: Status | None) -> Status | None:
        """Take the word of rank 0; it may want the fingerprint of all before that."""
        word = np.array([0 if status is None else 1 + STATUSES.index(status)], dtype=np.int8)
        self._pulse.at = (self._pulse.at[0], ATOMS)
        self._comm.Bcast(word, 0)
        while word[0] == TELL_FINGERPRINT:
            self._common_fingerprint()
            self._pulse.at = (self._pulse.at[0], ATOMS)
            self._comm.Bcast(word, 0)
        self._pulse.at = (self._pulse.at[0], STEPPING)
        self._due = "nothing" if word[0] else "atoms"
        return STATUSES[word[0] - 1] if word[0] else None

    def fingerprint(self) -> str:
        """What tells the atoms from others; rank 0 may ask while the others wait for its vote."""
        if self._fingerprint is None and not self._together:
            if self._due != "atoms":
                raise ValueError(
                    "the ranks have ended the run, and no snapshot was asked for before: put "
                    "Checkpoint(path) among the callbacks"
                )
            self._comm.Bcast(np.array([TELL_FINGERPRINT], dtype=np.int8), 0)
        return self._common_fingerprint()


class LaunchedRanks(NamedTuple):
    """The cluster, as the loop of a rank sees it."""

    comm: Any
    pulse: Pulse
    program: Program | None

    @property
    def nodes(self) -> int:
        """How many ranks there are."""
        return int(self.comm.Get_size())

    def open(self, problem: Problem, shards: Shards) -> LaunchedRank:
        """Load this rank's shard, and tell the program of all."""
        return LaunchedRank(self.comm, problem, shards, self.pulse, program=self.program)


def sendable(error: Exception) -> Exception:
    """The error, or another with its words if it cannot be sent as it is."""
    try:
        pickle.loads(dumps(error))
    except Exception:
        return ClusterError(": ".join(described(error)))
    return error


def from_program(comm: Any, program: Program | None) -> Any:
    """The next thing that the program says, on all ranks; None when there is no more."""
    content = bytes_of_rank_0(comm, b"" if program is None else program.hear())
    with told_by_all():
        return pickle.loads(content) if content else None


def problems(comm: Any, program: Program | None) -> Iterator[Problem]:
    """One problem after the other, as the program finds them."""
    while True:
        if program is not None:
            program.tell("problem")
        problem = from_program(comm, program)
        if problem is None:
            return
        yield problem


def solve(comm: Any, program: Program | None) -> None:
    """Run the loop for all problems of the program."""
    sys.path += [path for path in from_program(comm, program) if path not in sys.path]
    order = from_program(comm, program)
    shards, past = order["shards"], order["past"]
    pulse = watch_of(comm, order["deadline"])
    callbacks = [] if program is None else [Relay(program, pulse)]
    solver = replace(order["solver"], callbacks=callbacks)
    ranks = LaunchedRanks(comm, pulse, program)
    for result in solver.solve_path(problems(comm, program), shards, ranks, order["names"], past):
        if program is not None:
            program.tell("result", (result, [] if past is None else past.finished))


def main(folder: str, socket_path: str) -> None:
    """Work for the program until it has no more problems."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which then tells us
    comm = import_mpi().COMM_WORLD
    program = Program(connect(socket_path), folder) if comm.Get_rank() == 0 else None
    try:
        solve(comm, program)
    except Exception as error:
        if program is not None:
            program.tell("error", sendable(error))
        elif not getattr(error, "raised_by_all", False):
            abort(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
