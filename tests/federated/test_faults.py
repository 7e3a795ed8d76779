"""Nodes that die and come back, that are slow, and networks that are cut."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from atomcast import Lasso, LocalCluster, Shards, Solver, StallError
from federation import NAMES, Parties, coordinate, make_data, processes


def expected(parts, y, solver, beta=5.0):
    sizes = [part.shape[1] for part in parts]
    shards = Shards.split(np.hstack(parts), 3, by=sizes, party_names=NAMES)
    return Lasso(beta, cluster=LocalCluster(3), solver=solver).fit(shards, y)


def same(model, other):
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=1e-9)
    assert model.result_.ledger.disclosures == other.result_.ledger.disclosures
    assert model.result_.gap == pytest.approx(other.result_.gap, abs=1e-6)


class Killer:
    """Kills a node's process at a random moment of each of the first rounds, and starts it anew."""

    def __init__(self, parties, port, kills, seed):
        self.parties, self.port, self.kills = parties, port, kills
        self._rng = np.random.default_rng(seed)
        self._nodes = {name: parties.start_process(name, port) for name in NAMES}
        self._dying, self.deaths = None, 0

    def __call__(self, state):
        """A callback, at the end of a round; the one before has cost a life by now."""
        if self._dying is not None:
            self._dying.join()
        if self.deaths < self.kills:
            self._dying = threading.Thread(target=self._kill)
            self._dying.start()

    def _kill(self):
        time.sleep(self._rng.exponential(0.01))
        victim = str(self._rng.choice(NAMES))
        self._end(victim)
        self.deaths += 1
        self._nodes[victim] = self.parties.start_process(victim, self.port)

    def _end(self, name):
        self._nodes[name].kill()
        self._nodes[name].join()
        assert self._nodes[name].exitcode == -signal.SIGKILL

    def close(self):
        if self._dying is not None:
            self._dying.join()
        for name in NAMES:
            self._end(name)


def nothing_is_lost(folder, kills, seed):
    """Fit while processes are killed: the model, what left and what the logs say are the same."""
    parts, y = make_data(rows=200, features=(60, 60, 60))
    how = {"tol": 1e-10, "atoms_per_round": 1}
    with Parties(folder, parts) as parties:
        cluster = parties.cluster = parties.make_cluster()
        with closing(Killer(parties, cluster.listen(), kills, seed)) as killer:
            parties.approve_soon()
            solver = Solver(**how, callbacks=[killer])
            model = Lasso(12.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)
            logs = {name: parties.log(name) for name in NAMES}
    assert killer.deaths == kills
    same(model, expected(parts, y, Solver(**how), 12.0))
    for name, entries in logs.items():
        told = {one.atom for one in model.result_.ledger.disclosures if one.party == name}
        assert {entry["id"] for entry in entries if entry["event"] == "atom"} == told


def test_thirty_processes_killed_at_random_moments_lose_nothing(tmp_path):
    nothing_is_lost(tmp_path / "p", kills=30, seed=0)


@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(1, 11))
def test_three_hundred_processes_killed_lose_nothing(tmp_path, seed):
    nothing_is_lost(tmp_path / "p", kills=30, seed=seed)


def test_a_node_that_does_not_come_back_is_named(tmp_path):
    parts, y = make_data()

    def leave(state):
        if state.round == 1:
            parties.stop("south")
            cluster.patience = 0.7

    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open()
        shards = cluster.shards("cohort")
        solver = Solver(tol=1e-8, atoms_per_round=1, callbacks=[leave])
        with pytest.raises(StallError, match=r"round 1: south has not connected for 0\.7 s"):
            Lasso(5.0, cluster=cluster, solver=solver).fit(shards, y)


def test_a_node_that_is_too_slow_is_named(tmp_path):
    from atomcast.federated.kinds import ScoreRequest
    from atomcast.federated.party import Node

    late, woken = threading.Event(), threading.Event()

    class Slow(Node):
        def answer(self, message):
            if isinstance(message, ScoreRequest) and late.is_set():
                woken.wait(60)
            return super().answer(message)

    def slow_down(state):
        late.set()
        cluster.deadline = 2.0

    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(node_types={"east": Slow})
        shards = cluster.shards("cohort")
        solver = Solver(callbacks=[slow_down])
        with pytest.raises(StallError, match="round 1: east has not answered for 2 s"):
            Lasso(5.0, cluster=cluster, solver=solver).fit(shards, y)
        woken.set()


def test_a_slow_node_is_waited_for(tmp_path):
    from atomcast.federated.party import Node

    class Slow(Node):
        def answer(self, message):
            time.sleep(0.02)
            return super().answer(message)

    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(node_types={"east": Slow})
        model = Lasso(5.0, cluster=cluster).fit(cluster.shards("cohort"), y)
    same(model, expected(parts, y, Solver()))


def test_the_coordinator_may_be_killed_and_resumed(tmp_path):
    """Another process goes on from the checkpoint; nothing counts twice against budgets."""
    parts, y = make_data(rows=80, features=(20, 20, 20))
    how = {"tol": 1e-8, "atoms_per_round": 1}
    file = tmp_path / "run.safetensors"
    with Parties(tmp_path / "p", parts) as parties:
        port = parties.open().listen()  # the nodes will look for a coordinator there
        parties.cluster.close()
        told = (f"127.0.0.1:{port}", NAMES, parties.keys, y, how, file)
        first = processes().Process(target=coordinate, args=told)
        first.start()
        first.join()
        assert first.exitcode == -signal.SIGKILL
        before = {n: [e for e in parties.log(n) if e["event"] == "run"] for n in NAMES}
        cluster = parties.cluster = parties.make_cluster(address=told[0])
        model = Lasso(8.0, cluster=cluster, solver=Solver(**how, resume=file))
        model.fit(cluster.shards("cohort"), y)
        after = {n: [e for e in parties.log(n) if e["event"] == "run"] for n in NAMES}
    assert after == before
    right = expected(parts, y, Solver(**how), 8.0)
    np.testing.assert_allclose(model.coef_, right.coef_, rtol=0, atol=1e-9)
    assert model.result_.rounds == right.result_.rounds
