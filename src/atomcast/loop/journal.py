"""What a fit of several paths has come to, so that a resumed one does none of them twice.

A cross-validated fit walks a path for each fold and one more for the model. A checkpoint is written
by the path at hand; the journal puts into it what came of the paths before, as a few small arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.data.shards import Shards
from atomcast.loop.result import Result
from atomcast.loop.resuming import Past
from atomcast.loop.session import Sharing
from atomcast.loop.solver import Solver
from atomcast.problems.problem import Problem
from atomcast.storage.checkpoint import Checkpoint
from atomcast.storage.fingerprint import object_fingerprint
from atomcast.storage.snapshot import checkpoint_content, parse_checkpoint

Floats = NDArray[np.float64]
_PLAN = "plan"


class Journal:
    """The paths of a fit, in order, each with what came of it.

    Parameters
    ----------
    solver : Solver
        It may write checkpoints, or resume one that a fit with the same plan has written.
    plan : object
        Everything that decides which paths there are: target, radii, folds.
    cluster
        Where the paths are run; where that is several processes, one of them reads the file.
    """

    def __init__(self, solver: Solver, plan: Any, cluster: Any) -> None:
        self._solver = solver
        self._past = Past()
        writes = any(isinstance(watch, Checkpoint) for watch in solver.callbacks)
        #: Whether there are checkpoints: some are to be written, or one was.
        self.writes = writes or solver.resume is not None
        if not self.writes:
            return
        fingerprint = np.frombuffer(object_fingerprint(plan).encode(), dtype=np.uint8)
        if solver.resume is not None:
            read = partial(checkpoint_content, solver.resume)
            content = cluster.shared(read) if isinstance(cluster, Sharing) else read()
            found = parse_checkpoint(content, solver.resume)
            if not np.array_equal(found.notes.get(_PLAN, np.zeros(0)), fingerprint):
                raise ValueError(
                    f"{solver.resume} is a checkpoint of another problem: the target, the radii, "
                    "the folds or another parameter was a different one; use the same, or start "
                    "a new run"
                )
            self._past = Past(dict(found.notes), list(found.finished))
        self._past.notes[_PLAN] = fingerprint

    def note(self, name: str) -> Floats | None:
        """What an earlier path came to, or None if it has not been run."""
        return self._past.notes.get(name)

    def keep(self, name: str, outcome: Floats) -> None:
        """Remember what a path came to."""
        self._past.notes[name] = outcome

    def kept(self, name: str, work: Callable[[], Floats]) -> Floats:
        """What a path came to: from the checkpoint, or else by doing the work."""
        if name not in self._past.notes:
            self.keep(name, work())
        return self._past.notes[name]

    def results(
        self,
        problems: Iterable[Problem],
        shards: Shards,
        cluster: Any,
        names: Sequence[str] = (),
        start: Any = None,
    ) -> Iterator[Result]:
        """The results of the next path, which goes on where a checkpoint of it was written."""
        past, straight = self._past if self.writes else None, not self.writes
        yield from self._solver.solve_path(problems, shards, cluster, names, past, start, straight)
        self._solver = replace(self._solver, resume=None)
        self._past.finished.clear()
