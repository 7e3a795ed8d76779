"""Ray actors keep the contract of a cluster, and come back when they are lost."""

from __future__ import annotations

import gc
import logging
import os
import random
import signal
import socket
import threading
import time

import numpy as np
import psutil
import pytest

import bounded
import liars
from atomcast import KernelSVC, Lasso, RayCluster, Shards, Solver, StructuredSVM
from atomcast.data._files import FileShards
from cluster import model_cases, resume_cases
from cluster.contract import (
    CASES,
    assert_same_result,
    examples_of,
    fitted,
    parts_of,
    simulated,
)
from patience import PATIENCE, wait_until
from problems import regression

pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray")]

SIZES = (1, 2, 4)


@pytest.fixture(scope="module")
def cluster_of(ray):
    """One cluster of each size: its actors serve all tests."""
    clusters = {nodes: RayCluster(nodes, patience=PATIENCE) for nodes in SIZES}
    for module in (bounded, liars):  # nodes do not find the modules of tests
        ray.cloudpickle.register_pickle_by_value(module)
    yield clusters.__getitem__
    for cluster in clusters.values():
        cluster.close()


@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_contract(name, nodes, cluster_of, contract_folder):
    CASES[name](cluster_of, nodes)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name", resume_cases.CASES)
def test_interrupted_runs(name, nodes, cluster_of, contract_folder):
    resume_cases.CASES[name](cluster_of, nodes)


@pytest.mark.parametrize("name", model_cases.CASES)
def test_models(name, cluster_of):
    model_cases.CASES[name](cluster_of, 2)


def test_the_command_line_goes_on_from_a_checkpoint(cluster_of, tmp_path, monkeypatch):
    for nodes in SIZES:
        cluster_of(nodes).close()  # it needs room for clusters of its own
    resume_cases.on_the_command_line("ray", tmp_path, monkeypatch)
    gc.collect()  # the actors of clusters that nobody refers to any more end
    wait_until(lambda: not actors(), "actors were left behind")


def actors():
    """The processes of all nodes on this machine."""
    me = psutil.Process()
    found = []
    for process in me.children(recursive=True):
        try:
            named = "RayNode" in process.name() or "RayNode" in " ".join(process.cmdline())
            if named and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def killed_one(processes):
    """Kill the first of some processes that is still there; whether there was one."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
        wait_until(lambda process=process: process not in actors(), "an actor survived")
        return True
    return False


@pytest.mark.parametrize("step", ["line-search", "corrective"])
def test_a_killed_actor_comes_back_and_the_answer_is_the_same(step, cluster_of, caplog):
    caplog.set_level(logging.INFO, "atomcast.cluster.ray.ray_session")
    for nodes in SIZES:
        cluster_of(nodes).close()  # whoever is killed is to be one of two
    wait_until(lambda: not actors(), "actors were left behind")
    X, y = regression(seed=1, d=40, n=60)
    killed = []

    def kill(state):
        if state.round in (2, 5) and state.round not in killed:
            killed.append(state.round)
            wait_until(lambda: killed_one(actors()), "there is no actor to kill")

    how = {"step": step, "tol": 1e-9, "max_rounds": 9, "atoms_per_round": 1}
    result = fitted(X, y, cluster_of(2), callbacks=[kill], **how).result_
    assert killed == [2, 5]
    told = [record.getMessage() for record in caplog.records]
    assert [line.partition(" on ")[0] for line in told[:2]] == ["node 0 of 2", "node 1 of 2"]
    assert [line.partition(" is ")[2][:4] for line in told[2:]] == ["lost", "back"] * 2
    assert_same_result(result, fitted(X, y, simulated(2), **how).result_)


def test_a_killed_actor_takes_its_own_block_steps_once_more(cluster_of):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=40)
    X = np.eye(3)[y] + rng.standard_normal((40, 3))
    killed = []

    def kill(state):
        if state.round == 3 and not killed:
            killed.append(wait_until(lambda: killed_one(actors()), "there is no actor to kill"))

    def fit(cluster, *callbacks):
        solver = Solver("block-coordinate", tol=1e-3, callbacks=callbacks)
        return StructuredSVM(cluster=cluster, solver=solver).fit(X, y)

    for nodes in SIZES:
        cluster_of(nodes).close()
    model, expected = fit(cluster_of(2), kill), fit(simulated(2))
    assert killed
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.passes_ == expected.passes_


def test_actors_that_are_killed_again_and_again_at_any_moment(cluster_of):
    """A thread kills one of them five times, whatever they are doing at that moment."""
    X, y = regression(seed=8, d=40, n=60)
    chance, kills, done = random.Random(0), [], threading.Event()
    reached = threading.Semaphore(0)  # how many rounds there were since the last kill

    def kill():
        while len(kills) < 5:
            reached.acquire()  # the run has survived the last one
            time.sleep(chance.uniform(0.0, 0.03))
            alive = actors()
            if done.is_set():
                return
            if alive:
                os.kill(chance.choice(alive).pid, signal.SIGKILL)
                kills.append(time.monotonic())
                while reached.acquire(blocking=False):
                    pass

    def enough(rounds):
        reached.release()  # an attempt that found nobody alive is made again
        return len(kills) >= min(rounds // 8, 5)

    def watch(state):
        reached.release()
        # The run must not end before it was disturbed often enough.
        wait_until(lambda: enough(state.round), "nobody was killed")

    how = {"beta": 8.0, "step": "pairwise", "tol": 1e-9, "max_rounds": 45}
    cluster_of(2).close()
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        result = fitted(X, y, cluster_of(2), callbacks=[watch], **how).result_
    finally:
        done.set()
        reached.release()
        killer.join()
    assert len(kills) == 5
    assert_same_result(result, fitted(X, y, simulated(2), **how).result_)


def test_an_actor_that_dies_before_it_sends_its_atom(cluster_of, monkeypatch):
    """The winner's owner is gone after the proposals, when its atom is asked for."""
    from atomcast.cluster.ray.ray_session import RaySession

    X, y = regression(seed=2, d=40, n=60)
    cast, lost = RaySession.cast, []

    def cast_after_a_loss(session, replica, agreement):
        if replica.round == 3:
            owner = int(agreement.owner[0])
            lost.append(owner)
            os.kill(sorted(actors(), key=lambda p: p.create_time())[owner].pid, signal.SIGKILL)
        return cast(session, replica, agreement)

    monkeypatch.setattr(RaySession, "cast", cast_after_a_loss)
    how = {"step": "corrective", "tol": 1e-9, "max_rounds": 6, "atoms_per_round": 1}
    cluster = RayCluster(2)
    cluster_of(2).close()  # so that the actors of this test are the only ones
    cluster_of(1).close()
    cluster_of(4).close()
    result = fitted(X, y, cluster, **how).result_
    cluster.close()
    assert lost
    monkeypatch.undo()
    assert_same_result(result, fitted(X, y, simulated(2), **how).result_)


def test_idle_actors_that_died_are_replaced(cluster_of):
    X, y = regression(seed=3)
    expected = fitted(X, y, simulated(2)).result_
    cluster = cluster_of(2)
    assert_same_result(fitted(X, y, cluster).result_, expected)
    for process in actors():
        killed_one([process])
    assert_same_result(fitted(X, y, cluster).result_, expected)


def test_a_failing_callback_leaves_the_cluster_usable(cluster_of):
    X, y = regression(seed=4)

    def fail(state):
        raise ZeroDivisionError("the callback is to blame")

    with pytest.raises(ZeroDivisionError, match="to blame"):
        fitted(X, y, cluster_of(2), callbacks=[fail])
    assert_same_result(fitted(X, y, cluster_of(2)).result_, fitted(X, y, simulated(2)).result_)


def test_row_ids_that_differ_are_found_by_the_nodes(cluster_of, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = regression(seed=5, d=8, n=4)
    for i in range(2):
        frame = pandas.DataFrame(X[:, 2 * i : 2 * i + 2], columns=[f"x{2 * i}", f"x{2 * i + 1}"])
        frame.insert(0, "row_id", range(8) if i == 0 else range(8, 0, -1))
        frame.to_csv(tmp_path / f"part-{i}.csv", index=False)
    shards = Shards.files([tmp_path / "part-0.csv", tmp_path / "part-1.csv"])
    with pytest.raises(ValueError, match=r"shard 1 \(part-1\.csv\): its row ids differ"):
        fitted(shards, y, cluster_of(2))


def test_what_no_machine_offers_is_refused_in_time(ray):
    cluster = RayCluster(2, resources=[{}, {"a_moon": 1}], patience=2.0)
    with pytest.raises(RuntimeError, match=r"node .*1 found no place within 2 s.*a_moon"):
        Lasso(cluster=cluster).fit(*regression(seed=6))


def test_an_address_that_does_not_answer(ray):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    ray.shutdown()
    for given in (address, f"ray://{address}"):
        with pytest.raises(ConnectionError, match=rf"no Ray cluster answers at address='{given}'"):
            Lasso(cluster=RayCluster(2, address=given)).fit(*regression(seed=7))
    with pytest.raises(ValueError, match="address must be"):
        RayCluster(2, address="nowhere").connect()


def test_a_cluster_that_asks_for_a_token(ray, monkeypatch, capfd):
    """One line says what to do, instead of those that Ray writes while it tries again."""
    from ray import _raylet

    def refuse(address):
        os.write(2, b"Failed to get cluster ID: Unauthenticated")
        raise ray.exceptions.AuthenticationError("InvalidAuthToken")

    monkeypatch.setattr(_raylet, "GcsClient", refuse)
    ray.shutdown()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(ConnectionError, match="asks for a token: set RAY_AUTH_MODE") as caught:
            Lasso(cluster=RayCluster(2, address=address)).fit(*regression(seed=7))
    assert caught.value.__suppress_context__  # no traceback of Ray's before it
    assert capfd.readouterr().err == ""


def test_machines_where_the_data_is_and_one_that_is_removed(ray, contract_folder, monkeypatch):
    """Two Ray nodes on this machine; one is taken away in the middle of a run."""
    from ray.cluster_utils import Cluster

    ray.shutdown()
    machines = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "resources": {"site_a": 2}}
    )
    try:
        second = machines.add_node(num_cpus=2, resources={"site_b": 2})
        ray.init(address=machines.address, log_to_driver=False, logging_level="ERROR")
        machines.wait_for_nodes()
        check_placement(ray, monkeypatch)
        ids = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        other = next(n["NodeID"] for n in ray.nodes() if "site_b" in n["Resources"])
        first = (ids - {other}).pop()
        X, y = regression(seed=1, d=40, n=60)
        removed = []

        def remove(state):
            if state.round == 3 and not removed:
                removed.append(True)
                machines.remove_node(second)

        how = {"step": "classic", "tol": 1e-9, "max_rounds": 8}
        cluster = RayCluster(2, cpus=0.5, node_ids=[first, other], patience=90.0)
        shards = Shards.files(parts_of(X, 2))
        result = fitted(shards, y, cluster, callbacks=[remove], **how).result_
        assert removed
        assert result.rounds > 3
        assert_same_result(result, fitted(shards, y, simulated(2), **how).result_)
    finally:
        ray.shutdown()
        machines.shutdown()


def check_placement(ray, monkeypatch):
    """Files that only the nodes can read are described by them, each where it should run."""
    X, y = regression(seed=9, d=20, n=12)
    shards = Shards.files(parts_of(X, 2))
    expected = fitted(shards, y, simulated(2)).result_
    examples, labels = Shards.files(examples_of(X, 2)), np.arange(len(X)) % 2
    expected_machine = KernelSVC(cluster=2).fit(examples, labels).result_
    homes = [
        next(node["NodeID"] for node in ray.nodes() if site in node["Resources"])
        for site in ("site_b", "site_a")
    ]

    def node_id():
        import ray

        return ray.get_runtime_context().get_node_id()

    for how in ({"resources": [{"site_b": 1}, {"site_a": 1}]}, {"node_ids": homes}):
        cluster = RayCluster(2, cpus=0.5, **how)
        with monkeypatch.context() as patch:
            patch.setattr(FileShards, "within_reach", lambda shards: False)
            patch.setattr(FileShards, "infos", property(unreadable))
            model = fitted(shards, y, cluster)
            machine = KernelSVC(cluster=cluster).fit(examples, labels)
        assert_same_result(model.result_, expected)
        assert_same_result(machine.result_, expected_machine)
        where = [a.__ray_call__.remote(lambda _: node_id()) for a in cluster._idle]
        assert ray.get(where) == homes
        with pytest.raises(FileNotFoundError, match=r"no file .*(nowhere|nor-here)\.npy"):
            fitted(Shards.files(["nowhere.npy", "nor-here.npy"]), y, cluster)
        cluster.close()


def unreadable(shards):
    """This process has no infos but those that were given to it."""
    return shards.__dict__["infos"]
