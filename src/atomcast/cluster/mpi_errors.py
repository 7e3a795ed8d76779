"""One rank that fails must not leave the others waiting for ever."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any, TypeVar

from atomcast.errors import ClusterError

Error = TypeVar("Error", bound=BaseException)


class RankError(ClusterError):
    """Another rank failed; the message says which one, and why."""


def agreed(error: Error) -> Error:
    """Mark an error as one that all ranks raise together: one of them may speak for all."""
    error.raised_by_all = True  # type: ignore[attr-defined]
    return error


def import_mpi() -> Any:
    """The module mpi4py.MPI, or an error that says what to install."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"MPICluster needs mpi4py and an MPI library ({error}): install both with "
            "pip install 'atomcast[mpi]', or mpi4py alone where a cluster brings its own MPI"
        ) from error
    return MPI


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
