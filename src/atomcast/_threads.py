"""Run compiled loops on several threads: they release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, partial
from itertools import pairwise
from threading import Lock, current_thread, get_ident
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Products of at least so many multiplications, or that read an eighth as many numbers, take
#: milliseconds: long enough for threads to gain something.
LARGE = 1 << 25
OURS = "atomcast-pool"


def thread_count() -> int:
    """As many threads as OMP_NUM_THREADS says, which MPI launchers set, else one per core."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) > 0 else len(os.sched_getaffinity(0))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=OURS)


def run_all(calls: Sequence[Callable[[], None]]) -> None:
    """Run calls that are independent of each other, side by side if there is more than one core."""
    within = current_thread().name.startswith(OURS)  # waiting for each other would take for ever
    if len(calls) == 1 or within or (threads := thread_count()) == 1:
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
def _libraries() -> list[Any]:
    """The BLAS of NumPy and that of SciPy: each has its own."""
    import scipy.linalg  # noqa: F401, for it must have been loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_threads(counts: Sequence[tuple[Any, int]]) -> None:
    """Give each library so many threads: as threadpoolctl's own contexts do, which take longer."""
    for library, count in counts:
        library.set_num_threads(count)
        # Later versions let nobody but the thread that came first set it again, until told to.
        getattr(library, "clear_controlling_thread", _nothing)()


def _nothing() -> None:
    pass


class _OneThread:
    """How many threads the BLAS has is a matter of the process: who comes first decides, and gives
    back what was. Else threads that overlap would take one thread for what was there before.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner, self._depth = 0, 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                self._owner = get_ident()
                self._before = [
                    (library, count)
                    for library in _libraries()
                    if (count := library.get_num_threads()) not in (None, 1)
                ]
                _set_threads([(library, 1) for library, _ in self._before])
            self._depth += get_ident() == self._owner

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._depth and get_ident() == self._owner:
                self._depth -= 1
                if not self._depth:
                    _set_threads(self._before)


_one_thread = _OneThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """A context in which the BLAS leaves threads to us: its own spin, and gain little in products
    as small as those of a round; `product` shares out large ones.

    It also makes results the same whatever the number of threads.
    """
    return _one_thread


def product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """What left @ right is; of a large product, every thread works out some of the rows."""
    columns = right.shape[1] if right.ndim > 1 else 1
    if left.size * max(columns, 8) < LARGE or (threads := thread_count()) == 1:
        return left @ right
    result = np.empty((len(left), *right.shape[1:]))
    run_all([partial(np.matmul, left[p], right, result[p]) for p in ranges(len(left), threads)])
    return result
