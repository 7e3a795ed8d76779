"""A node that stalls ends the run with an error that names it and the round; nothing hangs."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from pathlib import Path

import psutil
import pytest

from atomcast import MPICluster, RayCluster, StallError
from atomcast.cluster.mpi.channel import Listener, connect
from atomcast.cluster.mpi.watch import NO_ROUND, OUTSIDE, PROGRAM, PROPOSALS, SCORING, verdict
from cluster.contract import fitted
from cluster.stalling import DEADLINE, ROUND
from cluster.test_mpi import mpirun
from cluster.test_mpi_launch import workers
from patience import PATIENCE
from problems import regression

pytestmark = [pytest.mark.xdist_group("processes")]

SCRIPT = Path(__file__).with_name("stalling.py")
#: How a rank may stall, which one does, of how many, and what is said of it.
WAYS = {
    "sleeping": (1, 3, rf"round {ROUND}: node 1 is still scoring its atoms"),
    "stopped": (0, 2, rf"round {ROUND}: node 0 does not answer"),
    "in a callback": (1, 2, rf"round {ROUND}: node 1 is still in its step or in a callback"),
    "loading": (1, 2, r"before the first round: node 1 is still loading"),
    "absent": (1, 2, r"before the first round: node 1 has not come to the fit"),
}


@pytest.fixture(scope="module")
def jobs():
    """What became of each way to stall; they mostly wait, and so run side by side."""
    with ThreadPoolExecutor(3) as pool:
        started = {
            way: pool.submit(mpirun, ranks, SCRIPT, way, rank, limit=PATIENCE)
            for way, (rank, ranks, _) in {"done": (0, 2, ""), **WAYS}.items()  # the longest first
        }
        return {way: job.result() for way, job in started.items()}


@pytest.mark.mpi
@pytest.mark.parametrize("way", WAYS)
def test_a_rank_that_stalls(way, jobs):
    message, (code, output) = WAYS[way][-1], jobs[way]
    assert code != 0
    assert "ended after" not in output, output  # by itself, that is
    # The first rank that has waited too long ends all; others may speak before it does so.
    assert len(set(re.findall(message, output))) == 1, output
    assert "StallError" in output


@pytest.mark.mpi
def test_ranks_that_are_done_may_take_their_time(jobs):
    code, output = jobs["done"]
    assert code == 0, output
    assert output.count("refused") == 4  # these took their time as well
    assert output.count("done") == 2


@pytest.mark.mpi
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_launched_rank_that_stalls(nodes, mpi_environment):
    def stop(state):
        if state.round == ROUND:
            os.kill(workers()[-1].pid, signal.SIGSTOP)

    cluster = MPICluster.launch(nodes, deadline=DEADLINE)
    with pytest.raises(StallError, match=r"round [34]: node \d (does not|has not) answer"):
        fitted(*regression(seed=1, d=30, n=40), cluster, step="classic", callbacks=[stop])
    assert not workers()


@pytest.mark.mpi
def test_a_callback_of_the_program_may_take_longer_than_the_deadline(mpi_environment):
    def think(state):
        if state.round == 2:
            time.sleep(1.5 * DEADLINE)

    cluster = MPICluster.launch(2, deadline=DEADLINE)
    result = fitted(*regression(seed=2), cluster, max_rounds=4, tol=1e-9, callbacks=[think]).result_
    assert result.rounds >= 2


def actors():
    return [p for p in psutil.Process().children(recursive=True) if "RayNode" in p.name()]


@pytest.mark.ray
def test_an_actor_that_stalls(ray):
    cluster = RayCluster(2, patience=PATIENCE)

    def stop(state):
        if state.round == ROUND:
            os.kill(actors()[0].pid, signal.SIGSTOP)
            cluster.deadline = DEADLINE  # not before, for actors may take long to start

    X, y = regression(seed=3, d=30, n=40)
    with pytest.raises(
        StallError, match=rf"round {ROUND + 1}: node \d has not answered for {DEADLINE:g} s"
    ):
        fitted(X, y, cluster, step="classic", callbacks=[stop])
    cluster.deadline = None
    assert fitted(X, y, cluster).result_.status == "optimal"  # with new actors
    cluster.close()


@pytest.mark.parametrize("deadline", [0, -1.0, "soon", float("inf")])
def test_bad_deadlines(deadline):
    for cluster in (RayCluster, MPICluster.launch):
        with pytest.raises(ValueError, match="deadline must be a finite number"):
            cluster(2, deadline=deadline)


# -- who is to blame ------------------------------------------------------------------------------


def test_the_verdict_names_those_that_hold_up_the_others():
    waiting, busy = ((4, PROPOSALS), 11.0), ((4, SCORING), 11.0)
    assert "round 4: node 1 is still scoring" in verdict(4, {0: waiting, 1: busy}, 2, 10.0)
    silent = verdict(4, {0: waiting, 2: waiting}, 3, 10.0)
    assert silent.startswith("round 4: node 1 does not answer, and others have waited")
    gone = verdict(4, {0: waiting, 1: ((NO_ROUND, OUTSIDE), 20.0)}, 2, 10.0)
    assert "round 4: node 1 is not in a fit" in gone
    crossed = verdict(4, {0: waiting, 1: ((5, PROPOSALS), 11.0)}, 2, 10.0)
    assert "round 4: node 0 waits for proposals; round 5: node 1 waits for proposals" in crossed


def test_nobody_is_to_blame_for_a_program_that_thinks_or_for_work_that_has_just_begun():
    waiting = (4, PROPOSALS), 11.0
    assert verdict(4, {0: ((4, PROGRAM), 30.0), 1: waiting}, 2, 10.0) is None
    assert verdict(4, {0: ((4, SCORING), 0.1), 1: waiting}, 2, 10.0) is None


def connected():
    """Both ends of a connection, and the listener that it came by."""
    listener = Listener()
    with ThreadPoolExecutor(1) as pool:  # each end asks the other for the key
        here = pool.submit(connect, str(listener.path))
        return listener.accept(lambda: True), here.result(), listener


def test_a_channel_waits_no_longer_than_it_is_told():
    ends = there, here, _ = connected()
    here.limit(0.05)
    with pytest.raises(TimeoutError, match="has not answered in time"):
        here.receive()
    here.limit(None)
    there.send([1, "two"])
    assert here.receive() == [1, "two"]
    for end in ends:
        end.close()


def test_who_does_not_know_the_key_is_not_listened_to():
    listener = Listener()
    folder = listener.path.parent
    assert folder.stat().st_mode & 0o777 == 0o700
    with ThreadPoolExecutor(1) as pool:
        (folder / "key").write_bytes(b"a guess")
        stranger = pool.submit(connect, str(listener.path))
        with pytest.raises(AuthenticationError):
            listener.accept(lambda: True)
        assert isinstance(stranger.exception(), AuthenticationError | OSError | EOFError)
    listener.close()
    assert not folder.exists()


def test_who_connects_and_says_nothing_is_not_waited_for():
    listener, silent = Listener(), socket.socket(socket.AF_UNIX)
    silent.connect(str(listener.path))
    with pytest.raises(TimeoutError, match=r"has said nothing for 0\.05 s"):
        listener.accept(lambda: True, 0.05)
    silent.close()
    listener.close()
