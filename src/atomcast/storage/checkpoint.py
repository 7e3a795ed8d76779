"""A callback that writes checkpoints: files with a snapshot of the run."""

from __future__ import annotations

import glob
import logging
import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from atomcast._checks import check_count, check_folder, check_positive
from atomcast.storage.snapshot import write_checkpoint

if TYPE_CHECKING:
    from atomcast.loop.callbacks import State

logger = logging.getLogger(__name__)

#: How often a checkpoint is written if nobody says otherwise.
SECONDS = 30.0


class Checkpoint:
    """A callback that writes a checkpoint every so often, and when the run ends.

    A file is replaced only once the new one is complete, so that a process may be killed at any
    moment. `Solver(resume=path)` goes on from there. Of the ranks of an MPI job, rank 0 writes.
    Whether the folder can be written to is tried before the first step; if a checkpoint cannot be
    written later, there is a RuntimeWarning, and the run goes on.

    Parameters
    ----------
    path : path
        The file; ".safetensors" is the usual suffix. It belongs to one run at a time.
    rounds : int, optional
        Write after so many rounds.
    seconds : float, optional
        Write after so many seconds, at the end of the round; the default is 30 if `rounds` is
        not given either. With both, whichever comes first counts.

    Examples
    --------
    >>> from atomcast import Checkpoint, Lasso, Solver
    >>> solver = Solver(callbacks=[Checkpoint("run.safetensors", rounds=10)])
    >>> model = Lasso(beta=1.0, solver=solver)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rounds: int | None = None,
        seconds: float | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ValueError(f"path must be that of the file to write, got {path!r}")
        self.path = Path(path)
        if rounds is not None:
            check_count("rounds", rounds, "after which to write a checkpoint")
        if seconds is not None:
            check_positive("seconds", seconds, "after which to write a checkpoint")
        self.rounds = rounds
        self.seconds = SECONDS if rounds is None and seconds is None else seconds
        self._round: int | None = None
        self._time = 0.0

    def __call__(self, state: State) -> None:
        """Write a checkpoint if it is time."""
        if self._round is None or state.round < self._round:  # the first round of a run
            if state.speaks:
                self._check_path()
                self._remove_leftovers()
            state.snapshot()  # where none can be taken, better to know now than after the work
            self._round, self._time = state.round, time.monotonic()
            return
        rounds, seconds = state.round - self._round, time.monotonic() - self._time
        due = self.rounds is not None and rounds >= self.rounds
        if due or (self.seconds is not None and seconds >= self.seconds):
            self._write(state)

    def finish(self, state: State) -> None:
        """Write the last round, so that a run that was stopped can go on from its very end."""
        self._write(state)
        self._round = None

    def _write(self, state: State) -> None:
        """Write a checkpoint; work that is done is worth more than one that cannot be written."""
        if state.speaks:
            try:
                write_checkpoint(self.path, state.snapshot())
                logger.info("round %d: checkpoint written to %s", state.round, self.path)
            except OSError as error:
                warnings.warn(
                    f"the checkpoint of round {state.round} could not be written to {self.path} "
                    f"({error}): the fit goes on without it, and an earlier one stays as it was",
                    RuntimeWarning,
                    stacklevel=2,
                )
        self._round, self._time = state.round, time.monotonic()

    def _check_path(self) -> None:
        """Fail before the work is done, not after."""
        name = f"path={str(self.path)!r}"
        if self.path.is_dir():
            raise IsADirectoryError(f"{name} is a folder: give the name of a file")
        check_folder(name, self.path)

    def _remove_leftovers(self) -> None:
        """Remove files that a process left unfinished when it was killed."""
        name = glob.escape(self.path.name)
        for leftover in self.path.absolute().parent.glob(f".{name}.*.part"):
            leftover.unlink(missing_ok=True)
