"""A cluster of MPI ranks: one node a rank, for programs started by mpirun or srun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mpi.failures import end_all_on_error, import_mpi, told_by_all
from atomcast.cluster.mpi.launch import LaunchedCluster
from atomcast.cluster.mpi.mpi_session import MPISession
from atomcast.cluster.mpi.rank_shards import place
from atomcast.cluster.mpi.watch import (
    LOADING,
    NO_ROUND,
    OUTSIDE,
    STARTING,
    read_by_rank_0,
    watch_of,
)
from atomcast.data.shards import Shards
from atomcast.loop.session import DEADLINE, Cluster, check_deadline
from atomcast.problems.problem import Problem


class MPICluster(Cluster):
    """The ranks of an MPI job, each of which is a node with a shard of its own.

    Every rank runs the same program and calls `fit` with the same parameters and the same target.
    The data may be `Shards.mine` (this rank's part), `Shards.files` (a file for each rank), or a
    matrix that every rank has, from which it cuts its own shard. All ranks end with the same model.

    Parameters
    ----------
    comm : mpi4py communicator, optional
        The ranks that take part; by default all of them.
    deadline : float or None, default=600.0
        How many seconds a rank waits for another in one round before it ends the job with an
        error that names that one; None: for ever. It must be longer than a node's honest work
        in a round, and than the loading of its data.

    Examples
    --------
    >>> from atomcast import Lasso, MPICluster, Shards  # doctest: +SKIP
    >>> part = np.load(f"part-{rank}.npy", mmap_mode="r")  # doctest: +SKIP
    >>> model = Lasso(beta=16.0, cluster=MPICluster()).fit(Shards.mine(part), y)  # doctest: +SKIP
    """

    def __init__(self, comm: Any = None, *, deadline: float | None = DEADLINE) -> None:
        MPI = import_mpi()
        if comm is not None and not isinstance(comm, MPI.Comm):
            raise TypeError(f"comm must be None or an mpi4py communicator, got {comm!r}")
        self.comm = MPI.COMM_WORLD if comm is None else comm
        self.deadline = check_deadline(deadline)
        end_all_on_error()

    @staticmethod
    def launch(nodes: int = 2, **options: Any) -> LaunchedCluster:
        """Ranks that a plain program starts by itself, for as long as a fit takes.

        Parameters
        ----------
        nodes : int
            How many ranks.
        **options
            As for `LaunchedCluster`.
        """
        return LaunchedCluster(nodes, **options)

    @property
    def nodes(self) -> int:  # type: ignore[override]  # nobody sets it
        """How many ranks there are."""
        return int(self.comm.Get_size())

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return int(self.comm.Get_rank())

    def place(self, shards: Shards) -> Shards:
        """Number the shards of all ranks one after the other; all ranks must call it."""
        watch = watch_of(self.comm, self.deadline)
        watch.at = (NO_ROUND, LOADING)
        try:
            with told_by_all():
                return place(self.comm, shards, watch)
        finally:
            watch.at = (NO_ROUND, OUTSIDE)

    def total(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of an array over all ranks, bit for bit the same on each; all must call it.

        Rank 0 adds up: the others see nothing of each other's but the sum.
        """
        watch = watch_of(self.comm, self.deadline)
        before, watch.at = watch.at, (NO_ROUND, STARTING)
        everyone = np.empty((self.nodes, *part.shape)) if self.rank == 0 else None
        self.comm.Gather(np.ascontiguousarray(part), everyone)
        total = np.empty(part.shape) if everyone is None else everyone.sum(axis=0)
        self.comm.Bcast(total)
        watch.at = before
        return total

    def shared(self, read: Callable[[], bytes]) -> bytes:
        """What `read` returns on rank 0, on every rank; all must call it."""
        watch = watch_of(self.comm, self.deadline)
        before = watch.at
        try:
            return read_by_rank_0(self.comm, watch, read)
        finally:
            watch.at = before

    def open(self, problem: Problem, shards: Shards) -> MPISession:
        """Load this rank's shard, and check that those of all ranks fit together."""
        watch = watch_of(self.comm, self.deadline)
        try:
            return MPISession(self.comm, problem, shards, watch)
        except BaseException:
            watch.at = (NO_ROUND, OUTSIDE)  # the program may go on, in its own time
            raise

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a communicator is a handle: scikit-learn's clone must not copy it

    def __repr__(self) -> str:
        return f"MPICluster(rank {self.rank} of {self.nodes})"
