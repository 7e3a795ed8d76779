"""A node that goes through a clocked run by itself does all that a node does, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atomcast.atoms.explicit import DenseAtoms
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.experiments.runs.clocked_runs import speech_problem
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation import alone
from atomcast.simulation.alone import Alone
from atomcast.simulation.clocked import ClockedCluster
from problems import regression


def features():
    X, y = regression(n=30)
    return explicit_problem(SquaredError(y), L1Ball(3.0)), X


def examples():
    data, problem = speech_problem(60, 0)
    return problem, data.X


@pytest.mark.parametrize("made", [features, examples])
@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("step", ["classic", "line-search"])
def test_every_node_goes_the_way_of_all(made, nodes, step):
    problem, data = made()
    shards, cluster = Shards.split(data, nodes), ClockedCluster(nodes)
    cluster.heard = []
    solver = Solver(step, max_rounds=8)
    together = solver.solve(problem, shards, cluster)
    assert len(cluster.heard) == 9
    for node in range(nodes):
        by_itself = Alone(node, nodes, cluster.heard)
        result = solver.solve(problem, shards, by_itself)
        assert np.array_equal(result.trace.objective, together.trace.objective, equal_nan=True)
        assert np.array_equal(result.trace.gap, together.trace.gap)
        assert result.ledger.atoms_sent == together.ledger.atoms_sent
        assert len(by_itself.work) == 9
        assert len(by_itself.rounds) == 8


def test_the_clock_counts_everything_between_two_proposals(monkeypatch):
    time = 0.0

    class Slow(DenseAtoms):
        def scores(self, replica):
            nonlocal time
            time += 5.0
            return super().scores(replica)

    def watch(state):
        nonlocal time
        time += 2.0

    problem, X = features()
    shards, cluster = Shards.split(X, 3), ClockedCluster(3)
    cluster.heard = []
    Solver("classic", max_rounds=6).solve(problem, shards, cluster)
    monkeypatch.setattr(alone, "now", lambda: time)
    slow = replace(problem, make_atoms=lambda shard: Slow(shard.matrix))
    by_itself = Alone(1, 3, cluster.heard)
    Solver("classic", max_rounds=6, callbacks=[watch]).solve(slow, shards, by_itself)
    assert by_itself.usual_round() == (5.0, 2.0)
