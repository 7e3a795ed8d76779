"""Shards of an MPI job where every rank holds a part: who has how much, numbered by rank."""

from __future__ import annotations

from typing import Any

from atomcast.cluster.mpi.buffers import gather_json
from atomcast.cluster.mpi.watch import LOADING, NO_ROUND, Pulse, by_all
from atomcast.data._blocks import BlockShards, contiguous_bounds, joined_names
from atomcast.data.matrices import IntArray, check_axis
from atomcast.data.party_names import checked_party_names
from atomcast.data.prepared import Prepared
from atomcast.data.shards import Shard, Shards


def place(comm: Any, shards: Shards, pulse: Pulse) -> Shards:
    """Let the ranks tell each other how large their parts are; all ranks must call it.

    A matrix that every rank has and cuts for itself needs no telling. The pulse shows when this
    rank waits for the others.
    """
    if shards.kind == "split" or isinstance(shards, RankShards):
        return shards
    rank, size = comm.Get_rank(), comm.Get_size()
    with by_all(comm, pulse, "shard"):
        local = _own_part(shards, rank, size)
        told = {
            "shape": [local.rows(), local.count()],
            "names": local.column_names(),
            "party": None if local.party_names is None else local.party_names[0],
            "source": shards.source(rank),
            "prepared": [one.plain() for one in local.prepared or ()],
        }
    everything = gather_json(comm, told)
    pulse.at = (NO_ROUND, LOADING)
    shards = RankShards(local, rank, everything)
    if shards.party_names is not None:
        checked_party_names(shards.party_names, size)
    return shards


def _own_part(shards: Shards, rank: int, size: int) -> Shards:
    if shards.kind == "mine":
        return shards
    if shards.nodes != size:
        raise ValueError(
            f"there are {shards.nodes} files, but {size} ranks: every rank reads one file; start "
            f"the program with mpirun -n {shards.nodes}, or write the data in {size} files"
        )
    return shards.only(rank)


class RankShards(BlockShards):
    """The part of this rank, with what the other ranks said about theirs."""

    def __init__(self, local: Shards, rank: int, told: list[dict[str, Any]]) -> None:
        self.kind = local.kind
        self.local = local
        self.rank = rank
        self._told = told

    def __repr__(self) -> str:
        return f"{self.local!r} of rank {self.rank}, {self.nodes} ranks"

    def with_local(self, local: Shards, rows: int) -> RankShards:
        """The same columns of all ranks, with other data: this rank's, and how many rows it has."""
        told = [{**said, "shape": [rows, said["shape"][1]]} for said in self._told]
        return RankShards(local, self.rank, told)

    @property
    def nodes(self) -> int:
        """As many as there are ranks."""
        return len(self._told)

    @property
    def party_names(self) -> tuple[str, ...] | None:
        """The names that all ranks gave; None if one of them gave none."""
        names = [said["party"] for said in self._told]
        return None if None in names else tuple(names)

    @property
    def prepared(self) -> tuple[Prepared, ...] | None:
        """What all ranks have learned of their tables; None if none has."""
        return tuple(Prepared.of(one) for said in self._told for one in said["prepared"]) or None

    def _bounds(self, axis: int) -> IntArray:
        check_axis(axis)
        return contiguous_bounds([said["shape"][axis] for said in self._told])

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        """The names that all ranks gave, in order; None if one of them gave none."""
        return joined_names([said["names"] for said in self._told], axis)

    def rows(self, axis: int = 1) -> int:
        """How long the atoms of this rank are."""
        return self.local.rows(axis)

    def shard(self, i: int, axis: int = 1) -> Shard:
        """What this rank holds, numbered after the atoms of the lower ranks."""
        if i != self.rank:
            raise IndexError(f"shard {i} is on another rank: this is rank {self.rank}")
        own = self.local.shard(0, axis)
        return own.shifted(int(self._bounds(axis)[i]), self._told[i]["source"])
