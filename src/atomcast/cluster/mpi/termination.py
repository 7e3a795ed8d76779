"""SIGTERM ends a program as ever, but the data that it has put somewhere is taken away first.

Without a handler, Python does not even run its `finally` clauses then. A program with a handler of
its own keeps it: it has decided what is to happen.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

_due: list[Callable[[], None]] = []


def clean_if_terminated(clean: Callable[[], None]) -> None:
    """Call this function should SIGTERM come before `no_longer` is told of it."""
    _due.append(clean)
    # Only the main thread may have handlers, and it serves the others as well.
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _clean_and_end)


def no_longer(clean: Callable[[], None]) -> None:
    """Forget a function: what it would have taken away is gone."""
    if clean in _due:
        _due.remove(clean)
    main = threading.current_thread() is threading.main_thread()
    if main and not _due and signal.getsignal(signal.SIGTERM) is _clean_and_end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _clean_and_end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    try:
        while _due:
            _due.pop()()
    finally:
        os.kill(os.getpid(), number)
