"""What the option -v shows: the log of the library, on stderr."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from atomcast.commands.mistakes import one_line

#: The option of commands that fit.
Verbosity = Annotated[
    int,
    typer.Option(
        "-v",
        count=True,
        help="Log on stderr: nodes and their cores, shards, checkpoints, nodes lost and back; "
        "-vv: versions and commands, too. The live progress then needs --verbose.",
        show_default=False,
    ),
]


@contextmanager
def log_on_stderr(verbosity: int) -> Iterator[None]:
    """Show the log while a command runs: nothing (0), what an operator wants (1), or all (2)."""
    if not verbosity:
        yield
        return
    logger, handler = logging.getLogger("atomcast"), _handler()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
    try:
        _log_versions()
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _handler() -> logging.Handler:
    """Lines in colour on a terminal, and plain ones elsewhere."""
    import sys

    if sys.stderr.isatty():
        from rich.console import Console
        from rich.logging import RichHandler

        return RichHandler(console=Console(stderr=True), show_path=False, log_time_format="%X")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler


class _OneLine(logging.Formatter):
    """Records without control characters, which the name of a file may contain."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        return one_line(super().format(record))


def _log_versions() -> None:
    import platform
    from importlib.metadata import version

    packages = ("atomcast", "numpy", "scipy", "numba")
    found = ", ".join(f"{name} {version(name)}" for name in packages)
    logging.getLogger(__name__).debug("Python %s, %s", platform.python_version(), found)
