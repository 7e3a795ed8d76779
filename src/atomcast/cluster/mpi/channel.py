"""Messages of known length between two processes of one machine, over a socket in a folder."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atomcast.cluster.mpi.termination import clean_if_terminated, no_longer
from atomcast.cluster.plain import pack, unpack

_LENGTH = 8
#: The longest path that a socket may have on Linux and macOS.
LONGEST_PATH = 100


class Channel:
    """A connection over which plain things go (see `plain`)."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, thing: Any) -> None:
        """Send a thing."""
        self.send_bytes(pack(thing))

    def send_bytes(self, message: bytes) -> None:
        """Send bytes that the other side takes with `receive_bytes`."""
        self._socket.sendall(len(message).to_bytes(_LENGTH, "little") + message)

    def receive(self) -> Any:
        """Wait for the next thing; EOFError if the other side is gone."""
        return unpack(self.receive_bytes())

    def receive_bytes(self) -> bytearray:
        """Wait for the next bytes; EOFError if the other side is gone."""
        return self._exactly(int.from_bytes(self._exactly(_LENGTH), "little"))

    def _exactly(self, count: int) -> bytearray:
        content = bytearray(count)
        view = memoryview(content)
        while len(view):
            try:
                got = self._socket.recv_into(view)
            except ConnectionError:
                got = 0
            except BlockingIOError:
                raise TimeoutError("the other side has not answered in time") from None
            if not got:
                raise EOFError("the other side has closed the connection")
            view = view[got:]
        return content

    def limit(self, seconds: float | None) -> None:
        """Let `receive` wait for so long at most, and raise TimeoutError then; None: for ever."""
        # The system's own limit costs nothing; Python's would ask it before each read.
        whole, rest = divmod(int(1e6 * (seconds or 0.0)), 1_000_000)
        self._socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", whole, rest)
        )

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class Listener:
    """A socket that waits for one connection, in a folder that only this user can enter."""

    def __init__(self) -> None:
        base = None if len(tempfile.gettempdir()) < LONGEST_PATH - 40 else "/tmp"
        self._folder = tempfile.mkdtemp(prefix="atomcast-", dir=base)
        self.path = Path(self._folder) / "socket"
        self._socket = socket.socket(socket.AF_UNIX)
        clean_if_terminated(self.close)
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
                connection, _ = self._socket.accept()
            except TimeoutError:
                if not still_waiting():
                    return None
                if limit is not None and time.monotonic() - start > limit:
                    raise TimeoutError(f"nobody has connected for {limit:g} s") from None
                continue
            connection.settimeout(None)
            return Channel(connection)

    def close(self) -> None:
        """Take the socket and its folder away."""
        self._socket.close()
        self.path.unlink(missing_ok=True)
        os.rmdir(self._folder)
        no_longer(self.close)


def connect(path: str) -> Channel:
    """Connect to a listener."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return Channel(connection)
