"""Runs that do not depend on each other: side by side, kept when finished, and taken up again.

A figure of the paper's size takes minutes to hours. Its jobs can be run by several processes, and
each is written to a file as soon as it is done, so that an experiment that was interrupted can be
taken up where it was.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import atomcast
from atomcast._replacing import replacing
from atomcast.experiments.runs.curves import Point
from atomcast.loop.interrupting import all_or_nothing

SCHEMA = 2


@dataclass(frozen=True)
class Plan:
    """How jobs are run."""

    jobs: int = 1  # processes side by side, one core each
    resume: bool = False  # take what is finished from files instead of running it again
    finished: bool = False  # and run nothing


ONE_BY_ONE = Plan()


class Done(NamedTuple):
    """What a job gives: its iterates, and further numbers."""

    rows: list[Point]
    facts: tuple[float, ...] = ()


class Job(NamedTuple):
    """One run of an experiment.

    `name` also names its file, `given` says in words all that the outcome depends on, and `run`
    can be sent to another process.
    """

    name: str
    given: str
    run: Callable[[], Done]


class Counter:
    """Progress on stderr: which of how many runs an experiment has reached."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.done = name, total, 0
        self._start = time.perf_counter()

    def __call__(self, what: str) -> None:
        """Say what is done now."""
        self.done += 1
        seconds = time.perf_counter() - self._start
        line = f"{self.name} [{self.done}/{self.total}] {what}  ({seconds:.0f} s)"
        print(line, file=sys.stderr, flush=True)


def run_jobs(
    experiment: str, jobs: Sequence[Job], out: Path | None, plan: Plan = ONE_BY_ONE
) -> list[Done | None]:
    """Run all jobs, or take over what is finished; in their order, None for what was not run.

    What is finished is kept in a folder within `out`, if there is one.
    """
    tell = Counter(experiment, len(jobs))
    done: dict[str, Done] = {}
    paths: dict[str, Path] = {}
    if out is not None:
        folder = out / f"{experiment}-parts"
        folder.mkdir(parents=True, exist_ok=True)
        paths = {job.name: folder / f"{job.name}.json" for job in jobs}
    for job in jobs if plan.resume or plan.finished else ():
        if job.name in paths and (kept := _read(job, paths[job.name])):
            done[job.name] = kept
            tell(f"{job.name}: finished before")
    left = [] if plan.finished else [job for job in jobs if job.name not in done]
    for job, new in _finished(left, plan.jobs):
        if job.name in paths:
            content = {"schema": SCHEMA, "given": _given(job), **new._asdict()}
            replace_text(paths[job.name], json.dumps(content))
        done[job.name] = new
        tell(job.name)
    return [done.get(job.name) for job in jobs]


def _finished(jobs: Sequence[Job], side_by_side: int) -> Iterator[tuple[Job, Done]]:
    """Results as they come."""
    if side_by_side == 1 or len(jobs) < 2:
        yield from ((job, _numbered(0, job.run)[1]) for job in jobs)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=side_by_side, inner_max_num_threads=1):
        pool = Parallel(return_as="generator_unordered")
        results = pool(delayed(_numbered)(k, job.run) for k, job in enumerate(jobs))
        yield from ((jobs[k], done) for k, done in results)


def _numbered(k: int, run: Callable[[], Done]) -> tuple[int, Done]:
    with all_or_nothing():  # what is cut short must not be kept as finished
        return k, run()


def _given(job: Job) -> str:
    return f"atomcast {atomcast.__version__}: {job.given}"


def replace_text(path: Path, text: str) -> Path:
    """Write a file in one go: whoever reads it sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, encoding="utf-8") as file:
        file.write(text)
    return path


def _read(job: Job, path: Path) -> Done | None:
    """A finished job; None if there is none, or if it is one of other data or settings."""
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if (content["schema"], content["given"]) != (SCHEMA, _given(job)):
            print(f"{path}: of other data or settings; run anew", file=sys.stderr)
            return None
        return Done([Point(*row) for row in content["rows"]], tuple(content["facts"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a finished part of an experiment ({error}); delete it, or run without"
            " --resume"
        ) from error


def checksum(X: Any, y: Any) -> str:
    """What tells one data set from another, for `Job.given`."""
    hashed = hashlib.sha256()
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    for array in (*arrays, y):
        hashed.update(np.ascontiguousarray(array).tobytes())
    return f"{X.shape} {hashed.hexdigest()[:16]}"
