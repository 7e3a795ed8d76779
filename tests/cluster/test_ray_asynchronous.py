"""Ray actors at their own pace: true certificates, also when actors are lost on the way."""

from __future__ import annotations

import os
import signal

import numpy as np
import psutil
import pytest
from sklearn.datasets import make_classification

from atomcast import (
    Checkpoint,
    Faults,
    KernelSVC,
    LocalCluster,
    RayCluster,
    Shards,
    Solver,
    SparseLogisticRegression,
    lasso_path,
)
from atomcast.cluster.ray.actor import Start
from atomcast.cluster.ray.asynchronous_actor import AsynchronousRayNode
from atomcast.cluster.slowdown import Slowdown, slowdown_of
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.loop.replica import Tolerance
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.selection.rules import EXACT
from atomcast.steps import STEPS
from certificates import assert_certified, assert_sent_once, lasso_problem, true_gap
from cluster.contract import CASES, fitted
from problems import mixture, optimum, regression, solve

pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray")]

NODES = 4


@pytest.fixture(scope="module")
def cluster(ray):
    """One cluster whose actors serve all tests; its last node is 5 times slower."""
    cluster = RayCluster(NODES, asynchronous=True, compute=2e-4, faults=Faults(slow={3: 5.0}))
    yield cluster
    cluster.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sparse_data", [False, True])
def test_a_run_ends_with_a_true_certificate(seed, sparse_data, cluster):
    X, y, beta, best = lasso_problem(seed, sparse_data=sparse_data)
    shards = Shards.split(X, NODES, by=[[15] * 4, [0, 40, 10, 10], [5, 5, 10, 40]][seed])
    result = solve(shards, y, L1Ball(beta), cluster=cluster, tol=1e-6)
    assert_certified(result, X, y, beta, best, 1e-6)
    assert_sent_once(result)


def test_the_account_is_that_of_the_simulation(cluster):
    """Every atom goes up once and down to all others, as on simulated nodes."""
    X, y, beta, _ = lasso_problem(3)
    for where in (cluster, LocalCluster(NODES, asynchronous=True)):
        ledger = solve(X, y, L1Ball(beta), nodes=NODES, cluster=where, tol=1e-6).ledger
        kinds = ledger.by_kind()
        assert kinds["atom"].values == NODES * sum(d.values for d in ledger.disclosures)
        assert kinds["index"].values >= (1 + NODES) * ledger.atoms_sent
        assert kinds["control"].values == 0


def test_ctrl_c_ends_a_run_with_a_true_certificate(cluster):
    X, y, beta, _ = lasso_problem(4)

    def press(state):
        if state.round == 1:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        how = {"tol": 1e-9, "atoms_per_round": 1, "callbacks": [press]}
        result = solve(X, y, L1Ball(beta), nodes=NODES, cluster=cluster, **how)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.status, result.rounds) == ("interrupted", 1)
    np.testing.assert_allclose(result.gap, true_gap(X, y, result.weights, beta), rtol=1e-6)


def test_a_simplex(cluster):
    X, y = mixture(4, d=25, n=60)
    result = solve(X, y, Simplex(), nodes=NODES, cluster=cluster, tol=1e-6)
    best, _ = optimum(X, y, Simplex())
    assert result.status == "optimal"
    assert -1e-9 <= result.objective - best <= result.gap + 1e-9


@pytest.mark.parametrize("model", [SparseLogisticRegression(beta=4.0), KernelSVC()])
def test_other_models_are_as_good_as_in_step(model, cluster):
    X, y = make_classification(120, 20, n_informative=6, random_state=0)
    model.set_params(solver=Solver(tol=1e-4))
    plain, free = (
        model.set_params(cluster=where).fit(X, y).result_
        for where in (LocalCluster(NODES), cluster)
    )
    assert free.status == "optimal"
    assert abs(free.objective - plain.objective) <= max(free.gap, plain.gap)


def test_a_path_with_warm_starts(cluster):
    X, y = regression(5, d=40, n=60)
    betas = [0.5, 1.0, 3.0]
    path = lasso_path(X, y, betas=betas, fit_intercept=False, cluster=cluster)
    for beta, result in zip(betas, path.results, strict=True):
        assert_certified(result, X, y, beta, optimum(X, y, L1Ball(beta))[0], 1e-4)
    assert_sent_once(path.results[-1])


@pytest.mark.parametrize("begun_on", ["simulated", "ray"])
def test_an_interrupted_run_goes_on_to_a_true_certificate(begun_on, cluster, tmp_path):
    X, y, beta, best = lasso_problem(5)
    path = tmp_path / "run.checkpoint"
    where = cluster if begun_on == "ray" else LocalCluster(NODES)
    first = solve(
        X, y, L1Ball(beta), nodes=NODES, cluster=where, tol=1e-6, max_rounds=3,
        callbacks=[Checkpoint(path, rounds=1)],
    )  # fmt: skip
    assert first.relative_gap > 1e-6
    result = solve(X, y, L1Ball(beta), nodes=NODES, cluster=cluster, tol=1e-6, resume=path)
    assert_certified(result, X, y, beta, best, 1e-6)
    assert result.rounds > 3
    assert result.trace.round[0] == 3


def test_a_run_that_is_cut_short_still_has_a_true_gap(cluster):
    X, y, beta, best = lasso_problem(6)
    result = solve(X, y, L1Ball(beta), nodes=NODES, cluster=cluster, tol=1e-9, max_rounds=3)
    assert result.status == "max_rounds"
    assert result.gap == pytest.approx(true_gap(X, y, result.weights, beta))
    assert result.objective - best <= result.gap


def actors():
    """The processes of all nodes on this machine."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "AsynchronousRayNode" in " ".join([process.name(), *process.cmdline()]):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def test_killed_actors_come_back_and_the_certificate_is_true(cluster):
    X, y, beta, best = lasso_problem(7)
    killed = []
    rng = np.random.default_rng(7)

    def kill(state):
        if state.round in (2, 5, 9) and state.round not in killed:
            killed.append(state.round)
            alive = actors()  # one that was killed before may not be back yet
            os.kill(alive[rng.integers(len(alive))].pid, signal.SIGKILL)

    how = {"callbacks": [kill], "atoms_per_round": 1, "tol": 1e-6}
    result = solve(X, y, L1Ball(beta), nodes=NODES, cluster=cluster, **how)
    assert len(killed) == 3
    assert_certified(result, X, y, beta, best, 1e-6)
    assert_sent_once(result)


def test_a_checkpoint_does_not_wait_for_the_slowest(cluster, monkeypatch, tmp_path):
    X, y, beta, _ = lasso_problem(1)
    busy = []
    from atomcast.cluster.ray.asynchronous_session import AsynchronousRaySession

    ask_all = AsynchronousRaySession.fingerprint

    def watched(self):
        if self._fingerprint is None:
            busy.append(len(self._under_way))
        return ask_all(self)

    monkeypatch.setattr(AsynchronousRaySession, "fingerprint", watched)
    path = tmp_path / "run.safetensors"
    solve(X, y, L1Ball(beta), nodes=NODES, cluster=cluster, callbacks=[Checkpoint(path, rounds=1)])
    assert busy == [0]
    assert path.exists()
    solve(X, y, L1Ball(beta), nodes=NODES, cluster=cluster)
    assert busy == [0]  # who writes no checkpoint needs no fingerprint


def test_a_node_that_has_lost_its_shortlist_says_so_instead_of_failing():
    """As it happens to an owner that is lost, and restored, while it hands out its atoms."""
    X, y, beta, _ = lasso_problem(0)
    problem = explicit_problem(SquaredError(y), L1Ball(beta))
    sizes = np.array([X.shape[1]])
    start = Start(problem, STEPS["corrective"](), Tolerance(1e-6), EXACT, 4, np.zeros(0), sizes)
    node = AsynchronousRayNode(0, 1, 1)
    node.load(problem, Shards.split(X, 1).shard(0, 1), X.shape[1])
    assert node.work((0, 0), start, "check", False, []) is None
    assert node.work((0, 0), start, "scan", False, []) is not None
    assert node.work((0, 0), None, "check", False, []) is not None


@pytest.mark.parametrize(
    "name",
    [
        "the_optimum_that_scikit_learn_finds",
        "a_value_that_is_not_finite",
        "a_target_of_another_length",
        "another_number_of_shards",
    ],
)
def test_contract(name, cluster):
    """The cases of the contract that do not ask for the same account as in step."""
    CASES[name](lambda nodes: cluster, NODES)


def test_one_node(ray):
    X, y, beta, best = lasso_problem(8)
    cluster = RayCluster(1, asynchronous=True)
    result = solve(X, y, L1Ball(beta), cluster=cluster, tol=1e-6)
    cluster.close()
    assert_certified(result, X, y, beta, best, 1e-6)


def test_what_is_refused(cluster):
    X, y = regression(9)
    with pytest.raises(ValueError, match="step='pairwise' depends on the order"):
        fitted(X, y, cluster, step="pairwise")
    with pytest.raises(ValueError, match="leaves atoms out"):
        fitted(X, y, cluster, selection="random-subset")
    with pytest.raises(ValueError, match="more than slow nodes"):
        RayCluster(2, faults=Faults(loss=0.5))
    with pytest.raises(ValueError, match="staleness must be"):
        RayCluster(2, asynchronous=True, staleness=-1)
    with pytest.raises(ValueError, match="compute must be"):
        RayCluster(2, compute=-1.0)


def test_how_slow_nodes_are_made(monkeypatch):
    slept = []
    monkeypatch.setattr("atomcast.cluster.slowdown.time.sleep", slept.append)
    Slowdown(compute=0.5, factor=4.0).sleep(spent=1.0, atoms=10)  # the model asks for 5 s, times 4
    Slowdown(compute=0.0, factor=4.0).sleep(spent=1.0, atoms=10)  # what it took, times 4
    Slowdown(compute=0.01).sleep(spent=1.0, atoms=10)  # it took longer than the model asks for
    assert slept == [19.0, 3.0, 0.0]
    assert slowdown_of(0, None, Faults(slow={1: 3.0})) is None
    assert slowdown_of(1, None, Faults(slow={1: 3.0})) == Slowdown(0.0, 3.0)
