"""Works that do not depend on each other, several at a time, each in a process of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, TypeVar

import numpy as np

from atomcast.loop.solver import Solver
from atomcast.simulation.local import LocalCluster

Outcome = TypeVar("Outcome")


def checked_jobs(n_jobs: Any, solver: Solver, cluster: Any) -> int:
    """How many fits to do at a time, if these may leave this process at all."""
    if n_jobs is None or n_jobs == 1:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(
            f"n_jobs={n_jobs!r} is not accepted: give the number of folds to fit at a time, -1 for "
            "as many as there are cores, or None for one after the other"
        )
    if not isinstance(cluster, LocalCluster):
        raise ValueError(
            f"n_jobs={n_jobs} is for folds on a LocalCluster: the nodes of {cluster!r} are busy "
            "with one fold at a time; use n_jobs=None"
        )
    if solver.callbacks or solver.resume is not None:
        raise ValueError(
            f"n_jobs={n_jobs} fits folds in other processes, which callbacks and checkpoints "
            "cannot follow: use n_jobs=None with these"
        )
    return int(n_jobs)


def side_by_side(works: Sequence[Callable[[], Outcome]], jobs: int) -> list[Callable[[], Outcome]]:
    """The same works, which are all done by now if several may be done at a time."""
    if jobs == 1:
        return list(works)
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        done: list[Outcome] = Parallel()(delayed(work)() for work in works)
    return [repeat(outcome).__next__ for outcome in done]
