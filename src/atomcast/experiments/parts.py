"""Experiments in parts: runs that do not depend on each other, side by side, kept when finished.

A figure of the paper's size takes minutes to hours. Its parts can be run by several processes, and
each is written to a file as soon as it is done, so that an experiment that was interrupted can be
taken up where it was.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import atomcast
from atomcast._replacing import replacing
from atomcast.experiments.curves import Counter, Point
from atomcast.loop.interrupting import all_or_nothing

SCHEMA = 1


@dataclass(frozen=True)
class Plan:
    """How parts are run.

    Parameters
    ----------
    jobs : int
        So many processes side by side, one core each.
    resume : bool
        Take parts that are finished from their files instead of running them again.
    """

    jobs: int = 1
    resume: bool = False


ONE_BY_ONE = Plan()


class Done(NamedTuple):
    """What a part gives: its iterates, and further numbers."""

    rows: list[Point]
    facts: tuple[float, ...] = ()


class Part(NamedTuple):
    """A part of an experiment.

    `name` also names its file, `given` says in words all that the outcome depends on, and `run`
    can be sent to another process.
    """

    name: str
    given: str
    run: Callable[[], Done]


def run_parts(
    experiment: str, parts: Sequence[Part], out: Path | None, plan: Plan = ONE_BY_ONE
) -> list[Done]:
    """Run all parts, or take over what is finished.

    Parameters
    ----------
    experiment : str
    parts : sequence of Part
    out : path of a folder, optional
        Keep finished parts there, in a folder of their own.
    plan : Plan

    Returns
    -------
    list of Done
        In the order of the parts.
    """
    tell = Counter(experiment, len(parts))
    folder = None if out is None else out / f"{experiment}-parts"
    done: dict[int, Done] = {}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if plan.resume:
            done = {k: kept for k, part in enumerate(parts) if (kept := _read(part, folder))}
            for k in done:
                tell(f"{parts[k].name}: finished before")
    missing = [k for k in range(len(parts)) if k not in done]
    for k, new in _finished([(k, parts[k].run) for k in missing], plan.jobs):
        if folder is not None:
            _write(parts[k], new, folder)
        done[k] = new
        tell(parts[k].name)
    return [done[k] for k in range(len(parts))]


def _finished(
    numbered: Sequence[tuple[int, Callable[[], Done]]], jobs: int
) -> Iterator[tuple[int, Done]]:
    """Results with their numbers, as they come."""
    if jobs == 1 or len(numbered) < 2:
        yield from (_numbered(k, run) for k, run in numbered)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        pool = Parallel(return_as="generator_unordered")
        yield from pool(delayed(_numbered)(k, run) for k, run in numbered)


def _numbered(k: int, run: Callable[[], Done]) -> tuple[int, Done]:
    with all_or_nothing():  # what is cut short must not be kept as finished
        return k, run()


def _path(part: Part, folder: Path) -> Path:
    return folder / f"{part.name}.json"


def _given(part: Part) -> str:
    return f"atomcast {atomcast.__version__}: {part.given}"


def _write(part: Part, done: Done, folder: Path) -> None:
    """Write a part in one go: a file that is there is complete."""
    path = _path(part, folder)
    content = {"schema": SCHEMA, "given": _given(part), "rows": done.rows, "facts": done.facts}
    with replacing(path, encoding="utf-8") as file:
        file.write(json.dumps(content))


def _read(part: Part, folder: Path) -> Done | None:
    """A finished part; None if there is none, or if it is one of other data or settings."""
    path = _path(part, folder)
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if (content["schema"], content["given"]) != (SCHEMA, _given(part)):
            print(f"{path}: of other data or settings; run anew", file=sys.stderr)
            return None
        return Done([Point(*row) for row in content["rows"]], tuple(content["facts"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a finished part of an experiment ({error}); delete it, or run without"
            " --resume"
        ) from error


def checksum(X: Any, y: Any) -> str:
    """What tells one data set from another, for `Part.given`."""
    hashed = hashlib.sha256()
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    for array in (*arrays, y):
        hashed.update(np.ascontiguousarray(array).tobytes())
    return f"{X.shape} {hashed.hexdigest()[:16]}"
