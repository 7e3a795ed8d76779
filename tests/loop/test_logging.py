"""The log: silent unless somebody listens, and then what an operator wants to know."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys

import pytest

from atomcast import Checkpoint, Faults, LocalCluster, Outage
from atomcast.cluster.machine import machine, ranges
from atomcast.domains.balls import L1Ball
from problems import regression, solve


@pytest.fixture
def data():
    return regression(seed=1, d=20, n=30)


def lines(caplog):
    return [f"{record.name} {record.levelname}: {record.getMessage()}" for record in caplog.records]


def test_nothing_is_printed_unless_somebody_listens():
    code = (
        "import logging; import numpy as np; from atomcast import Lasso\n"
        "[handler] = logging.getLogger('atomcast').handlers\n"
        "assert type(handler) is logging.NullHandler\n"
        "logging.getLogger('atomcast.cluster.ray.ray_session').warning('node 1 is lost')\n"
        "Lasso(1.0, cluster=2).fit(np.eye(4), np.ones(4))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert done.stdout == done.stderr == b""


def test_where_nodes_run_what_they_hold_and_how_it_ended(data, caplog):
    caplog.set_level(logging.INFO, "atomcast")
    solve(*data, L1Ball(2.0), nodes=3)
    where, loaded, ended = lines(caplog)
    begin = "atomcast.simulation.local_session INFO: "
    assert where.startswith(f"{begin}3 nodes on {socket.gethostname()} (")
    assert f"process {os.getpid()}" in where
    assert loaded == f"{begin}loaded 30 atoms in 3 shards (split)"
    assert ended.startswith("atomcast.loop.solver INFO: optimal after ")


def test_checkpoints_that_are_written_and_resumed(data, tmp_path, caplog):
    path = tmp_path / "c.safetensors"
    how = {"step": "classic", "max_rounds": 4}
    with caplog.at_level(logging.INFO, "atomcast.storage.checkpoint"):
        solve(*data, L1Ball(2.0), callbacks=[Checkpoint(path, rounds=3)], **how)
    assert lines(caplog) == [
        f"atomcast.storage.checkpoint INFO: round {round}: checkpoint written to {path}"
        for round in (3, 4)
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, "atomcast.loop.solver"):
        solve(*data, L1Ball(2.0), resume=path, **how)
    assert lines(caplog)[0] == f"atomcast.loop.solver INFO: resumed from {path} in round 4"


def test_nodes_that_are_lost_and_come_back(data, caplog):
    caplog.set_level(logging.INFO, "atomcast.simulation.log_session")
    cluster = LocalCluster(3, faults=Faults(outages=[Outage(node=1, start=2, end=5)]))
    solve(*data, L1Ball(2.0), nodes=3, cluster=cluster, step="classic", max_rounds=9)
    told = [line.split("INFO: ")[1] for line in lines(caplog)]
    assert told[0] == "round 2: node 1 is lost"
    assert told[1].endswith("node 1 is back")


def test_rounds_are_not_logged(data, caplog):
    caplog.set_level(logging.DEBUG, "atomcast")
    result = solve(*data, L1Ball(2.0), nodes=3, step="classic", max_rounds=200)
    assert result.rounds == 200
    assert len(caplog.records) < 5


def test_cores_are_told_in_short(monkeypatch):
    assert ranges({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"
    assert ranges([]) == ""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 2, 3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert machine().endswith("cores 1-3 of 8)")
