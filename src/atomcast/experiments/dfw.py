"""Runs of dFW for the figures, with the time that the nodes spend on their own atoms."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.atom import Atom
from atomcast.atoms.base import Atoms
from atomcast.callbacks import State
from atomcast.cluster.local import LocalCluster
from atomcast.data.shards import Shard, Shards
from atomcast.problem import Problem
from atomcast.result import Result
from atomcast.solver import Solver

if TYPE_CHECKING:
    from atomcast.replica import Replica


class TimedAtoms:
    """Atoms that count the seconds spent on scoring them."""

    def __init__(self, atoms: Atoms) -> None:
        self.atoms, self.d, self.n = atoms, atoms.d, atoms.n
        self.seconds = 0.0

    def scores(self, replica: Replica) -> NDArray[np.float64]:
        """The scores of the atoms."""
        start = time.perf_counter()
        scores = self.atoms.scores(replica)
        self.seconds += time.perf_counter() - start
        return scores

    def atom(self, j: int, id: int) -> Atom:
        """The j-th atom."""
        return self.atoms.atom(j, id)


def run(
    problem: Problem,
    shards: Shards,
    cluster: LocalCluster,
    step: str,
    tol: float,
    rounds: int,
    *,
    budget: float = np.inf,
    batch: Any = "auto",
) -> tuple[Result, list[float]]:
    """A run of dFW, and the seconds of local computation up to each round.

    It ends after so many rounds, or once so many values (`budget`) were sent; up to `batch` atoms
    join in a round of the corrective step.

    For the steps of Algorithm 3 these are the seconds that all nodes together spend on local
    gradients. The corrective step computes more than that, so that there the whole run counts,
    the simulated network included.
    """
    made: list[TimedAtoms] = []

    def make_atoms(shard: Shard) -> Atoms:
        made.append(TimedAtoms(problem.make_atoms(shard)))
        return made[-1]

    spent: list[float] = []

    def watch(state: State) -> bool:
        local = sum(atoms.seconds for atoms in made)
        spent.append(state.seconds if step == "corrective" else local)
        return state.ledger.values < budget

    solver = Solver(step=step, tol=tol, max_rounds=rounds, atoms_per_round=batch, callbacks=[watch])
    timed = dataclasses.replace(problem, make_atoms=make_atoms)
    return solver.solve(timed, shards, cluster), spent
