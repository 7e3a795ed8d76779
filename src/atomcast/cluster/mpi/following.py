"""What a program does while ranks that it has started run the loop: watch, and say when to stop."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any

from atomcast.cluster.machine import log_nodes
from atomcast.cluster.mpi.channel import dumps
from atomcast.cluster.mpi.processes import Ranks
from atomcast.cluster.validation import ShardReport
from atomcast.loop.callbacks import State, watching
from atomcast.loop.interrupting import Interrupts
from atomcast.loop.result import Result
from atomcast.loop.resuming import Past
from atomcast.loop.rounds import Watchers
from atomcast.loop.solver import Solver, log_result
from atomcast.loop.trace import Row
from atomcast.messages.status import Status
from atomcast.network.ledger import Ledger
from atomcast.problems.problem import Problem
from atomcast.storage.snapshot import Snapshot

logger = logging.getLogger("atomcast.cluster.mpi.launch")


class ToldState(State):
    """A state that the ranks told of; what is large comes when a callback asks for it."""

    def __init__(self, told: dict[str, Any], follower: Follower) -> None:
        vars(self).update(told, speaks=True, _follower=follower)

    @property
    def row(self) -> Row:
        """The round as a row of the trace."""
        return vars(self)["_row"]  # type: ignore[no-any-return]

    @cached_property
    def replica(self) -> Any:
        """A copy of what every rank knows in this round."""
        return self._part("replica")

    @cached_property
    def ledger(self) -> Any:
        """The account of the run: one and the same for all its states and results."""
        return self._follower.known(self._part("ledger"))

    def snapshot(self) -> Snapshot:
        """What another process needs to go on from here."""
        return self._part("snapshot")  # type: ignore[no-any-return]

    def _part(self, name: str) -> Any:
        if self._follower.shown is not self:
            raise RuntimeError(
                f"the ranks are past round {self.round}: ask a state for its {name} while the "
                "callback that was given it runs"
            )
        return self._follower.asked(name)

    @property
    def _follower(self) -> Follower:
        return vars(self)["_follower"]  # type: ignore[no-any-return]


class Follower:
    """The program's side of a path that ranks solve.

    Parameters
    ----------
    ranks : Ranks
    solver : Solver
        Whose callbacks are called here.
    threads : int
        How many threads each rank has, for the log.
    past : Past or None
        It learns of every problem that is finished.
    """

    def __init__(self, ranks: Ranks, solver: Solver, threads: int, past: Past | None) -> None:
        self._ranks, self._solver, self._threads, self._past = ranks, solver, threads, past
        self._ledger = Ledger(0)
        self._interrupts = Interrupts()
        self._watchers: Watchers | None = None
        self._resumes = solver.resume is not None
        #: The state that callbacks look at just now.
        self.shown: ToldState | None = None

    def results(self, problems: Iterator[Problem]) -> Iterator[Result]:
        """Give the ranks one problem after the other, and return what they find."""
        result: Result | None = None
        with ExitStack() as run:
            while True:
                kind, said = self._ranks.receive()
                if kind == "problem":
                    problem = next(problems, None)
                    if problem is None:
                        return
                    if result is not None and result.status == "interrupted":
                        raise KeyboardInterrupt("the problem before this one was interrupted")
                    self._ranks.round = None
                    self._ranks.send(dumps(problem))
                elif kind == "open":
                    log_nodes(logger, [ShardReport(**one) for one in said], self._threads)
                elif kind == "rounds":
                    run.enter_context(self._interrupts)
                    watchers = watching(
                        self._solver.callbacks, self._interrupts, self._solver.verbose
                    )
                    self._watchers = run.enter_context(watchers)
                elif kind == "result":
                    run.close()
                    result = self._taken(*said)
                    yield result
                else:
                    self._show(kind, said)

    def _show(self, kind: str, told: dict[str, Any]) -> None:
        """Let the callbacks see a state, and tell the ranks what they wish."""
        assert self._watchers is not None
        feasible, row = told.pop("feasible"), told.pop("row")
        state = self.shown = ToldState({**told, "_row": row}, self)
        if self._resumes:
            logger.info("resumed from %s in round %d", self._solver.resume, state.round)
            self._resumes = False
        wish: Status | None = None
        if kind == "finish":
            self._watchers.finish(state)
        else:
            wish = self._watchers.wish(state, feasible)
        self.shown = None
        self._ranks.round = state.round + 1
        self._ranks.send(dumps((None, wish)))

    def _taken(self, result: Result, finished: list[Any]) -> Result:
        if self._past is not None:
            self._past.finished[:] = finished
        if len(result.trace):  # else it was finished before the run that is resumed
            log_result(result)
        return replace(result, ledger=self.known(result.ledger))

    def known(self, ledger: Ledger) -> Ledger:
        """The ledger of this path, once it has all that the ranks' own has."""
        vars(self._ledger).update(vars(ledger))
        return self._ledger

    def asked(self, name: str) -> Any:
        """A part of the state at hand, from rank 0."""
        self._ranks.send(dumps((name, None)))
        return self._ranks.receive()[1]
