"""Runs of dFW for the figures, with the time that the nodes spend on their own atoms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.held import Atoms
from atomcast.data.shards import Shard, Shards
from atomcast.experiments.runs import curves
from atomcast.experiments.runs.curves import (
    AUTO,
    CLASSIC,
    COMPOUND,
    CORRECTIVE,
    LINE_SEARCH,
    ONCE,
    Point,
)
from atomcast.loop.callbacks import State
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.loop.trace import Trace
from atomcast.messages.atom import Atom
from atomcast.problems.problem import Problem
from atomcast.simulation.local import LocalCluster

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica


#: How the figures call a run with this step; first the steps of the paper.
METHODS = {
    "classic": CLASSIC,
    "line-search": LINE_SEARCH,
    "corrective": CORRECTIVE,
    "compound": COMPOUND,
    "auto": AUTO,
}
PAPERS = ("classic", "line-search")


class TimedAtoms:
    """Atoms that count the seconds of computation spent on scoring them: not waiting for a core."""

    def __init__(self, atoms: Atoms) -> None:
        self.atoms, self.d, self.n = atoms, atoms.d, atoms.n
        self.made, self.seconds = process_time(), 0.0

    def scores(self, replica: Replica) -> NDArray[np.float64]:
        """The scores of the atoms."""
        start = process_time()
        scores = self.atoms.scores(replica)
        self.seconds += process_time() - start
        return scores

    def atom(self, j: int, id: int) -> Atom:
        """The j-th atom."""
        return self.atoms.atom(j, id)


class TracedRun(NamedTuple):
    """A run of dFW.

    `spent` has the seconds of local computation up to each round: for the steps of Algorithm 3
    those that all nodes together spend on local gradients. The corrective step computes more than
    that, so that there the whole run counts, the simulated network included.
    """

    result: Result
    spent: list[float]

    @property
    def trace(self) -> Trace:
        """The rounds, with all that was sent."""
        return self.result.trace

    @property
    def once(self) -> Trace:
        """The same rounds, if no atom were sent again to nodes that know it.

        Algorithm 3 sends an atom each time it wins. A round in which an old atom wins would then
        cost what the last round costs, in which nodes agree and nothing is sent.
        """
        known: set[int] = set()
        by_round = self.result.ledger.by_round()
        if not by_round:  # a node that is alone sends nothing
            return self.trace
        agreement, again = by_round[-1], np.zeros((len(by_round), 2), dtype=np.int64)
        for sent in self.result.ledger.disclosures:
            if sent.atom in known:
                count = by_round[sent.round]
                again[sent.round] = count.values - agreement.values, count.bytes - agreement.bytes
            known.add(sent.atom)
        before = np.concatenate((np.zeros((1, 2), dtype=np.int64), np.cumsum(again, axis=0)))
        cheaper = Trace()
        for row in self.trace:
            values, size = before[row.round].tolist()
            cheaper.append(row._replace(values=row.values - values, bytes=row.bytes - size))
        return cheaper


def run(
    problem: Problem,
    shards: Shards,
    step: str,
    tol: float,
    rounds: int,
    *,
    batch: Any = "auto",
    enough: Callable[[State], bool] | None = None,
) -> TracedRun:
    """A run of dFW on a star, which ends after so many rounds, or once there is `enough`.

    The steps of the paper send an atom each time it wins, as in Algorithm 3. Up to `batch` atoms
    join in a round of the corrective step.
    """
    made: list[TimedAtoms] = []

    def make_atoms(shard: Shard) -> Atoms:
        made.append(TimedAtoms(problem.make_atoms(shard)))
        return made[-1]

    spent: list[float] = []

    def watch(state: State) -> bool:
        local = sum(atoms.seconds for atoms in made)
        spent.append(local if step in PAPERS else process_time() - made[-1].made)
        return enough is None or not enough(state)

    cluster = LocalCluster(shards.nodes, resend=step in PAPERS)
    solver = Solver(step=step, tol=tol, max_rounds=rounds, atoms_per_round=batch, callbacks=[watch])
    timed = dataclasses.replace(problem, make_atoms=make_atoms)
    return TracedRun(solver.solve(timed, shards, cluster), spent)


def sent_as_much(values: float) -> Callable[[State], bool]:
    """Enough is what so many values may cost."""
    return lambda state: state.ledger.values >= values


def points(panel: str, run: int, by_step: Mapping[str, TracedRun], d: int | None) -> list[Point]:
    """The rows of a run of every step; those of the classic one also with atoms sent once."""
    classic = by_step["classic"]
    shown = [(METHODS[step], done, done.trace) for step, done in by_step.items()]
    return [
        row
        for method, done, trace in (*shown, (ONCE, classic, classic.once))
        for row in curves.points(panel, method, run, trace, d, done.spent)
    ]
