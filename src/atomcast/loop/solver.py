"""How to fit: the parameters of a run, and the runs of one problem after the other."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice
from typing import Any, Literal

from atomcast._checks import check_choice, check_count, check_flags, check_positive
from atomcast._threads import one_blas_thread
from atomcast.data.shards import Shards
from atomcast.loop.callbacks import Callback, check_callbacks, watching
from atomcast.loop.interrupting import Interrupts
from atomcast.loop.replica import Replica, Tolerance
from atomcast.loop.result import Result
from atomcast.loop.resuming import Past, finished_results, resume, snapshot_of, start_from
from atomcast.loop.rounds import Best, run
from atomcast.loop.session import Cluster, LoopElsewhere, RunSpec, Session
from atomcast.loop.trace import Row
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Selection, as_selection
from atomcast.steps import Compound, Step, check_step, make_step
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
        after each round. "auto" does so as well, and sends atoms to a coordinator alone, which
        tells everybody the image, once that costs less than to broadcast them; "compound" sends
        mixtures of every node's own features instead. A `Step` of your own, which each run copies,
        or a class or function that makes one for each run.
    tol : float, default=1e-4
        The duality gap at which the run stops, relative to the objective.
    tol_kind : {"relative", "absolute"}, default="relative"
        Whether tol is a share of the objective, or the gap itself, the epsilon of the paper.
    max_rounds : int, default=10_000
        Steps after which the run stops anyway.
    atoms_per_round : int or "auto", default="auto"
        How many atoms may join in a round of the corrective step.
    thin : bool, default=False
        Leave atoms out of a round of the corrective step that better ones will make superfluous:
        fewer are sent in vain. On a simulated star or tree, the root looks at candidates and passes
        on those that are of use; elsewhere each node looks at its own alone.
    min_mixture : int, default=1
        A node sends no mixture of fewer features than this (with the step "compound").
    reveal : {"always", "never"}, default="always"
        Whether the weights in a mixture go to the coordinator with it (with the step "compound").
        Else they stay with their owners, who take part where mixtures are combined; so does the
        model, of which each party has the coefficients of its own features.
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
    tol_kind: Literal["relative", "absolute"] = "relative"
    max_rounds: int = 10_000
    atoms_per_round: int | Literal["auto"] = "auto"
    thin: bool = False
    min_mixture: int = 1
    reveal: Literal["always", "never"] = "always"
    selection: str | Selection = "exact"
    callbacks: Sequence[Callback] = ()
    verbose: bool = False
    resume: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_step(self.step)
        check_positive("tol", self.tol, "the duality gap to reach")
        check_choice("tol_kind", self.tol_kind, ("relative", "absolute"))
        check_count("max_rounds", self.max_rounds, "steps after which to stop", minimum=0)
        if self.atoms_per_round != "auto":
            check_count("atoms_per_round", self.atoms_per_round, 'or "auto"')
        if not isinstance(self.thin, bool):
            raise ValueError(f"thin must be True or False, got {self.thin!r}")
        check_count("min_mixture", self.min_mixture, "features that a mixture has at least")
        if self.min_mixture > 1 and self.step != Compound.name:
            raise ValueError(
                f"min_mixture={self.min_mixture} is about mixtures, but step={self.step!r} sends "
                'features as they are: use step="compound"'
            )
        as_selection(self.selection)
        check_callbacks(self.callbacks)
        check_flags(self)
        if self.resume is not None and not isinstance(self.resume, str | os.PathLike):
            raise ValueError(
                f"resume must be the path of a checkpoint or None, got {self.resume!r}; "
                "Checkpoint(path) among the callbacks writes one"
            )
        self._check_reveal()

    def _check_reveal(self) -> None:
        """Raise ValueError where weights cannot stay with their owners."""
        check_choice("reveal", self.reveal, ("always", "never"))
        if self.reveal == "always":
            return
        if self.step != Compound.name:
            raise ValueError(
                f'reveal="never" is about the weights in mixtures, but step={self.step!r} needs '
                'them in common: use step="compound"'
            )
        if self.resume is not None or any(isinstance(c, Checkpoint) for c in self.callbacks):
            raise ValueError(
                'a checkpoint has the weights of all nodes, which reveal="never" keeps with '
                "their owners: leave Checkpoint and resume out"
            )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn asks estimators for them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def set_params(self, **params: Any) -> Solver:
        """Set parameters by name, as scikit-learn does for `solver__tol`."""
        for name in params:
            check_choice("a parameter of Solver", name, tuple(self.get_params()))
        vars(self).update(vars(replace(self, **params)))
        return self

    def but(self, **params: Any) -> Solver:
        """The same with other parameters, which are known to be right: nothing is checked again."""
        other = copy(self)
        vars(other).update(params)
        return other

    def spec(self, resume: bool = False) -> RunSpec:
        """What sessions are told of a run: everything but callbacks, output and files."""
        common = {name: getattr(self, name) for name in COMMON}
        return RunSpec(common, any(isinstance(c, Checkpoint) for c in self.callbacks), resume)

    def solve(
        self,
        problem: Problem,
        shards: Shards,
        cluster: Cluster | LoopElsewhere,
        start: Any = None,
    ) -> Result:
        """Solve one problem on a cluster; `start` as for `solve_path`."""
        (result,) = self.solve_path([problem], shards, cluster, names=[""], start=start)
        return result

    def solve_path(
        self,
        problems: Iterable[Problem],
        shards: Shards,
        cluster: Cluster | LoopElsewhere,
        names: Sequence[str] = (),
        past: Past | None = None,
        start: Any = None,
        straight: bool = False,
    ) -> Generator[Result]:
        """Solve problems that differ in their domain, one after the other, with warm starts.

        What was broadcast for one problem stays known for the next, and is not sent again. After
        a result with the status "interrupted", asking for the next raises KeyboardInterrupt.
        Disclosures call the problems by their names, or else "problem 1", "problem 2", ... `past`
        is what checkpoints are to remember beside the problem at hand; see `Journal`. `start` are
        the weights of an earlier solution, shape (n,), to begin with; clusters that cannot recall
        its atoms begin with nothing. `straight` says that radii rise along a path: who is alone
        begins where it would lead if it went straight on, which a resumed run would not know.
        """
        if isinstance(cluster, LoopElsewhere):
            if self.reveal == "never":
                raise ValueError(
                    f'with reveal="never" each rank has a part of the model, but {cluster!r} '
                    "returns that of one: use MPICluster() in a program that mpirun starts"
                )
            yield from cluster.solve_path(self, problems, shards, names, past)
            return
        if past is not None and self.resume is not None:
            problems = islice(problems, len(past.finished), None)
            names = names[len(past.finished) :]
        problems = iter(problems)
        problem = next(problems, None)
        if problem is None:
            return
        replica, first, interrupts = self.replica(problem), True, Interrupts()
        with cluster.open(problem, shards) as session:
            for name in chain(names, map("problem {}".format, count(len(names) + 1))):
                # Sessions of others may know nothing of this.
                replica.step.coordinated = getattr(session, "mixes", False)
                replica.step.usual_size = getattr(session, "usual_size", 0.0)
                replica.step.alone = session.n if getattr(session, "alone", False) else 0
                check_mixing(replica, session)
                session.ledger.begin(name, replica.first_round)
                path = self.resume if first else None
                replica = session.begin(replica, self.spec(resume=path is not None))
                best = Best()
                if path is not None:
                    resume(path, replica, best, session)
                    logger.info("resumed from %s in round %d", path, replica.round)
                    yield from finished_results(past, replica, best, session)
                elif first and start is not None:
                    start_from(start, replica, session)
                snapshot = partial(snapshot_of, replica, best, session, past)
                shown = self.verbose and session.speaks
                with (
                    one_blas_thread(),
                    interrupts,
                    watching(self.callbacks, interrupts, shown) as watchers,
                ):
                    rows = self._prepare(replica, session, first) if replica.step.alone else []
                    result = run(replica, best, session, watchers, snapshot, self.max_rounds, rows)
                if past is not None:
                    past.add(result.status, replica, best)
                if session.speaks:
                    log_result(result)
                yield result
                problem, first = next(problems, None), False
                if problem is None:
                    return
                if result.status == "interrupted":
                    raise KeyboardInterrupt("the problem before this one was interrupted")
                replica = self.replica(problem, replica)
                if not straight:
                    replica.trail = ()

    def _prepare(self, replica: Replica, session: Session, first: bool) -> list[Row]:
        """What comes before the first question where nobody has to be sent anything.

        Others would have to do the same. Returns the rounds that take no question.
        """
        replica.own = session.own()
        if not first:
            replica.step.settle(replica)
        elif self.max_rounds and not len(replica.active):
            return replica.foresee()
        return []

    @property
    def tolerance(self) -> Tolerance:
        """The gap at which a run may stop."""
        return Tolerance(self.tol, self.tol_kind == "absolute")

    def replica(self, problem: Problem, previous: Replica | None = None) -> Replica:
        """The state to start from: nothing known, or all that the previous run knew."""
        step = make_step(self.step, self.atoms_per_round, self.thin)
        step.min_mixture, step.reveals = self.min_mixture, self.reveal == "always"
        replica = Replica(problem, step, self.tolerance, as_selection(self.selection))
        if previous is not None:
            shrink = min(1.0, problem.domain.scale / previous.domain.scale)
            replica.continue_from(previous, shrink * previous.active.weights)
        return replica


#: Parameters that are not a matter of one process alone.
COMMON = tuple(Solver.__dataclass_fields__.keys() - {"callbacks", "verbose", "resume"})


def check_mixing(replica: Replica, session: Session) -> None:
    """Raise ValueError where a step needs mixtures, and the cluster has no place for them."""
    if replica.step.mixes and not replica.step.coordinated:
        raise ValueError(
            f"step={replica.step.name!r} needs all nodes in every round, and a coordinator: use "
            'LocalCluster with topology="star" or "tree", MPICluster or RayCluster, without '
            'asynchronous and without lost messages, or step="corrective"'
        )
    if not replica.step.reveals and not getattr(session, "asks", False):
        raise ValueError(
            'reveal="never" needs owners that take part where mixtures are combined: use '
            'LocalCluster with topology="star" or "tree", without faults, or MPICluster'
        )


def log_result(result: Result) -> None:
    """Tell operators how a run has ended."""
    if not logger.isEnabledFor(logging.INFO):
        return
    gap = result.relative_gap
    said = f"objective {result.objective:.6g}" if gap is None else f"relative gap {gap:.2g}"
    logger.info("%s after %d rounds, %s", result.status, result.rounds, said)


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
