"""How a program and the ranks that it has started speak: pickled objects over a private socket.

To unpickle is to run what the sender wrote, so this is for a program and its own children alone,
who run what the program says anyway. The socket lies in a folder that only this user can enter, and
both sides prove, as the processes of `multiprocessing` do, that they know a key that was made for
this one connection. Nothing is ever unpickled from a file, from a network or from another party:
models, checkpoints, shards and atoms have formats of their own.
"""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from atomcast.cluster.mpi.termination import clean_if_terminated, no_longer

#: The longest path that a socket may have on Linux and macOS.
LONGEST_PATH = 100
_KEY = 32


def dumps(thing: Any) -> bytes:
    """An object as bytes, also of a class or a function of the program itself."""
    try:
        import cloudpickle
    except ModuleNotFoundError:  # joblib used to bring it along
        from joblib.externals import cloudpickle
    return bytes(cloudpickle.dumps(thing))


class Channel:
    """A connection over which any object goes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, thing: Any) -> None:
        """Send a thing."""
        self.send_bytes(dumps(thing))

    def send_bytes(self, message: bytes) -> None:
        """Send bytes that the other side takes with `receive_bytes`."""
        self._connection.send_bytes(message)

    def receive(self) -> Any:
        """Wait for the next thing; EOFError if the other side is gone."""
        return pickle.loads(self.receive_bytes())

    def receive_bytes(self) -> bytes:
        """Wait for the next bytes; EOFError if the other side is gone."""
        try:
            return self._connection.recv_bytes()
        except ConnectionError:
            raise EOFError("the other side has closed the connection") from None
        except BlockingIOError:
            raise TimeoutError("the other side has not answered in time") from None

    def limit(self, seconds: float | None) -> None:
        """Let `receive` wait for so long at most, and raise TimeoutError then; None: for ever."""
        with socket.socket(fileno=os.dup(self._connection.fileno())) as same:
            _limit(same, seconds)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Listener:
    """A socket that waits for one connection, in a folder that only this user can enter."""

    def __init__(self) -> None:
        base = None if len(tempfile.gettempdir()) < LONGEST_PATH - 40 else "/tmp"
        self._folder = Path(tempfile.mkdtemp(prefix="atomcast-", dir=base))
        self.path = self._folder / "socket"
        self._key = secrets.token_bytes(_KEY)
        self._socket = socket.socket(socket.AF_UNIX)
        clean_if_terminated(self.close)
        _key_beside(self.path).write_bytes(self._key)
        self._socket.bind(str(self.path))
        self._socket.listen(1)

    def accept(
        self, still_waiting: Callable[[], bool], limit: float | None = None
    ) -> Channel | None:
        """Wait for the connection; None if there is no longer any sense in waiting.

        After `limit` seconds, if one is given, TimeoutError is raised.
        """
        self._socket.settimeout(0.1)
        start = time.monotonic()
        while True:
            try:
                accepted, _ = self._socket.accept()
            except TimeoutError:
                if not still_waiting():
                    return None
                if limit is not None and time.monotonic() - start > limit:
                    raise TimeoutError(f"nobody has connected for {limit:g} s") from None
                continue
            accepted.settimeout(None)
            _limit(accepted, limit)
            connection = Connection(accepted.detach())
            try:
                deliver_challenge(connection, self._key)
                answer_challenge(connection, self._key)
            except BlockingIOError:
                raise TimeoutError(f"who has connected has said nothing for {limit:g} s") from None
            return Channel(connection)

    def close(self) -> None:
        """Take the socket, the key and their folder away."""
        self._socket.close()
        for path in (self.path, _key_beside(self.path)):
            path.unlink(missing_ok=True)
        os.rmdir(self._folder)
        no_longer(self.close)


def connect(path: str) -> Channel:
    """Connect to a listener."""
    key = _key_beside(Path(path)).read_bytes()
    connecting = socket.socket(socket.AF_UNIX)
    connecting.connect(path)
    connection = Connection(connecting.detach())
    answer_challenge(connection, key)
    deliver_challenge(connection, key)
    return Channel(connection)


def _limit(connected: socket.socket, seconds: float | None) -> None:
    """Let reads end with BlockingIOError after so many seconds; None: never."""
    # The system's own limit costs nothing, and also holds in the middle of a message.
    whole, rest = divmod(int(1e6 * (seconds or 0.0)), 1_000_000)
    value = struct.pack("@ll", whole, rest)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)


def _key_beside(path: Path) -> Path:
    return path.with_name("key")
