"""Large features, proxies, cut cables, and parties with networks of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from atomcast import Lasso, Solver
from federation import NAMES, Parties, make_data
from patience import wait_until
from relay import Relay


def test_a_feature_of_8_mb_travels_in_pieces(tmp_path):
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((1_050_000, 1)) for _ in range(2)]
    y = parts[0][:, 0] - 2.0 * parts[1][:, 0]
    with Parties(tmp_path / "p", parts, NAMES[:2], min_count=0) as parties:
        cluster = parties.open()

        def restart(state):
            if state.round == 1:
                parties.stop("north")
                parties.start("north", cluster.listen())

        solver = Solver(tol=1e-3, atoms_per_round=1, callbacks=[restart])
        model = Lasso(3.0, fit_intercept=False, cluster=cluster, solver=solver)
        model.fit(cluster.shards("cohort"), y)
        sizes = [e["values"] for e in parties.log("north") if e["event"] == "atom"]
    assert set(sizes) == {1_050_000}
    assert model.result_.ledger.bytes > 8_000_000
    np.testing.assert_allclose(model.coef_, [1.0, -2.0], atol=1e-2)


def fitted_through(relay, folder, fault):
    """Fit with a node behind a proxy, to which something happens; returns when it has connected."""
    parts, y = make_data()

    def happen(state):
        if state.round == 1:
            fault()

    how = {"tol": 1e-6, "atoms_per_round": 1}
    expected = Lasso(5.0, solver=Solver(**how)).fit(np.hstack(parts), y)
    with Parties(folder, parts) as parties:
        proxy = f"http://127.0.0.1:{relay.port}"
        parties.configs["south"] = replace(parties.configs["south"], proxy=proxy)
        cluster = parties.open(patience=120.0)
        solver = Solver(**how, callbacks=[happen])
        model = Lasso(5.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)
        connected = [e["time"] for e in parties.log("south") if e["event"] == "connected"]
        assert relay.wanted[:1] == [f"127.0.0.1:{cluster.listen()}"]
    relay.close()
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-9)
    return connected


def test_a_node_behind_a_proxy_whose_connections_end_for_seconds(tmp_path):
    relay = Relay()

    def cut():
        relay.cut()
        threading.Timer(3.0, lambda: setattr(relay, "open", True)).start()

    assert len(fitted_through(relay, tmp_path / "p", cut)) == 2


def test_a_node_whose_network_is_silent_for_a_moment_is_waited_for(tmp_path):
    relay = Relay()
    assert len(fitted_through(relay, tmp_path / "p", lambda: relay.silence(2.0))) == 1


@pytest.mark.endurance
def test_a_network_that_is_silent_for_half_a_minute(tmp_path):
    """Longer than it takes to notice: the node gives the connection up, and comes back."""
    relay = Relay()
    assert len(fitted_through(relay, tmp_path / "p", lambda: relay.silence(30.0))) == 2


def test_what_is_no_message_ends_a_connection_and_nothing_else(tmp_path):
    """A node that talks nonsense is cut off; when it talks sense again, the fit goes on."""
    from atomcast.federated.party import Node

    class Babbling(Node):
        babbled = False

        @property
        def longest(self):
            if not Babbling.babbled and self._run is not None:
                Babbling.babbled = True
                return 1  # everything is too long for it: it hangs up
            return super().longest

    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(node_types={"east": Babbling})
        model = Lasso(5.0, cluster=cluster).fit(cluster.shards("cohort"), y)
        reasons = [e["reason"] for e in parties.log("east") if e["event"] == "disconnected"]
    assert model.result_.status == "optimal"
    assert "was announced" in reasons[0]


def test_a_node_that_speaks_unasked_is_cut_off(tmp_path, caplog, monkeypatch):
    from atomcast.federated.attending import Connection
    from atomcast.federated.kinds import Acknowledged

    meet = Connection._meet

    def meet_and_babble(self, messages):
        meet(self, messages)
        self._say(Acknowledged("by the way"))

    parts, _ = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        parties.cluster = parties.make_cluster()
        with monkeypatch.context() as rude:
            rude.setattr(Connection, "_meet", meet_and_babble)
            parties.start("north", parties.cluster.listen())
            wait_until(lambda: "north: speaks without being asked" in caplog.text, caplog.text)
        assert parties.cluster.calls().line(0).peer.name == "north"  # it has learned better


def test_an_address_that_cannot_be_listened_at_is_named(tmp_path):
    parts, _ = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        port = parties.open(approve=False).listen()
        other = parties.make_cluster()
        other.address = f"127.0.0.1:{port}"
        with pytest.raises(OSError, match="nothing can listen at"):
            other.listen()


def namespaces_possible():
    """Whether this process may make networks of its own."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return False
    probe = "ip netns add atomcast-probe && ip netns delete atomcast-probe"
    command = ["unshare", "--net", "--mount", "sh", "-c", f"mount -t tmpfs none /run && {probe}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not namespaces_possible(), reason="may not make network namespaces here")
def test_three_parties_in_three_networks(tmp_path):
    """Each party has an address of its own; they reach the coordinator over a bridge."""
    script = Path(__file__).with_name("namespaces.py")
    command = ["unshare", "--net", "--mount", sys.executable, str(script), str(tmp_path)]
    paths = os.pathsep.join([str(script.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("optimal from 10.77.0.1, 10.77.0.2, 10.77.0.3")


def test_sizes_that_a_member_announces_are_not_believed(tmp_path):
    """They would be allocated at the end of the fit, by the coordinator."""
    from atomcast.errors import FalseMessageError
    from atomcast.federated.kinds import Describe
    from atomcast.federated.party import Node

    class Boasting(Node):
        def answer(self, message):
            answer = super().answer(message)
            return replace(answer, features=2**60) if isinstance(message, Describe) else answer

    parts, _ = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(approve=False, node_types={"east": Boasting})
        with pytest.raises(FalseMessageError, match="east says that it has 1152921504606846976"):
            cluster.shards("cohort")


@pytest.mark.parametrize(
    "lie",
    [
        lambda told: replace(told, scores=np.full(len(told.scores), np.nan)),
        lambda told: replace(told, ids=np.repeat(told.ids[:1], len(told.ids))),
        lambda told: replace(told, ids=told.ids - 13),
        lambda told: replace(told, best=np.nan),
    ],
    ids=["nan", "twice", "another's", "no-bound"],
)
def test_proposals_that_cannot_be_are_named(tmp_path, lie):
    from atomcast.errors import FalseMessageError
    from atomcast.federated.kinds import Scores
    from atomcast.federated.party import Node

    class Lying(Node):
        def answer(self, message):
            answer = super().answer(message)
            return lie(answer) if isinstance(answer, Scores) else answer

    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(node_types={"east": Lying})
        with pytest.raises(FalseMessageError, match="east proposed what it cannot hold"):
            Lasso(5.0, cluster=cluster).fit(cluster.shards("cohort"), y)


def test_a_target_of_another_length_is_refused_before_anything_is_sent(tmp_path):
    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(approve=False)
        with pytest.raises(ValueError, match="y has 59 values, but there are 60 rows"):
            Lasso(5.0, cluster=cluster).fit(cluster.shards("cohort"), y[1:])
        assert not parties.approve()


def test_answers_that_nobody_reads_do_not_pile_up():
    """The node waits with the next answer, until the other side reads or is gone."""
    from atomcast.federated.attending import WAITING, Connection
    from atomcast.federated.kinds import Acknowledged
    from atomcast.federated.schema import SchemaError

    connection, lost = Connection(None, threading.Event()), threading.Event()
    connection._call = SimpleNamespace(is_active=lambda: not lost.is_set())
    for _ in range(WAITING):
        connection._say(Acknowledged("nobody reads this"))
    threading.Timer(0.3, lost.set).start()
    with pytest.raises(SchemaError, match="has not listened"):
        connection._say(Acknowledged("nor this"))
    assert lost.is_set()
    assert connection._outgoing.qsize() == WAITING
