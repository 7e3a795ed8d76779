"""Messages in pieces: gRPC carries 4 MB at a time, and a feature may be larger."""

from __future__ import annotations

from collections.abc import Iterator

from atomcast.federated.kinds import Message
from atomcast.federated.schema import SchemaError, decode, encode

#: The one method that there is, and the largest piece.
METHOD = "/atomcast.Federated/Attend"
PIECE = 1 << 20
FIRST, MORE = b"\x01", b"\x00"
#: Pings find out within 25 seconds that the other side is gone without a word.
OPTIONS = [
    ("grpc.max_receive_message_length", PIECE + 16),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    ("grpc.http2.ping_timeout_ms", 15_000),  # or a ping that measures speed delays the others
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
]


def frames(message: Message) -> Iterator[bytes]:
    """A message in pieces, of which the first says how long it is in all."""
    content = encode(message)
    yield FIRST + len(content).to_bytes(4, "little") + content[:PIECE]
    for start in range(PIECE, len(content), PIECE):
        yield MORE + content[start : start + PIECE]


def longest(rows: int, features: int = 1) -> int:
    """How many bytes a message may have where so many features travel together."""
    return (1 << 22) + 16 * rows * features


class Assembler:
    """Puts messages together again; a length above the limit is refused before anything is kept.

    Parameters
    ----------
    limit : int
        How many bytes a message may have.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._length = self._got = 0
        self._pieces: list[bytes] = []

    def feed(self, frame: bytes) -> Message | None:
        """The message that this piece completes, if it does."""
        if frame[:1] == FIRST and not self._pieces and len(frame) > 5:
            self._length = int.from_bytes(frame[1:5], "little")
            if self._length > self.limit:
                raise SchemaError(
                    f"a message of {self._length} bytes was announced, at most {self.limit} fit"
                )
            self._pieces, self._got = [frame[5:]], len(frame) - 5
        elif frame[:1] == MORE and self._pieces and len(frame) > 1:
            if self._got % PIECE:
                raise SchemaError("a piece of a message is shorter than it should be")
            self._pieces.append(frame[1:])
            self._got += len(frame) - 1
        else:
            raise SchemaError("a piece of a message is out of place")
        missing = self._length - self._got
        if missing < 0:
            raise SchemaError("a message is longer than was announced")
        if missing:
            return None
        content, self._pieces = b"".join(self._pieces), []
        return decode(content)
