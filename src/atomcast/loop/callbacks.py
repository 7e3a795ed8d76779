"""Callbacks: things that watch a run, and may stop it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from atomcast._checks import check_positive
from atomcast.loop.interrupting import Interrupts
from atomcast.loop.rounds import Callback, Finishing, State, Watchers
from atomcast.messages.status import Status

__all__ = ["Callback", "Finishing", "Progress", "State", "TimeLimit"]
__all__ += ["check_callbacks", "log_progress", "watching"]

#: How often a live line changes, in times a second.
REFRESH = 8


def check_callbacks(callbacks: Any) -> None:
    """Refuse what is not a sequence of callables, before the first round calls them."""
    if isinstance(callbacks, str) or not isinstance(callbacks, (tuple, list, Sequence)):
        raise ValueError(
            f"callbacks must be a list of callables, got {callbacks!r}; try [TimeLimit(60)]"
        )
    for at, callback in enumerate(callbacks):
        if not callable(callback):
            raise ValueError(
                f"callbacks[{at}] must be a callable that takes a State, got {callback!r}; "
                "try TimeLimit(60), Checkpoint(path) or a function of your own"
            )


class TimeLimit:
    """Stop after a number of seconds, with the best certified weights so far."""

    def __init__(self, seconds: float) -> None:
        self.seconds = check_positive("seconds", seconds, "how long a run may take")

    def __call__(self, state: State) -> Status | None:
        """Stop once the time is over."""
        return "time_limit" if state.seconds >= self.seconds else None


def in_notebook() -> bool:
    """Whether this program is a notebook; IPython is there already then."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class Progress:
    """Show how a run goes: a live line on a terminal and in a notebook, plain lines elsewhere."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._notebook = stream is None and in_notebook()
        self.stream = stream or sys.stderr
        self._live: Any = None
        self._next = 0.0

    def __call__(self, state: State) -> None:
        """Show this round: every one where the line is live, and about one a second elsewhere."""
        if self._notebook:
            self._state = state
            if state.seconds >= self._next:
                self._next = state.seconds + 1.0 / REFRESH
                self._show_in_notebook(state)
        elif self.stream.isatty():
            self._show_live(state)
        elif state.seconds >= self._next or state.relative_gap <= state.tol:
            self._next = state.seconds + 1.0
            print(self._line(state), file=self.stream, flush=True)

    def close(self) -> None:
        """Leave the last line where it is."""
        if self._live is not None and self._notebook:
            self._show_in_notebook(self._state)
        elif self._live is not None:
            self._live.stop()
        self._live = None

    @staticmethod
    def _line(state: State) -> str:
        row = state.row
        return (
            f"round {state.round:>5}  objective {state.objective:.6g}  "
            f"gap {state.relative_gap:.1e}  atoms {row.atoms}  "
            f"values sent {row.values:,}  {state.seconds:.1f} s"
        )

    def _show_in_notebook(self, state: State) -> None:
        from IPython.display import display

        line = self._line(state)
        bar = f'<progress max="1" value="{log_progress(state):.3f}"></progress>'
        told = {"text/plain": line, "text/html": f"<code>{line}</code> {bar}"}
        if self._live is None:
            self._live = display(told, raw=True, display_id=True)
        else:
            self._live.update(told, raw=True)

    def _show_live(self, state: State) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        if self._live is None:
            self._live = Live(console=Console(file=self.stream), refresh_per_second=REFRESH)
            self._live.start()
        grid = Table.grid(padding=(0, 2))
        grid.add_row(
            self._line(state), ProgressBar(total=1.0, completed=log_progress(state), width=24)
        )
        self._live.update(grid)


def watching(callbacks: Sequence[Callback], interrupts: Interrupts, verbose: bool) -> Watchers:
    """The callbacks of a run, and its progress if that is to be shown, as one."""
    if not verbose:
        return Watchers(callbacks, interrupts)
    progress = Progress()
    return Watchers([*callbacks, progress], interrupts, progress.close)


def log_progress(state: State) -> float:
    """How much of the way from a relative gap of one to the tolerance is done, on a log scale."""
    from math import log

    if not 0 < state.relative_gap < 1 or state.tol >= 1:
        return float(state.relative_gap <= state.tol)
    return min(log(state.relative_gap) / log(state.tol), 1.0)
