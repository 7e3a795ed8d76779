"""Mistakes of the user end a command with one line and exit code 2, not with a traceback."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from atomcast.errors import ClusterError

#: The option that every command has.
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]


@contextmanager
def clear_errors(debug: bool) -> Iterator[None]:
    """Turn errors about what the user gave, and warnings, into single lines on stderr."""
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            yield
        except BrokenPipeError:
            raise  # whoever read our output has had enough, which is no mistake
        except (ValueError, OSError, ImportError, MemoryError, ClusterError) as error:
            if debug:
                raise
            _say("error", _one_line(error))
            raise typer.Exit(2) from None


def _say(kind: str, text: str) -> None:
    typer.echo(f"atomcast: {kind}: {text}", err=True)


def _say_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    _say("warning", _one_line(message))


def _one_line(message: object) -> str:
    """A message without line breaks and control characters; the kind of error if it is empty."""
    text = " ".join(str(message).split()) or type(message).__name__
    return "".join(letter if letter.isprintable() else "?" for letter in text)
