"""Runs of dFW by the simulator's clock, for the figures that show runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.data.generators import LabelledExamples, make_speech_like
from atomcast.data.shards import Shards
from atomcast.experiments.runs.kernel_runs import mean_distance_gamma, one_thread, svm_problem
from atomcast.loop.callbacks import State
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.problems.problem import Problem
from atomcast.selection.rules import EXACT
from atomcast.simulation.clocked import ClockedCluster

#: Gaps are of no interest here: runs end after their rounds.
TOL = 1e-6
CLASSIC, LINE_SEARCH = Solver("classic", tol=TOL), Solver("line-search", tol=TOL)
#: Batches that are small, as the objectives are that a hundred classic steps reach: those that suit
#: a solution, of two thousand examples, would take longer for a single round. With this tolerance,
#: kernel values are kept in single precision.
BATCH = 32
CORRECTIVE = Solver("corrective", tol=1e-3, atoms_per_round=BATCH)


@dataclass(frozen=True)
class Network:
    """What the clock assumes of the network."""

    latency: float = 5e-6  # seconds that a message takes, whatever its size
    bandwidth: float = 56.6e9 / 8  # bytes a second of each connection

    def __str__(self) -> str:
        micros, gigabits = 1e6 * self.latency, 8e-9 * self.bandwidth
        return f"{micros:g} us a message, {gigabits:g} Gbit/s, all nodes connected"

    def cluster(self, nodes: int) -> ClockedCluster:
        """Nodes that are all connected with each other, as in the paper."""
        return ClockedCluster(nodes, "complete", latency=self.latency, bandwidth=self.bandwidth)


#: 56.6 Gbit/s between any two nodes; the latency is ours.
PAPERS_NETWORK = Network()


def speech_problem(n: int, run: int, **more: Any) -> tuple[LabelledExamples, Problem]:
    """The stand-in for the speech data, and the paper's problem on it, from one example on."""
    data = make_speech_like(n, random_state=run, **more)
    gamma = mean_distance_gamma(data.X)
    return data, svm_problem(data.y, gamma, "classic", TOL)


def corrective_problem(data: LabelledExamples) -> Problem:
    """The same problem for the corrective step, which starts from as many examples as a batch."""
    problem = svm_problem(data.y, mean_distance_gamma(data.X), "corrective", CORRECTIVE.tol)
    return replace(problem, sample=BATCH)


class Lap(NamedTuple):
    """What a clock showed: the work of each node, common steps, and messages."""

    work: NDArray[np.float64]
    steps: float
    network: float


def median_lap(laps: Sequence[Lap]) -> Lap:
    """What a round takes: on each node, the median of its rounds.

    What holds up a node in one round is mostly what else this machine has to do.
    """
    work, steps, network = (np.diff(column, axis=0)[1:] for column in zip(*laps, strict=True))
    median = np.median(work, axis=0)
    return Lap(median, float(np.median(steps)), float(np.median(network)))


def clocked_run(
    problem: Problem,
    shards: Shards,
    cluster: ClockedCluster,
    rounds: int,
    selection: Any = EXACT,
    solver: Solver = CLASSIC,
    *,
    limit: float = np.inf,
    laps: list[Lap] | None = None,
) -> tuple[Result, list[float], list[float]]:
    """A run, by default of the classic step, on single-threaded nodes.

    It ends after so many rounds, or once the clock has come to `limit` seconds. Beside the result:
    what the clock showed in every round, and how much of that was due to the choice of atoms that
    may be proposed. All parts of what it showed are added to `laps`, if that is given.
    """
    seconds: list[float] = []
    preparing: list[float] = []

    def look(state: State) -> bool:
        seconds.append(cluster.clock.seconds)
        preparing.append(cluster.clock.preparing)
        if laps is not None:
            laps.append(Lap(cluster.clock.work.copy(), cluster.clock.steps, cluster.clock.network))
        return seconds[-1] < limit

    watched = replace(solver, max_rounds=rounds, selection=selection, callbacks=[look])
    with one_thread():
        return watched.solve(problem, shards, cluster), seconds, preparing
