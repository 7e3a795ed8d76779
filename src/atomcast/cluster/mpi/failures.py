"""One rank that fails must not leave the others waiting for ever."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from atomcast.cluster.mpi.buffers import gather_json
from atomcast.cluster.validation import described
from atomcast.errors import ClusterError

NO_MPI4PY = (
    "MPICluster needs mpi4py, which is not installed: pip install 'atomcast[mpi]' brings it and "
    "Open MPI, and pip install mpi4py is enough where a cluster has an MPI of its own"
)

Error = TypeVar("Error", bound=BaseException)


class RankError(ClusterError):
    """Another rank failed; the message says which one, and why."""


def agreed(error: Error) -> Error:
    """Mark an error as one that all ranks raise together: one of them may speak for all."""
    error.raised_by_all = True  # type: ignore[attr-defined]
    return error


@contextmanager
def told_by_all() -> Iterator[None]:
    """Mark errors that every rank raises for the same reason at the same time."""
    try:
        yield
    except Exception as error:
        agreed(error)
        raise


def import_mpi() -> Any:
    """The module mpi4py.MPI, or an error that says what to install."""
    try:
        from mpi4py import MPI
    except ModuleNotFoundError:
        raise ImportError(NO_MPI4PY) from None
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"MPICluster needs an MPI library that mpi4py can load ({error}): install one with "
            "pip install 'atomcast[mpi]', or load your cluster's MPI module"
        ) from error
    return MPI


def raise_failure(comm: Any, own: BaseException | None) -> None:
    """Learn who failed and why, and raise that; a rank that failed has its own error."""
    failures = _failures(comm, own)
    if own is None:
        rank, why = next(iter(failures.items()))
        raise agreed(RankError(f"rank {rank} failed: {why}"))
    if len(failures) == comm.Get_size() and len(set(failures.values())) == 1:
        agreed(own)


def raise_no_atom(comm: Any, round: int, own: Exception | None) -> NoReturn:
    """Raise on every rank that one of them could not make the atom that it was to broadcast."""
    rank, why = next(iter(_failures(comm, own).items()))
    raise agreed(RankError(f"round {round}: node {rank} cannot send its atom: {why}")) from own


def _failures(comm: Any, own: BaseException | None) -> dict[int, str]:
    """What went wrong on each rank that failed; all ranks must ask."""
    told = gather_json(comm, None if own is None else ": ".join(described(own)))
    return {rank: why for rank, why in enumerate(told) if why is not None}


def abort(error: BaseException | None, why: str | None = None) -> None:
    """End all ranks, with this rank's error as the last word."""
    MPI = import_mpi()
    rank = MPI.COMM_WORLD.Get_rank()
    if error is not None:
        traceback.print_exception(error, file=sys.stderr)
    print(f"{why or f'rank {rank} failed'}: all ranks end", file=sys.stderr, flush=True)
    sys.stdout.flush()
    MPI.COMM_WORLD.Abort(1)


_installed = False


def end_all_on_error() -> None:
    """Let an error that nobody catches end all ranks, however the program was started."""
    global _installed
    if _installed or import_mpi().COMM_WORLD.Get_size() == 1:
        return
    _installed = True
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not getattr(error, "raised_by_all", False):
            before(kind, error, trace)
            abort(None)
        elif import_mpi().COMM_WORLD.Get_rank() == 0:
            before(kind, error, trace)

    sys.excepthook = hook
