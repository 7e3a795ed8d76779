"""Runs of dFW by the simulator's clock, for the figures that show runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomcast.data.generators import LabelledExamples, make_speech_like
from atomcast.data.shards import Shards
from atomcast.experiments.runs.kernel_runs import mean_distance_gamma, one_thread, svm_problem
from atomcast.loop.callbacks import State
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.problems.problem import Problem
from atomcast.selection.rules import EXACT
from atomcast.simulation.alone import Alone
from atomcast.simulation.clocked import ClockedCluster, Heard

#: Gaps are of no interest here: runs end after their rounds.
TOL = 1e-6
CLASSIC, LINE_SEARCH = Solver("classic", tol=TOL), Solver("line-search", tol=TOL)
#: Batches that are small, as the objectives are that a hundred classic steps reach: those that suit
#: a solution, of two thousand examples, would take longer for a single round. With this tolerance,
#: kernel values are kept in single precision.
BATCH = 32
#: How often each node goes through a run by itself.
TRIES = 3
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


def slowest_alone(
    problem: Problem, shards: Shards, heard: Sequence[Heard], solver: Solver = CLASSIC
) -> tuple[float, float]:
    """What a round takes on the slowest node, each by itself: proposing, and all else, in seconds.

    Nodes go through the rounds that were heard of. What holds up one of them is mostly what else
    this machine has to do, so that each has several tries, with those of the others in between.
    """
    again = replace(solver, max_rounds=len(heard) - 1)
    tries: list[list[tuple[float, float]]] = [[] for _ in range(shards.nodes)]
    with one_thread():
        for _ in range(TRIES):
            for node, own in enumerate(tries):
                cluster = Alone(node, shards.nodes, heard)
                again.solve(problem, shards, cluster)
                own.append(cluster.usual_round())
    return max((min(own, key=sum) for own in tries), key=sum)


def clocked_run(
    problem: Problem,
    shards: Shards,
    cluster: ClockedCluster,
    rounds: int,
    selection: Any = EXACT,
    solver: Solver = CLASSIC,
    *,
    limit: float = np.inf,
) -> tuple[Result, list[float], list[float]]:
    """A run, by default of the classic step, on single-threaded nodes.

    It ends after so many rounds, or once the clock has come to `limit` seconds. Beside the result:
    what the clock showed in every round, and how much of that was due to the choice of atoms that
    may be proposed.
    """
    seconds: list[float] = []
    preparing: list[float] = []

    def look(state: State) -> bool:
        seconds.append(cluster.clock.seconds)
        preparing.append(cluster.clock.preparing)
        return seconds[-1] < limit

    watched = replace(solver, max_rounds=rounds, selection=selection, callbacks=[look])
    with one_thread():
        return watched.solve(problem, shards, cluster), seconds, preparing
