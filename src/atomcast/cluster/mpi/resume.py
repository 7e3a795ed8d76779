"""What ranks tell each other when a run is resumed: a file, a fingerprint, who holds which atom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mpi.buffers import gather_json
from atomcast.cluster.mpi.watch import NO_ROUND, STARTING, STEPPING, Pulse
from atomcast.cluster.validation import described, raise_described
from atomcast.data.shards import Shard
from atomcast.storage.fingerprint import data_fingerprint, shard_fingerprint


def bytes_of_rank_0(comm: Any, content: bytes | bytearray) -> bytes:
    """The bytes that rank 0 has, on every rank."""
    length = np.array([len(content)], dtype=np.int64)
    comm.Bcast(length, 0)
    received = np.empty(int(length[0]), dtype=np.uint8)
    if comm.Get_rank() == 0:
        received[:] = np.frombuffer(content, dtype=np.uint8)
    comm.Bcast(received, 0)
    return received.tobytes()


def read_by_rank_0(comm: Any, read: Callable[[], bytes]) -> bytes:
    """What `read` returns on rank 0; an error that it meets there is raised on every rank."""
    content, error = b"", None
    if comm.Get_rank() == 0:
        try:
            content = read()
        except Exception as met:
            error = described(met)
    told = gather_json(comm, error)[0]
    if told is not None:
        raise_described(told, "")
    return bytes_of_rank_0(comm, content)


def fingerprint_of_all(
    comm: Any, load: Callable[[], Shard], axis: int, n: int, pulse: Pulse
) -> str:
    """What tells the n atoms of all ranks from others; each rank looks at its own."""
    try:
        told: Any = str(shard_fingerprint(load(), axis))
    except Exception as met:
        told = described(met)
    pulse.at = (NO_ROUND, STARTING)
    everything = gather_json(comm, told)
    pulse.at = (NO_ROUND, STEPPING)
    for rank, said in enumerate(everything):
        if not isinstance(said, str):
            raise_described(said, f"shard {rank}")
    return data_fingerprint(n, map(int, everything))


def owners_among_all(comm: Any, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank that holds each atom, -1 where none does, from what every rank knows of its own."""
    from mpi4py import MPI

    owners = np.empty_like(own)
    comm.Allreduce(np.ascontiguousarray(own), owners, MPI.MAX)
    return owners
