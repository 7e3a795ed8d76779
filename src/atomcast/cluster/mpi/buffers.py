"""Bytes between ranks: collectives on buffers, never on pickled objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: How much room a broadcast leaves for an atom before any was sent.
FIRST_ROOM = 1024
#: Stands for the length of a message that its owner could not make.
FAILED = -1
_LENGTH = Struct("=q")
HEAD = _LENGTH.size


def gather_bytes(comm: Any, message: bytes) -> list[bytes]:
    """Let every rank have the bytes of all ranks, which may be of different lengths."""
    sizes = np.empty(comm.Get_size(), dtype=np.int64)
    comm.Allgather(np.array([len(message)], dtype=np.int64), sizes)
    everything = np.empty(int(sizes.sum()), dtype=np.uint8)
    comm.Allgatherv(np.frombuffer(message, dtype=np.uint8), (everything, sizes))
    return [part.tobytes() for part in np.split(everything, np.cumsum(sizes)[:-1])]


def gather_at_0(comm: Any, message: bytes) -> list[bytes]:
    """Let rank 0 have the bytes of all ranks; the others get nothing."""
    sizes = np.empty(comm.Get_size(), dtype=np.int64)
    comm.Allgather(np.array([len(message)], dtype=np.int64), sizes)
    here = comm.Get_rank() == 0
    everything = np.empty(int(sizes.sum()) if here else 0, dtype=np.uint8)
    comm.Gatherv(np.frombuffer(message, dtype=np.uint8), (everything, sizes) if here else None, 0)
    return [part.tobytes() for part in np.split(everything, np.cumsum(sizes)[:-1])] if here else []


def bytes_of_rank_0(comm: Any, content: bytes | bytearray) -> bytes:
    """The bytes that rank 0 has, on every rank."""
    length = np.array([len(content)], dtype=np.int64)
    comm.Bcast(length, 0)
    received = np.empty(int(length[0]), dtype=np.uint8)
    if comm.Get_rank() == 0:
        received[:] = np.frombuffer(content, dtype=np.uint8)
    comm.Bcast(received, 0)
    return received.tobytes()


def gather_json(comm: Any, thing: Any) -> list[Any]:
    """Let every rank have what all ranks say, in JSON."""
    return [json.loads(text) for text in gather_bytes(comm, json.dumps(thing).encode())]


def sum_of_all(comm: Any, part: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the arrays of all ranks, the same bit for bit on every rank.

    It is taken in the order of the ranks, as simulated nodes do, for rounding depends on the order.
    """
    parts = np.empty((comm.Get_size() if comm.Get_rank() == 0 else 0, len(part)))
    comm.Gather(part, parts, root=0)
    total: NDArray[np.float64] = parts.sum(axis=0)
    comm.Bcast(total, 0)
    return total


class Broadcaster:
    """Carries messages from their owners to all ranks, in as few collectives as possible.

    Nobody but the owner knows how long a message is, and asking would cost a collective of its
    own. So the owner sends a block that is as large as recent messages were, its length first,
    and only what does not fit into it follows in a second one.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._rank = comm.Get_rank()
        self._room = FIRST_ROOM
        self._memory = memoryview(b"")

    def messages(
        self, owners: Sequence[int], mine: Sequence[bytes] | None
    ) -> list[memoryview] | None:
        """All messages in the order of their owners' list; `mine` are those of this rank.

        Parameters
        ----------
        owners : sequence of int
            The rank that sends each message; the same list on every rank.
        mine : sequence of bytes or None
            The messages of this rank, in the same order; None if it has failed to make them.

        Returns
        -------
        list of memoryview, or None on every rank if an owner has failed
        """
        if len(owners) == 1:  # as in most short rounds
            message = self.from_one(owners[0], mine[0] if mine else None)
            return None if message is None else [message]
        if len(set(owners)) > 1:
            return self._from_several(np.asarray(owners), mine)
        stated, whole = Struct(f"={len(owners)}q"), None
        if mine:
            whole = b"".join((stated.pack(*map(len, mine)), *mine))
        content = self.from_one(owners[0], whole, len(owners))
        if content is None:
            return None
        return _pieces(content[stated.size :], stated.unpack_from(content))

    def from_one(self, owner: int, mine: bytes | None, count: int = 1) -> memoryview | None:
        """What an owner says, of which so many messages are made; None: it has failed."""
        head, room = HEAD, count * self._room
        block = self._block(head + room)
        if self._rank == owner:
            _LENGTH.pack_into(block, 0, FAILED if mine is None else len(mine))
            if mine is not None:
                fits = len(mine) if len(mine) <= room else room
                block[head : head + fits] = mine[:fits]
        self._comm.Bcast(block[: head + room], owner)
        (length,) = _LENGTH.unpack_from(block)
        if length == FAILED:
            return None
        if length > room:
            known, block = block[: head + room], self._block(head + length)
            block[: head + room] = known
            if mine is not None:
                block[head + room : head + length] = mine[room:]
            self._comm.Bcast(block[head + room : head + length], owner)
        if length != room:  # else the next may be as long again
            self._room = max(-(-length // count), self._room * 7 // 8, 64)
        return block[head : head + length]

    def _block(self, size: int) -> memoryview:
        """Memory for so many bytes or more; what it holds stays until the next broadcast."""
        if len(self._memory) < size:
            self._memory = memoryview(bytearray(size + size // 8))
        return self._memory

    def _from_several(
        self, owners: NDArray[Any], mine: Sequence[bytes] | None
    ) -> list[memoryview] | None:
        counts = np.bincount(owners, minlength=self._comm.Get_size())
        by_owner = np.argsort(owners, kind="stable")
        lengths = np.empty(len(owners), dtype=np.int64)
        own = np.array(_lengths(mine, counts[self._rank]), dtype=np.int64)
        self._comm.Allgatherv(own, (lengths, counts))
        if mine is None or FAILED in lengths:
            return None
        ends = np.concatenate(([0], np.cumsum(lengths)))
        bounds = ends[np.concatenate(([0], np.cumsum(counts)))]
        everything = np.empty(int(ends[-1]), dtype=np.uint8)
        payload = np.frombuffer(b"".join(mine), dtype=np.uint8)
        self._comm.Allgatherv(payload, (everything, np.diff(bounds)))
        pieces = _pieces(everything.data, lengths.tolist())
        ordered: list[memoryview] = [memoryview(b"")] * len(owners)
        for place, piece in zip(by_owner.tolist(), pieces, strict=True):
            ordered[place] = piece
        return ordered


def _lengths(mine: Sequence[bytes] | None, count: int) -> list[int]:
    return [FAILED] * count if mine is None else [len(message) for message in mine]


def _pieces(content: memoryview, lengths: Sequence[int]) -> list[memoryview]:
    start, pieces = 0, []
    for length in lengths:
        pieces.append(content[start : start + length])
        start += length
    return pieces
