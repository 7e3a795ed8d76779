"""What a rank does that `MPICluster.launch` started: run the loop along with the program.

The program that called `fit` runs the loop too, with its own copy of the state. Rank 0 tells it
what the ranks proposed and broadcast, and it tells rank 0 whether to go on: it has the clock, the
callbacks and the user.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mpi.channel import Channel, connect
from atomcast.cluster.mpi.errors import abort, import_mpi
from atomcast.cluster.mpi.processes import GO_ON, TELL_FINGERPRINT
from atomcast.cluster.mpi.resume import bytes_of_rank_0
from atomcast.cluster.mpi.session import MPISession
from atomcast.cluster.mpi.stored_shards import StoredShards
from atomcast.cluster.mpi.watch import ATOMS, PROGRAM, STEPPING, Pulse, watch_of
from atomcast.cluster.plain import unpack
from atomcast.cluster.validation import described
from atomcast.data._files import FileShards
from atomcast.data.shards import Shards
from atomcast.loop.interrupting import Interrupts
from atomcast.loop.replica import Replica
from atomcast.loop.resuming import resume
from atomcast.loop.solver import Best, Solver
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request
from atomcast.messages.status import Status
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem


class RelayedSession(MPISession):
    """A rank whose rank 0 also talks to the program that started the ranks."""

    def __init__(
        self, comm: Any, problem: Problem, shards: Shards, channel: Channel | None, pulse: Pulse
    ) -> None:
        super().__init__(comm, problem, shards, pulse)
        self.speaks = False
        self._channel = channel

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Agree with the other ranks, and let the program know all proposals."""
        agreement = super().propose(replica, request)
        if self._channel is not None:
            said: dict[str, Any] = {"proposals": self._proposals, "digest": self._table.digests[0]}
            if request.complete:
                said["radius"] = replica.radius
            self._channel.send(said)
        return agreement

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Broadcast the new winners, to the program as well."""
        atoms = super().cast(replica, agreement)
        if self._channel is not None and atoms:
            messages = self._messages if self.nodes > 1 else [wire.encode(atom) for atom in atoms]
            content = [np.frombuffer(message, dtype=np.uint8) for message in messages]
            self._channel.send({"atoms": content})
        return atoms

    def leave(self) -> None:
        """It is for the program to say when a run ends."""

    def vote(self, status: Status | None) -> Status | None:
        """Let the program decide, and tell it before that what it wants to know."""
        decision = np.zeros(1, dtype=np.int8)
        while True:
            if self._channel is not None:
                self._pulse.at = (self._pulse.at[0], PROGRAM)
                decision[0] = self._channel.receive()
            else:
                self._pulse.at = (self._pulse.at[0], ATOMS)
            self._comm.Bcast(decision, 0)
            self._pulse.at = (self._pulse.at[0], STEPPING)
            if decision[0] != TELL_FINGERPRINT:
                break
            self._tell_program("fingerprint", self._common_fingerprint())
        self._due = "atoms" if decision[0] == GO_ON else "nothing"
        return None if decision[0] == GO_ON else "stopped"

    def shared(self, read: Callable[[], bytes]) -> bytes:
        """The checkpoint that the program has read, to which the data's fingerprint must fit."""
        content = bytearray() if self._channel is None else self._channel.receive_bytes()
        told = bytes_of_rank_0(self._comm, content)
        self._tell_program("fingerprint", self._common_fingerprint())
        return told

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rank that holds each of these atoms; the program learns it too."""
        owners = super().owners(ids)
        self._tell_program("owners", owners)
        return owners

    def _tell_program(self, name: str, thing: Any) -> None:
        if self._channel is not None:
            self._channel.send({name: thing})


def next_replica(comm: Any, channel: Channel | None, previous: Replica | None) -> Any:
    """The state that the next run starts from, and its settings; None when all is done."""
    message = bytearray() if channel is None else channel.receive_bytes()
    content = bytes_of_rank_0(comm, message)
    if not content:
        return None
    start = unpack(content)
    replica = Replica(start["problem"], start["step"], start["tol"], start["selection"])
    if previous is not None:
        replica.continue_from(previous, start["weights"])
    return replica, start["settings"]


def follow(comm: Any, session: RelayedSession, channel: Channel | None) -> None:
    """Take part in one run after the other, until the program has no more."""
    replica: Replica | None = None
    while (start := next_replica(comm, channel, replica)) is not None:
        replica, settings = start
        session.begin(replica, settings)
        best = Best(replica.tol)
        if settings["resume"]:
            resume("the checkpoint", replica, best, session)
        Solver(tol=replica.tol)._run(replica, best, session, Interrupts())  # the program's to hear


def main(folder: str, socket_path: str) -> None:
    """Load this rank's shard, then follow the program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which then tells us
    comm = import_mpi().COMM_WORLD
    channel = connect(socket_path) if comm.Get_rank() == 0 else None
    try:
        order = unpack(Path(folder, "problem").read_bytes())
        files = order["files"]
        shards = FileShards.again(**files) if files else StoredShards(Path(folder, "shards"))
        pulse = watch_of(comm, order["deadline"])
        session = RelayedSession(comm, order["problem"], shards, channel, pulse)
        if channel is not None:
            reports = [asdict(report) for report in session.reports]
            channel.send({"n": session.n, "d": session.d, "reports": reports})
        follow(comm, session, channel)
    except (EOFError, ConnectionError):  # the program is gone: there is nobody left to work for
        shutil.rmtree(folder, ignore_errors=True)  # if it was killed, it could not do so itself
        abort(None)
    except Exception as error:
        if channel is None and not getattr(error, "raised_by_all", False):
            abort(error)
        if channel is not None:
            channel.send({"error": list(described(error))})


if __name__ == "__main__":
    main(*sys.argv[1:])
