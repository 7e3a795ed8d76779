"""The simulator's clock: the slowest node counts, and nothing else changes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from atomcast.atoms.explicit import DenseAtoms
from atomcast.atoms.l1_space import DenseSpace
from atomcast.cluster import node as fleet
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.selection.rules import MCenters, RandomSubset
from atomcast.simulation import clocked
from atomcast.simulation.clocked import ClockedCluster
from atomcast.simulation.local import LocalCluster
from problems import regression

SIZES = [16, 8, 4, 2]


class Ticking(DenseAtoms):
    """Atoms whose scoring and comparing take a second each, by a clock of the test's own."""

    time = 0.0

    def scores(self, replica):
        Ticking.time += self.n
        return super().scores(replica)

    def space(self):
        return TickingSpace(self.matrix.T, compiled=False)

    def take(self, rows):
        return Ticking(self.matrix[:, rows])


class TickingSpace(DenseSpace):
    def take(self, rows):
        return TickingSpace(self.rows[rows], compiled=False)

    def nearest(self, others):
        Ticking.time += len(self.rows) * len(others.rows)
        return super().nearest(others)


def setting(monkeypatch):
    X, y = regression(n=30)
    problem = explicit_problem(SquaredError(y), L1Ball(3.0))
    ticking = dataclasses.replace(problem, make_atoms=lambda shard: Ticking(shard.matrix))
    monkeypatch.setattr(clocked, "now", lambda: Ticking.time)
    return problem, ticking, Shards.split(X, 4, by=SIZES)


@pytest.mark.parametrize("step", ["classic", "corrective"])
def test_a_round_lasts_as_long_as_its_slowest_node(monkeypatch, step):
    problem, ticking, shards = setting(monkeypatch)
    seen = []
    cluster = ClockedCluster(4)
    solver = Solver(step, max_rounds=7, callbacks=[lambda s: seen.append(cluster.clock.seconds)])
    result = solver.solve(ticking, shards, cluster)
    proposals = result.rounds + 1
    assert seen == [16 * (k + 1) for k in range(proposals)]
    assert cluster.clock.work.tolist() == [proposals * size for size in SIZES]
    plain = Solver(step, max_rounds=7).solve(problem, shards, LocalCluster(4))
    assert result.objective == pytest.approx(plain.objective, rel=1e-12)
    assert result.ledger.values == plain.ledger.values
    assert cluster.clock.preparing == cluster.clock.steps == cluster.clock.network == 0.0


def test_choosing_is_counted_and_told_apart(monkeypatch):
    _, ticking, shards = setting(monkeypatch)
    cluster = ClockedCluster(4)
    Solver("classic", max_rounds=5, selection=MCenters()).solve(ticking, shards, cluster)
    # Two centers of each node, compared with all atoms but the first center; where it holds no
    # more than that, there is nothing to compare.
    assert cluster.clock.choosing.tolist() == [30, 14, 6, 0]
    assert cluster.clock.preparing == 30
    # Six rounds of two examples each, and a last one that certifies the gap over all.
    assert cluster.clock.slowest >= 30 + 6 * 2 + 16
    assert cluster.clock.slowest < 6 * 16
    Solver("classic", max_rounds=5, selection=RandomSubset()).solve(ticking, shards, cluster)
    assert cluster.clock.preparing == 0.0  # a new run, a new clock


def test_both_rounds_of_a_balanced_certificate_are_counted(monkeypatch):
    _, ticking, shards = setting(monkeypatch)
    monkeypatch.setattr(fleet, "perf_counter", lambda: Ticking.time)  # all are equally fast
    cluster, before = ClockedCluster(4), Ticking.time
    result = Solver(tol=1e-6, selection="balanced").solve(ticking, shards, cluster)
    assert result.status == "optimal"
    assert cluster.clock.work.sum() == Ticking.time - before < (result.rounds + 2) * sum(SIZES)
    # The first round and the one for the certificate last as long as 16 atoms, others do not.
    assert 32 < cluster.clock.slowest < (result.rounds + 2) * 16


def test_messages_take_the_time_of_the_network():
    X, y = regression(n=30)
    problem = explicit_problem(SquaredError(y), L1Ball(3.0))
    network = {"latency": 0.5, "bandwidth": 1000.0}
    cluster = ClockedCluster(3, "complete", **network)
    solver = Solver("classic", max_rounds=4)
    result = solver.solve(problem, Shards.split(X, 3), cluster)
    plain = solver.solve(problem, Shards.split(X, 3), LocalCluster(3, "complete", **network))
    clock = cluster.clock
    assert clock.network == result.ledger.seconds == plain.ledger.seconds
    assert clock.network > 0.5 * (5 + result.ledger.atoms_sent)  # five agreements, and the atoms
    assert clock.seconds == clock.slowest + clock.steps + clock.network
    assert 0.0 < clock.steps < 10.0
    assert np.all(clock.work > 0)
