"""What a rank does that `MPICluster.launch` started: run the loop along with the program.

The program that called `fit` runs the loop too, with its own copy of the state. Rank 0 tells it
what the ranks proposed and broadcast, and it tells rank 0 whether to go on: it has the clock, the
callbacks and the user.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from atomcast.atoms.atom import Atom
from atomcast.cluster.channel import Channel, connect
from atomcast.cluster.mpi_errors import abort, import_mpi
from atomcast.cluster.mpi_session import MPISession
from atomcast.cluster.plain import unpack
from atomcast.cluster.stored_shards import StoredShards
from atomcast.cluster.validation import described
from atomcast.data.shards import Shards
from atomcast.network import wire
from atomcast.problem import Problem
from atomcast.protocol import Agreement, Request
from atomcast.replica import Replica
from atomcast.result import Status
from atomcast.solver import Best, Solver


class RelayedSession(MPISession):
    """A rank whose rank 0 also talks to the program that started the ranks."""

    def __init__(
        self, comm: Any, problem: Problem, shards: Shards, channel: Channel | None
    ) -> None:
        super().__init__(comm, problem, shards)
        self.speaks = False
        self._channel = channel

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Agree with the other ranks, and let the program know all proposals."""
        agreement = super().propose(replica, request)
        if self._channel is not None:
            self._channel.send({"proposals": self._proposals, "digest": self._table.digests[0]})
        return agreement

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Broadcast the new winners, to the program as well."""
        atoms = super().cast(replica, agreement)
        if self._channel is not None and atoms:
            messages = self._messages if self.nodes > 1 else [wire.encode(atom) for atom in atoms]
            content = [np.frombuffer(message, dtype=np.uint8) for message in messages]
            self._channel.send({"atoms": content})
        return atoms

    def vote(self, status: Status | None) -> Status | None:
        """Let the program decide."""
        goes_on = np.zeros(1, dtype=np.int8)
        if self._channel is not None:
            goes_on[0] = self._channel.receive()
        self._comm.Bcast(goes_on, 0)
        self._due = "atoms" if goes_on[0] else "nothing"
        return None if goes_on[0] else "stopped"


def next_replica(comm: Any, channel: Channel | None, previous: Replica | None) -> Any:
    """The state that the next run starts from, and its settings; None when all is done."""
    message = bytearray() if channel is None else channel.receive_bytes()
    length = np.array([len(message)], dtype=np.int64)
    comm.Bcast(length, 0)
    if not length[0]:
        return None
    content = np.frombuffer(message or bytearray(int(length[0])), dtype=np.uint8)
    comm.Bcast(content, 0)
    start = unpack(content.data)
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
        Solver(tol=replica.tol)._run(replica, Best(replica.tol), session)


def main(folder: str, socket_path: str) -> None:
    """Load this rank's shard, then follow the program."""
    comm = import_mpi().COMM_WORLD
    channel = connect(socket_path) if comm.Get_rank() == 0 else None
    try:
        order = unpack(Path(folder, "problem").read_bytes())
        files = order["files"]
        shards = Shards.files(**files) if files else StoredShards(Path(folder, "shards"))
        session = RelayedSession(comm, order["problem"], shards, channel)
        if channel is not None:
            channel.send({"n": session.n})
        follow(comm, session, channel)
    except EOFError:  # the program is gone: there is nobody left to work for
        abort(None)
    except Exception as error:
        if channel is None and not getattr(error, "raised_by_all", False):
            abort(error)
        if channel is not None:
            channel.send({"error": list(described(error))})


if __name__ == "__main__":
    main(*sys.argv[1:])
