"""Mistakes of the user end a command with one line and exit code 2, not with a traceback."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from atomcast.cluster.mpi.job import job_rank
from atomcast.errors import ClusterError

#: The option that every command has.
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]
#: Errors about what the user gave, or about the machine.
MISTAKES = (ValueError, OSError, ImportError, MemoryError, ClusterError)


@contextmanager
def clear_errors(debug: bool) -> Iterator[None]:
    """Turn errors about what the user gave, and warnings, into single lines on stderr."""
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            yield
        except BrokenPipeError:
            raise  # whoever read our output has had enough, which is no mistake
        except MISTAKES as error:
            if debug:
                raise
            of_all = getattr(error, "raised_by_all", False)
            if not (of_all and job_rank()):  # of what all ranks raise, rank 0 tells
                say("error", one_line(error))
            if not of_all:
                end_job()
            raise typer.Exit(2) from None


def say(kind: str, text: str) -> None:
    """Print a line to stderr that begins with the name of the program."""
    typer.echo(f"atomcast: {kind}: {text}", err=True)


def _say_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    if not job_rank():
        say("warning", one_line(message))


def end_job() -> None:
    """If this is a rank that has failed alone, end the others, which would wait for it."""
    if job_rank() is not None and "mpi4py.MPI" in sys.modules:
        from atomcast.cluster.mpi.failures import abort

        abort(None)


def one_line(message: object) -> str:
    """A message without line breaks and control characters; the kind of error if it is empty."""
    if isinstance(message, OSError) and message.errno is not None:
        message = _without_number(message)
    text = " ".join(str(message).split()) or type(message).__name__
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _without_number(error: OSError) -> str:
    """What the system says of a file, in words: not "[Errno 2] No such file or directory: 'x'"."""
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"there is no file {error.filename}: check its name and folder"
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror or error}"
