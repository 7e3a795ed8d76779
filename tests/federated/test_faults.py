"""Nodes that die and come back, that are slow, and networks that are cut."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from atomcast import Checkpoint, Lasso, LocalCluster, Shards, Solver, StallError
from federation import NAMES, Parties, make_data


def expected(parts, y, solver, beta=5.0):
    sizes = [part.shape[1] for part in parts]
    shards = Shards.split(np.hstack(parts), 3, by=sizes, party_names=NAMES)
    return Lasso(beta, cluster=LocalCluster(3), solver=solver).fit(shards, y)


def same(model, other):
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=1e-9)
    assert model.result_.ledger.disclosures == other.result_.ledger.disclosures
    assert model.result_.gap == pytest.approx(other.result_.gap, abs=1e-6)


class Mortal:
    """Makes nodes die at random, without a word.

    That is before a message is dealt with, or before or after a line is on the disk.
    """

    def __init__(self, parties, kills, seed=0):
        self.parties, self.left, self.deaths = parties, kills, 0
        self.rng = np.random.default_rng(seed)
        self.port, self.lock = None, threading.Lock()

    def kind(self):
        from atomcast.federated.party import Node

        mortal = self

        class MortalNode(Node):
            dead = False

            def answer(self, message):
                if mortal.comes():
                    mortal.take(self)
                return super().answer(message)

            def note(self, event, **what):
                comes = mortal.comes()
                if not comes or mortal.rng.random() < 0.5:
                    super().note(event, **what)
                if comes:
                    mortal.take(self)

        return MortalNode

    def comes(self):
        with self.lock:
            comes = self.left > 0 and self.rng.random() < 0.2
            self.left -= comes
            return comes

    def take(self, node):
        node.dead = True
        raise SystemExit

    def watch(self, stop):
        """Start those anew that have died."""
        while not stop.wait(0.005):
            for name, (node, _, thread) in list(self.parties._nodes.items()):
                if node.dead and not thread.is_alive():
                    self.deaths += 1
                    self.parties.stop(name)
                    self.parties.start(name, self.port, self.kind())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_thirty_deaths_at_random_moments_lose_nothing(tmp_path):
    parts, y = make_data(rows=80, features=(20, 20, 20))
    solver = Solver(tol=1e-8, atoms_per_round=1)
    with Parties(tmp_path / "p", parts) as parties:
        mortal = Mortal(parties, kills=30)
        cluster = parties.open(node_types={name: mortal.kind() for name in NAMES})
        mortal.port, stop = cluster.listen(), threading.Event()
        threading.Thread(target=mortal.watch, args=(stop,), daemon=True).start()
        model = Lasso(8.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)
        stop.set()
        logs = {name: parties.log(name) for name in NAMES}
    assert mortal.left == 0
    assert mortal.deaths == 30
    same(model, expected(parts, y, solver, 8.0))
    for name, entries in logs.items():
        told = {one.atom for one in model.result_.ledger.disclosures if one.party == name}
        assert {entry["id"] for entry in entries if entry["event"] == "atom"} == told


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
    """Another coordinator goes on from the checkpoint; nothing counts twice against budgets."""
    parts, y = make_data(rows=80, features=(20, 20, 20))
    how = {"tol": 1e-8, "atoms_per_round": 1}
    file = tmp_path / "run.safetensors"

    def die(state):
        if state.round == 4:
            raise MemoryError

    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open()
        solver = Solver(**how, callbacks=[Checkpoint(file, rounds=1), die])
        with pytest.raises(MemoryError):
            Lasso(8.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)
        before = {n: [e for e in parties.log(n) if e["event"] == "run"] for n in NAMES}
        cluster.close()
        for name in NAMES:
            parties.stop(name)
        cluster = parties.open()
        model = Lasso(8.0, cluster=cluster, solver=Solver(**how, resume=file))
        model.fit(cluster.shards("cohort"), y)
        after = {n: [e for e in parties.log(n) if e["event"] == "run"] for n in NAMES}
    assert after == before
    right = expected(parts, y, Solver(**how), 8.0)
    np.testing.assert_allclose(model.coef_, right.coef_, rtol=0, atol=1e-9)
    assert model.result_.rounds == right.result_.rounds
