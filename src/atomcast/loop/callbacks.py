"""Callbacks: things that watch a run, and may stop it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO, runtime_checkable

from atomcast._checks import check_positive
from atomcast.loop.trace import Row, Trace
from atomcast.messages.status import Status

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica
    from atomcast.network.ledger import Ledger
    from atomcast.storage.snapshot import Snapshot


def _no_run() -> Snapshot:
    raise RuntimeError("this state belongs to no run: there is nothing to take a snapshot of")


@dataclass(frozen=True)
class State:
    """What a callback sees: the iterate of this round, certified, before the next step.

    Calling `snapshot` gives what another process needs to go on from here. Where several processes
    run the loop, `speaks` is true on the one that should print and write files.
    """

    round: int
    seconds: float
    objective: float
    gap: float
    relative_gap: float
    tol: float
    replica: Replica
    ledger: Ledger
    snapshot: Callable[[], Snapshot] = _no_run
    speaks: bool = True

    @property
    def row(self) -> Row:
        """The round as a row of the trace."""
        ledger = self.ledger
        return Row(
            self.round,
            self.seconds,
            self.objective,
            self.gap,
            self.replica.active.atoms,
            ledger.values,
            ledger.bytes,
            ledger.seconds,
        )


#: Called once a round. None or True: go on. False: stop. A status: stop for that reason.
Callback = Callable[[State], "Status | bool | None"]


@runtime_checkable
class Finishing(Protocol):
    """What a callback may have beside: it hears of the end, too."""

    def finish(self, state: State) -> None:
        """Called with the last state when the run ends without an error."""
        ...


def check_callbacks(callbacks: Any) -> None:
    """Refuse what is not a sequence of callables, before the first round calls them."""
    if not isinstance(callbacks, Sequence):
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


class Tracer:
    """Keep a row a round."""

    def __init__(self) -> None:
        self.trace = Trace()

    def __call__(self, state: State) -> None:
        """Add this round."""
        self.trace.append(state.row)


class Progress:
    """Show how a run goes: a live line on a terminal, plain lines elsewhere."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self._live: Any = None
        self._next = 0.0

    def __call__(self, state: State) -> None:
        """Show this round: every one on a terminal, and about one a second elsewhere."""
        if self.stream.isatty():
            self._show_live(state)
        elif state.seconds >= self._next or state.relative_gap <= state.tol:
            self._next = state.seconds + 1.0
            print(self._line(state), file=self.stream, flush=True)

    def close(self) -> None:
        """Leave the last line on the terminal."""
        if self._live is not None:
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

    def _show_live(self, state: State) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        if self._live is None:
            self._live = Live(console=Console(file=self.stream), refresh_per_second=8)
            self._live.start()
        grid = Table.grid(padding=(0, 2))
        grid.add_row(
            self._line(state), ProgressBar(total=1.0, completed=log_progress(state), width=24)
        )
        self._live.update(grid)


class Watchers:
    """The callbacks of a run, and its progress if that is to be shown, as one."""

    def __init__(self, callbacks: Sequence[Callback], verbose: bool = False) -> None:
        self._progress = Progress() if verbose else None
        self._all: list[Callback] = [*callbacks, *([self._progress] if self._progress else [])]

    def wish(self, state: State) -> Status | None:
        """Why one of them wants the run to end, if one does."""
        for verdict in [watch(state) for watch in self._all]:
            if isinstance(verdict, str):
                return verdict
            if verdict is not None and not verdict:  # also NumPy's False
                return "stopped"
        return None

    def finish(self, state: State) -> None:
        """Show them the last state."""
        for watch in self._all:
            if isinstance(watch, Finishing):
                watch.finish(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.close()


def log_progress(state: State) -> float:
    """How much of the way from a relative gap of one to the tolerance is done, on a log scale."""
    from math import log

    if not 0 < state.relative_gap < 1 or state.tol >= 1:
        return float(state.relative_gap <= state.tol)
    return min(log(state.relative_gap) / log(state.tol), 1.0)
