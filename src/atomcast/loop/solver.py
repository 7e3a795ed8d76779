"""The one loop: distributed Frank-Wolfe (Algorithm 3 of the paper), whatever the step.

Every process runs this loop on its own copy of the shared state. A round is: score and propose,
agree, check the gap, broadcast what is new, step.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain, count, islice
from typing import Any, Literal

from atomcast._checks import check_choice, check_count, check_positive
from atomcast.data.shards import Shards
from atomcast.loop.best import Best
from atomcast.loop.callbacks import Callback, State, Tracer, Watchers, check_callbacks
from atomcast.loop.interrupting import Interrupts
from atomcast.loop.replica import Replica
from atomcast.loop.result import Result
from atomcast.loop.resuming import Past, finished_results, resume, snapshot_of
from atomcast.loop.session import Cluster, LoopElsewhere, Session
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request
from atomcast.messages.status import Status
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Selection, as_selection
from atomcast.steps import Step, check_step, make_step
from atomcast.storage.checkpoint import Checkpoint

logger = logging.getLogger(__name__)


@dataclass
class Solver:
    """How to fit: the step, the tolerance, and when to stop.

    Parameters
    ----------
    step : str, Step or callable, default="corrective"
        "classic" (2/(k+2)) and "line-search" follow Algorithm 3 to the letter; "away", "pairwise"
        and "blended-pairwise" converge faster; "corrective" re-optimises over all known atoms
        after each round, and needs the fewest rounds and the least communication. A `Step` of
        your own, which each run copies, or a class or function that makes one for each run.
    tol : float, default=1e-4
        The relative duality gap at which the run stops: gap / objective.
    max_rounds : int, default=10_000
        Steps after which the run stops anyway.
    atoms_per_round : int or "auto", default="auto"
        How many atoms may join in a round of the corrective step.
    selection : str or selection, default="exact"
        Which local atoms may be proposed: "exact" (the best), "random-violators", "per-node" (an
        equal share for every node), "balanced" (slow nodes score fewer), or, leaving atoms out,
        "random-subset" and "m-centers" or objects such as `MCenters(m=100)` or a `Selection` of
        your own. A run that leaves atoms out ends with one complete round, so that the gap of its
        result is the true one.
    callbacks : sequence of callables, default=()
        Each is called with a `State` once a round; returning False stops the run.
    verbose : bool, default=False
        Show progress.
    resume : path, optional
        Go on from a checkpoint that a `Checkpoint` callback has written, to the same result as if
        the run had never been interrupted; asynchronous runs, those with simulated faults and those
        with measured speeds ("balanced") may take another way to the same tolerance. Along a path,
        what is finished is not done again.
    """

    step: str | Step | Callable[[], Step] = "corrective"
    tol: float = 1e-4
    max_rounds: int = 10_000
    atoms_per_round: int | Literal["auto"] = "auto"
    selection: str | Selection = "exact"
    callbacks: Sequence[Callback] = ()
    verbose: bool = False
    resume: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_step(self.step)
        check_positive("tol", self.tol, "the relative duality gap to reach")
        check_count("max_rounds", self.max_rounds, "steps after which to stop", minimum=0)
        if self.atoms_per_round != "auto":
            check_count("atoms_per_round", self.atoms_per_round, 'or "auto"')
        as_selection(self.selection)
        check_callbacks(self.callbacks)
        if self.resume is not None and not isinstance(self.resume, str | os.PathLike):
            raise ValueError(
                f"resume must be the path of a checkpoint or None, got {self.resume!r}; "
                "Checkpoint(path) among the callbacks writes one"
            )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn asks estimators for them."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def set_params(self, **params: Any) -> Solver:
        """Set parameters by name, as scikit-learn does for `solver__tol`."""
        for name in params:
            check_choice("a parameter of Solver", name, tuple(self.get_params()))
        vars(self).update(vars(replace(self, **params)))
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """What all processes must have in common: everything but callbacks, output and files.

        Beside that, "checkpoint" tells whether this process wants to write checkpoints.
        """
        own = ("callbacks", "verbose", "resume")
        shared = {
            part.name: getattr(self, part.name) for part in fields(self) if part.name not in own
        }
        return shared | {"checkpoint": any(isinstance(c, Checkpoint) for c in self.callbacks)}

    def solve(self, problem: Problem, shards: Shards, cluster: Cluster | LoopElsewhere) -> Result:
        """Solve one problem on a cluster."""
        with closing(self.solve_path([problem], shards, cluster, names=[""])) as results:
            return next(results)

    def solve_path(
        self,
        problems: Iterable[Problem],
        shards: Shards,
        cluster: Cluster | LoopElsewhere,
        names: Sequence[str] = (),
        past: Past | None = None,
    ) -> Generator[Result]:
        """Solve problems that differ in their domain, one after the other, with warm starts.

        What was broadcast for one problem stays known for the next, and is not sent again. After
        a result with the status "interrupted", asking for the next raises KeyboardInterrupt.
        Disclosures call the problems by their names, or else "problem 1", "problem 2", ... `past`
        is what checkpoints are to remember beside the problem at hand; see `Journal`.
        """
        if isinstance(cluster, LoopElsewhere):
            yield from cluster.solve_path(self, problems, shards, names, past)
            return
        if past is not None and self.resume is not None:
            problems = islice(problems, len(past.finished), None)
            names = names[len(past.finished) :]
        replica: Replica | None = None
        session: Session | None = None
        result: Result | None = None
        interrupts = Interrupts()
        numbered = (f"problem {k}" for k in count(len(names) + 1))
        with ExitStack() as stack:
            for problem, name in zip(problems, chain(names, numbered), strict=False):
                if result is not None and result.status == "interrupted":
                    raise KeyboardInterrupt("the problem before this one was interrupted")
                first, replica = replica is None, self.replica(problem, replica)
                if session is None:
                    session = stack.enter_context(cluster.open(problem, shards))
                session.ledger.begin(name, replica.first_round)
                path = self.resume if first else None
                settings = {**self.settings, "resume": path is not None}
                replica = session.begin(replica, settings)
                best = Best(self.tol)
                if path is not None:
                    resume(path, replica, best, session)
                    logger.info("resumed from %s in round %d", path, replica.round)
                    yield from finished_results(past, replica, best, session)
                with interrupts:
                    result = self._run(replica, best, session, interrupts, past)
                if session.speaks:
                    log_result(result)
                yield result

    def replica(self, problem: Problem, previous: Replica | None = None) -> Replica:
        """The state to start from: nothing known, or all that the previous run knew."""
        step = make_step(self.step, self.atoms_per_round)
        replica = Replica(problem, step, self.tol, as_selection(self.selection))
        if previous is not None:
            shrink = min(1.0, problem.domain.scale / previous.domain.scale)
            replica.continue_from(previous, shrink * previous.active.weights)
        return replica

    def _run(
        self,
        replica: Replica,
        best: Best,
        session: Session,
        interrupts: Interrupts,
        past: Past | None = None,
    ) -> Result:
        """Rounds until the gap is small enough, or something else ends the run."""
        tracer = Tracer()
        verbose = self.verbose and session.speaks
        start = time.perf_counter()
        status: Status | None = None
        atoms: Sequence[Atom] = ()
        with Watchers([tracer, *self.callbacks], verbose) as watchers:
            while True:
                agreement = session.propose(replica, replica.request())
                gap = replica.certified(self._gap(replica, agreement))
                best.consider(replica, gap, grew=bool(atoms) and agreement.sum is None)
                state = State(
                    round=replica.round,
                    seconds=time.perf_counter() - start,
                    objective=replica.objective if replica.feasible else math.nan,
                    gap=gap,
                    relative_gap=gap / replica.unit,
                    tol=self.tol,
                    replica=replica,
                    ledger=session.ledger,
                    snapshot=partial(snapshot_of, replica, best, session, past),
                    speaks=session.speaks,
                )
                status = self._seen_by_all(state, best)
                if status is not None:
                    session.leave()
                wish = watchers.wish(state)
                if interrupts.heard and replica.feasible:  # before, there is no model yet
                    wish = "interrupted"
                status = session.vote(wish if status is None else status)
                if status is not None:
                    break
                wanted = replica.wanted(agreement)
                atoms = session.cast(replica, wanted)
                replica.advance(wanted, atoms)
            watchers.finish(state)
            if replica.selection.restricted or not agreement.complete:
                best, status = self._certified(replica, best, session, status)
        if past is not None:
            past.add(status, replica, best)
        return best.result(status, replica.round, replica, session, tracer.trace)

    @staticmethod
    def _gap(replica: Replica, agreement: Agreement) -> float:
        """The duality gap; infinite where a node was not heard, whose atoms may be any good."""
        if not agreement.complete:
            return math.inf
        # The sums S_i of Algorithm 3 add up to the same, but nobody need be believed.
        return replica.domain.gap(replica.active.inner(), agreement.best)

    def _certified(
        self, replica: Replica, best: Best, session: Session, status: Status
    ) -> tuple[Best, Status]:
        """The last weights with their true gap, from one round in which all atoms count."""
        agreement = session.propose(replica, Request(count=1, complete=True))
        gap = replica.certified(self._gap(replica, agreement))
        if replica.selection.restricted:
            best = Best(self.tol)  # earlier gaps did not count the atoms that were left out
        best.consider(replica, gap if replica.feasible else math.inf)
        if status == "optimal" and best.relative_gap > self.tol:
            status = "stopped"  # good enough for the atoms that the selection left in, not for all
        elif best.relative_gap <= self.tol:
            status = "optimal"
        return best, status

    def _seen_by_all(self, state: State, best: Best) -> Status | None:
        """Why the run ends now, as far as every process finds out by itself."""
        if state.relative_gap <= self.tol:
            return "optimal"
        if state.round >= self.max_rounds:
            return "max_rounds"
        # Nothing left to gain but rounding?
        return "stopped" if best.idle >= state.replica.patience else None


def log_result(result: Result) -> None:
    """Tell operators how a run has ended."""
    told = (result.status, result.rounds, result.relative_gap)
    logger.info("%s after %d rounds, relative gap %.2g", *told)


def as_solver(solver: Any, tol: float = Solver.tol) -> Solver:
    """A solver from what users may give: None, the name of a step, or a Solver.

    `tol` is the tolerance of an estimator where the user names none.
    """
    if solver is None:
        return Solver(tol=tol)
    if isinstance(solver, str):
        return Solver(step=solver, tol=tol)
    if not isinstance(solver, Solver):
        raise ValueError(
            f"solver must be None, the name of a step or a Solver, got {solver!r}; "
            'try solver="corrective" or Solver(tol=1e-6)'
        )
    return solver
