"""Run compiled loops on several threads: they release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np


def thread_count() -> int:
    """As many threads as OMP_NUM_THREADS says, which MPI launchers set, else one per core."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) > 0 else len(os.sched_getaffinity(0))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="atomcast")


def run_all(calls: Sequence[Callable[[], None]]) -> None:
    """Run calls that are independent of each other, side by side if there is more than one core."""
    if len(calls) == 1 or (threads := thread_count()) == 1:
        for call in calls:
            call()
    else:
        list(_pool(threads).map(lambda call: call(), calls))


def ranges(n: int, parts: int) -> list[slice]:
    """The numbers up to n in ranges of about equal size."""
    if parts == 1 and n:  # as on small nodes in every round: it must be quick
        return [slice(0, n)]
    cuts = np.linspace(0, n, min(parts, max(n, 1)) + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(cuts.tolist()) if b > a]


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which the BLAS leaves threads to us: its own, which spin, would be in the way.

    It also makes results the same whatever the number of threads.
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit
