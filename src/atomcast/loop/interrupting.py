"""Ctrl-C: the first one ends a run after its round, with a model; the second one raises at once.

Python calls signal handlers in the main thread alone, between two of its own instructions. Nothing
is installed but for as long as a run takes, and nothing where the program has a handler of its own.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, Self

try:  # without the names that `signal` looks for, which takes as long as a step of a small fit
    import _signal as plain  # type: ignore[import-not-found]
except ImportError:  # not CPython
    import signal as plain

#: Signals that end a run, and who hears them if nobody has said otherwise. mpirun does not let
#: ranks have Ctrl-C, but passes SIGUSR1 on; batch systems send it when the time is nearly over.
UNCLAIMED: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
if hasattr(signal, "SIGUSR1"):
    UNCLAIMED[signal.SIGUSR1] = signal.SIG_DFL

HINT = b"\natomcast: the run ends after this round; Ctrl-C again ends it at once\n"

_whole: ContextVar[bool] = ContextVar("whole", default=False)


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Within, Ctrl-C raises KeyboardInterrupt at once: runs cut short would be of no use."""
    token = _whole.set(True)
    try:
        yield
    finally:
        _whole.reset(token)


class Interrupts:
    """What is heard of Ctrl-C while the context is entered: `heard` after the first."""

    def __init__(self) -> None:
        self.heard = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if _whole.get():
            return self
        for number, usual in UNCLAIMED.items():
            if plain.getsignal(number) == usual:
                try:
                    self._before[number] = plain.signal(number, self._hear)
                except ValueError:  # not the main thread, which alone hears of signals
                    break
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._before:
            number, before = self._before.popitem()
            found = plain.signal(number, before)
            if found != self._hear:  # a callback has put its own there, which stays
                plain.signal(number, found)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.heard:
            raise KeyboardInterrupt
        self.heard = True
        if number == signal.SIGINT and sys.stderr is not None and sys.stderr.isatty():
            # Not by print, which the signal may have interrupted.
            with suppress(OSError, ValueError):  # what stands for a terminal need not be a file
                os.write(sys.stderr.fileno(), HINT)
