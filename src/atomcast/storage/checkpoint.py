"""Checkpoints: what a run must remember so that another process can finish it.

That is little: the log of which atoms were broadcast, the weights, the best weights so far, the
image of the weights with the rounding that it has gathered, and the few numbers that the step
carries from round to round. The atoms themselves are not in it: a resumed run asks their owners
for them, so that a checkpoint stays small, discloses no atom, and fits any number of nodes.
"""

from __future__ import annotations

import glob
import logging
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count, check_folder, check_positive
from atomcast.messages.status import Status
from atomcast.storage.container import Arrays, parse_model_file, read_content, write_model_file

if TYPE_CHECKING:
    from atomcast.loop.callbacks import State

logger = logging.getLogger(__name__)

#: How often a checkpoint is written if nobody says otherwise.
SECONDS = 30.0
#: A run keeps an account of every round, also of those before it was resumed.
MOST_ROUNDS = 10**7
_MEMORY, _NOTE = "memory.", "note."


@dataclass(frozen=True, eq=False)
class Outcome:
    """How an earlier problem of a path ended.

    Parameters
    ----------
    status : str
    rounds : int
    figures : array of shape (3,)
        Gap, relative gap and objective.
    weights : array of shape (l,)
        The weights returned, in the order of the active set.
    """

    status: Status
    rounds: int
    figures: NDArray[np.float64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run between two rounds.

    Parameters
    ----------
    problem, data : str
        Fingerprints of what is fitted, and of the atoms.
    step : str
        The name of the step.
    round : int
        Steps taken so far.
    objective : float
        The objective at `weights`.
    ids : array of shape (k,)
        Global ids of the atoms that were broadcast, in order.
    weights : array of shape (m,)
        The weights, in the order of the active set.
    best : array of shape (l,)
        The weights with the smallest gap so far; l <= m, for the active set only grows.
    best_figures : array of shape (4,)
        Their gap, relative gap and objective, and the lowest objective seen.
    idle : int
        Rounds without progress up to now.
    restricted : bool
        Whether gaps are those of a selection that leaves atoms out.
    memory : dict of arrays
        What the active set and the step carry from round to round.
    finished : tuple of Outcome
        The problems before this one on its path.
    notes : dict of arrays
        What came of paths before this one, by name.
    """

    problem: str
    data: str
    step: str
    round: int
    objective: float
    ids: NDArray[np.int64]
    weights: NDArray[np.float64]
    best: NDArray[np.float64]
    best_figures: NDArray[np.float64]
    idle: int
    restricted: bool
    memory: Arrays
    finished: tuple[Outcome, ...] = ()
    notes: Arrays = field(default_factory=dict)


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


def write_checkpoint(path: str | os.PathLike[str], snapshot: Snapshot) -> None:
    """Write a snapshot to a file, replacing it only once the new one is complete."""
    header = {
        "checkpoint": {
            "problem": snapshot.problem,
            "data": snapshot.data,
            "step": snapshot.step,
            "round": snapshot.round,
            "idle": snapshot.idle,
            "restricted": snapshot.restricted,
            "finished": [[one.status, one.rounds] for one in snapshot.finished],
        }
    }
    arrays = {
        "objective": np.array(snapshot.objective),
        "ids": snapshot.ids,
        "weights": snapshot.weights,
        "best": snapshot.best,
        "best_figures": snapshot.best_figures,
        **{_MEMORY + name: array for name, array in snapshot.memory.items()},
        **{_NOTE + name: array for name, array in snapshot.notes.items()},
        **_finished_arrays(snapshot),
    }
    write_model_file(path, header, arrays)


def read_checkpoint(path: str | os.PathLike[str]) -> Snapshot:
    """Read a file written by `Checkpoint`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is damaged, of another schema version, or no checkpoint.
    """
    return parse_checkpoint(checkpoint_content(path), path)


def checkpoint_content(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a checkpoint, for `parse_checkpoint`."""
    return read_content(path, "checkpoint")


def parse_checkpoint(content: bytes, path: str | os.PathLike[str]) -> Snapshot:
    """The same as `read_checkpoint` for bytes that were read; `path` is for messages."""
    written_by = "atomcast.Checkpoint or atomcast fit --checkpoint"
    file = parse_model_file(content, path, "checkpoint", written_by)
    arrays, numbers = file.arrays, file.header.get("checkpoint")
    if not isinstance(numbers, dict):
        raise ValueError(f"{path} is no checkpoint, but a model: load it with atomcast.load_model")
    try:
        snapshot = Snapshot(
            problem=str(numbers["problem"]),
            data=str(numbers["data"]),
            step=str(numbers["step"]),
            round=_round(numbers["round"]),
            objective=float(arrays["objective"]),
            ids=_vector(arrays["ids"], np.int64),
            weights=_vector(arrays["weights"], np.float64),
            best=_vector(arrays["best"], np.float64),
            best_figures=_vector(arrays["best_figures"], np.float64),
            idle=check_count("idle", numbers["idle"], "rounds without progress", 0),
            restricted=bool(numbers.get("restricted", False)),
            memory=_named(arrays, _MEMORY),
            finished=_finished(numbers.get("finished", []), arrays),
            notes=_named(arrays, _NOTE),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not describe a usable checkpoint: {error}") from error
    if len(snapshot.best) > len(snapshot.weights) or len(snapshot.best_figures) != 4:
        raise ValueError(f"{path} does not describe a usable checkpoint: its arrays do not fit")
    return snapshot


def _round(value: Any) -> int:
    if check_count("round", value, "rounds taken", 0) > MOST_ROUNDS:
        raise ValueError(f"round={value} is beyond {MOST_ROUNDS:,}, the most that is believed")
    return int(value)


def _named(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _finished_arrays(snapshot: Snapshot) -> Arrays:
    """The figures and weights of finished problems, a row each."""
    if not snapshot.finished:
        return {}
    rows = [one.weights for one in snapshot.finished]
    weights = np.zeros((len(rows), len(snapshot.weights)))
    for row, known in zip(weights, rows, strict=True):
        row[: len(known)] = known
    figures = np.array([one.figures for one in snapshot.finished])
    return {"finished.figures": figures, "finished.weights": weights}


def _finished(heads: Any, arrays: Arrays) -> tuple[Outcome, ...]:
    """The problems that were finished, from their heads and the arrays of all of them."""
    if not heads:
        return ()
    figures, weights = arrays["finished.figures"], arrays["finished.weights"]
    if figures.shape != (len(heads), 3) or weights.shape != (len(heads), len(arrays["weights"])):
        raise ValueError("the arrays of finished problems do not fit")
    if figures.dtype != np.float64 or weights.dtype != np.float64:
        raise ValueError("the arrays of finished problems must be float64")
    for status, _ in heads:
        check_choice("status", status, get_args(Status))
    return tuple(
        Outcome(status, _round(rounds), figures[k], weights[k])
        for k, (status, rounds) in enumerate(heads)
    )


def _vector(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"a vector of {np.dtype(dtype)} was expected, got {array.dtype}")
    return array
