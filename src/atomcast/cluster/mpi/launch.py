"""MPI ranks for a plain program: started when a fit begins, gone when it ends."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from atomcast._checks import check_count
from atomcast.cluster.mpi.channel import dumps
from atomcast.cluster.mpi.following import Follower
from atomcast.cluster.mpi.processes import Ranks
from atomcast.cluster.mpi.stored_shards import StoredShards, store
from atomcast.cluster.mpi.termination import clean_if_terminated, no_longer
from atomcast.cluster.validation import refuse_balanced
from atomcast.data._files import FileShards
from atomcast.data.shards import Shards
from atomcast.loop.result import Result
from atomcast.loop.resuming import Past
from atomcast.loop.session import DEADLINE, LoopElsewhere, check_deadline
from atomcast.loop.solver import Solver
from atomcast.problems.problem import Problem


class LaunchedCluster(LoopElsewhere):
    """MPI ranks that a plain program starts on this machine; made by `MPICluster.launch`.

    The data goes to the ranks by files that they map into memory, and they run the loop. The
    program shows progress, calls callbacks and decides when to stop, as without a cluster.

    Parameters
    ----------
    nodes : int
        How many ranks.
    threads : int, default=1
        How many threads each of them uses for linear algebra.
    options : sequence of str, default=()
        Further options for mpirun, e.g. ["--map-by", ":OVERSUBSCRIBE"] for more ranks than cores,
        or ["--bind-to", "core"] to keep each rank on a core of a machine that does nothing else.
    folder : path, optional
        Where the data is put for the ranks, by default in the folder for temporary files.
    deadline : float or None, default=600.0
        How many seconds a rank is waited for in one round before the fit ends with an error that
        names it; None: for ever.
    """

    def __init__(
        self,
        nodes: int,
        *,
        threads: int = 1,
        options: Sequence[str] = (),
        folder: str | os.PathLike[str] | None = None,
        deadline: float | None = DEADLINE,
    ) -> None:
        self.nodes = check_count("nodes", nodes, "how many ranks to start")
        self.threads = check_count("threads", threads, "threads of each rank")
        if isinstance(options, str):
            raise TypeError(f"options must be a list of texts, got {options!r}: split it")
        self.options = list(options)
        self.folder = None if folder is None else os.fspath(folder)
        self.deadline = check_deadline(deadline)

    def solve_path(
        self,
        solver: Solver,
        problems: Iterable[Problem],
        shards: Shards,
        names: Sequence[str] = (),
        past: Past | None = None,
    ) -> Iterator[Result]:
        """Start the ranks, let them solve one problem after the other, and say what they find."""
        remaining = _sound(solver, problems)
        first = next(remaining, None)
        if first is None:
            return
        self._check_shards(shards)
        with _private_folder(self.folder) as folder:
            order = {
                "solver": replace(solver, callbacks=(), verbose=False),
                "shards": _for_ranks(shards, first.axis, folder),
                "deadline": self.deadline,
                "names": list(names),
                "past": past,
            }
            with Ranks(self.nodes, self.threads, self.options, folder, self.deadline) as ranks:
                for thing in (sys.path, order):
                    ranks.send(dumps(thing))
                follower = Follower(ranks, solver, self.threads, past)
                yield from follower.results(chain([first], remaining))

    def _check_shards(self, shards: Shards) -> None:
        if shards.nodes != self.nodes:
            raise ValueError(
                f"the data is cut into {shards.nodes} shards, but the cluster has "
                f"{self.nodes} ranks; use MPICluster.launch(nodes={shards.nodes})"
            )

    def __repr__(self) -> str:
        return f"MPICluster.launch(nodes={self.nodes})"


def _sound(solver: Solver, problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems, each once it is known that a run can start from it."""
    for problem in problems:
        refuse_balanced(solver.replica(problem))
        yield problem


@contextmanager
def _private_folder(place: str | None) -> Iterator[Path]:
    """A folder that only this user can enter; also SIGTERM takes it away."""
    folder = Path(tempfile.mkdtemp(prefix="atomcast-", dir=place))

    def clean() -> None:
        """Take the data away; the ranks end when they notice that the program is gone."""
        shutil.rmtree(folder, ignore_errors=True)

    clean_if_terminated(clean)
    try:
        yield folder
    finally:
        clean()
        no_longer(clean)


def _for_ranks(shards: Shards, axis: int, folder: Path) -> Shards:
    """The same shards in files: their own, or else such as are put into the folder."""
    if isinstance(shards, FileShards):
        return FileShards.again(**shards.arguments())  # without the target, and what was read
    shards.validate(axis)
    (folder / "shards").mkdir()
    store(shards, axis, folder / "shards")
    return StoredShards(folder / "shards")
