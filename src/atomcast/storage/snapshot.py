"""Snapshots: what a run must remember so that another process can finish it.

That is little: the log of which atoms were broadcast, the weights, the best weights so far, the
image of the weights with the rounding that it has gathered, and the few numbers that the step
carries from round to round. The atoms themselves are not in it: a resumed run asks their owners
for them, so that a checkpoint stays small, discloses no atom, and fits any number of nodes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count
from atomcast.messages.status import Status
from atomcast.storage.container import Arrays, parse_model_file, read_content, write_model_file

#: A run keeps an account of every round, also of those before it was resumed.
MOST_ROUNDS = 10**7
_MEMORY, _NOTE = "memory.", "note."
_TEXTS = ("problem", "data", "step")
_VECTORS = {"ids": np.int64, "weights": np.float64, "best": np.float64, "best_figures": np.float64}


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


def write_checkpoint(path: str | os.PathLike[str], snapshot: Snapshot) -> None:
    """Write a snapshot to a file, replacing it only once the new one is complete."""
    numbers = {name: getattr(snapshot, name) for name in (*_TEXTS, "round", "idle", "restricted")}
    finished = [[one.status, one.rounds] for one in snapshot.finished]
    arrays = {
        "objective": np.array(snapshot.objective),
        **{name: getattr(snapshot, name) for name in _VECTORS},
        **{_MEMORY + name: array for name, array in snapshot.memory.items()},
        **{_NOTE + name: array for name, array in snapshot.notes.items()},
        **_finished_arrays(snapshot),
    }
    header = {"checkpoint": {**numbers, "finished": finished}}
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
        texts: dict[str, Any] = {name: str(numbers[name]) for name in _TEXTS}
        vectors: Any = {name: _vector(arrays[name], kind) for name, kind in _VECTORS.items()}
        snapshot = Snapshot(
            **texts,
            **vectors,
            round=_round(numbers["round"]),
            objective=float(arrays["objective"]),
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
