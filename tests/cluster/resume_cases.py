"""Interrupted runs on every cluster: each case is written once and run on all of them.

As in `contract`, a case takes `cluster_of` and a number of nodes, and on MPI all ranks run it.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from atomcast import (
    Checkpoint,
    LassoCV,
    LocalCluster,
    MCenters,
    RandomSubset,
    Shards,
    Solver,
    lasso_path,
)
from atomcast.domains.balls import L1Ball
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.storage.snapshot import read_checkpoint, write_checkpoint
from cluster.contract import assert_same_result, simulated
from problems import regression, sparse_regression

CASES = {}
HOW = {"tol": 1e-7, "max_rounds": 40, "atoms_per_round": 2}


def case(function):
    CASES[function.__name__] = function
    return function


def common(name, nodes):
    """A file that all ranks of a job know."""
    return folder() / f"{name}-{nodes}.safetensors"


def own(name):
    """A file of this process alone: ranks that simulate the same run must not share one."""
    return folder() / f"{name}-{os.getpid()}.safetensors"


def folder():
    place = Path(os.environ["ATOMCAST_CONTRACT_FOLDER"], "checkpoints")
    place.mkdir(exist_ok=True)
    return place


def solved(X, y, cluster, nodes, beta=2.0, **solver):
    problem = explicit_problem(SquaredError(y), L1Ball(beta))
    shards = X if isinstance(X, Shards) else Shards.split(X, nodes)
    return Solver(**HOW | solver).solve(problem, shards, cluster)


def assert_resumed(result, whole, first):
    """The end of an uninterrupted run, from the round on where it was interrupted."""
    assert (result.rounds, result.status) == (whole.rounds, whole.status)
    np.testing.assert_array_equal(result.atom_ids, whole.atom_ids)
    np.testing.assert_allclose(result.weights, whole.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.objective, whole.objective, rtol=1e-9)
    np.testing.assert_allclose(result.gap, whole.gap, rtol=1e-6, atol=1e-9 * whole.objective)
    assert result.trace.round.tolist() == list(range(first, whole.rounds + 1))


@case
def stopped_and_resumed_with_several_steps(cluster_of, nodes):
    X, y = regression(seed=31, d=30, n=60)
    for step in ("corrective", "pairwise", "classic"):
        path = common(f"step-{step}", nodes)
        whole = solved(X, y, simulated(nodes), nodes, step=step)
        stop = {"step": step, "callbacks": [Checkpoint(path, rounds=2)]}
        stopped = solved(X, y, cluster_of(nodes), nodes, **stop | {"max_rounds": 3})
        assert_same_result(stopped, solved(X, y, simulated(nodes), nodes, step=step, max_rounds=3))
        resumed = solved(X, y, cluster_of(nodes), nodes, step=step, resume=path)
        assert_resumed(resumed, whole, 3)
        again = [d.atom for d in resumed.ledger.disclosures if d.round == 3]
        assert nodes == 1 or set(read_checkpoint(path).ids.tolist()) <= set(again)


@case
def from_a_simulation_to_this_cluster_and_back(cluster_of, nodes):
    X, y = sparse_regression(seed=32, d=60, n=120)
    there, back = common("there", nodes), common("back", nodes)
    whole = solved(X, y, LocalCluster(3), 3, 5.0, tol=1e-9)
    assert whole.rounds > 6
    local = own("local")
    solved(X, y, LocalCluster(3), 3, 5.0, max_rounds=2, callbacks=[Checkpoint(local)])
    write_once(there, local)
    how = {"tol": 1e-9, "resume": there}
    stop = {"callbacks": [Checkpoint(back)], "max_rounds": 4}
    assert solved(X, y, cluster_of(nodes), nodes, 5.0, **how | stop).rounds == 4
    how["resume"] = back
    assert_resumed(solved(X, y, cluster_of(nodes), nodes, 5.0, **how), whole, 4)
    assert_resumed(solved(X, y, LocalCluster(5), 5, 5.0, **how), whole, 4)


@case
def stopped_and_resumed_at_a_point_that_was_told(cluster_of, nodes):
    X, y = regression(seed=3, d=60, n=200, support=100)
    for step in ("compound", "auto"):
        path, local = common(f"told-{step}", nodes), own(f"told-{step}")
        how = {"step": step, "tol": 1e-6, "atoms_per_round": "auto"}
        whole = solved(X, y, simulated(nodes), nodes, 20.0, **how)
        stop = {"max_rounds": 3 if step == "compound" else 2}
        stop["callbacks"] = [Checkpoint(path)]
        here = solved(X, y, cluster_of(nodes), nodes, 20.0, **how | stop)
        stop["callbacks"] = [Checkpoint(local)]
        there = solved(X, y, LocalCluster(3), 3, 20.0, **how | stop)
        write_once(common(f"from-{step}", nodes), local)
        assert nodes == 1 or "mixed.ids" in read_checkpoint(path).memory
        for start, stopped in ((path, here), (common(f"from-{step}", nodes), there)):
            assert stopped.status == "max_rounds"
            resumed = solved(X, y, cluster_of(nodes), nodes, 20.0, resume=start, **how)
            assert resumed.status == "optimal"
            assert resumed.trace.objective[0] <= stopped.trace.objective[-2]
            np.testing.assert_allclose(resumed.objective, whole.objective, rtol=2e-6)


def write_once(path, source):
    """Put a copy of a file in its place, as every rank does with the same content."""
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(source.read_bytes())
    part.replace(path)


@case
def a_finished_run_goes_on_to_a_tighter_tolerance(cluster_of, nodes):
    X, y = regression(seed=33, d=30, n=60)
    path = common("finished", nodes)
    callbacks = [Checkpoint(path)]
    assert solved(X, y, cluster_of(nodes), nodes, tol=0.3, callbacks=callbacks).status == "optimal"
    result = solved(X, y, cluster_of(nodes), nodes, resume=path)
    exact = solved(X, y, simulated(nodes), nodes)
    assert result.status == "optimal"
    np.testing.assert_allclose(result.weights, exact.weights, atol=1e-7)


SELECTIONS = ("random-violators", RandomSubset(0.5, seed=3), RandomSubset(), MCenters(0.4))


@case
def selections_across_an_interruption(cluster_of, nodes):
    X, y = regression(seed=34, d=40, n=80, support=20)
    # Shares of different size, so that a node must know the others' for equal work.
    X = Shards.split(X, nodes, by=[80 - 15 * (nodes - 1)] + [15] * (nodes - 1))
    for i, selection in enumerate(SELECTIONS):
        path = common(f"selection-{i}", nodes)
        how = {"selection": selection, "beta": 6.0, "max_rounds": 12}
        whole = solved(X, y, simulated(nodes), nodes, **how)
        assert whole.rounds > 3
        assert_same_result(solved(X, y, cluster_of(nodes), nodes, **how), whole)
        stop = {"callbacks": [Checkpoint(path)], "max_rounds": 3}
        solved(X, y, cluster_of(nodes), nodes, **how | stop)
        assert_resumed(solved(X, y, cluster_of(nodes), nodes, resume=path, **how), whole, 3)


@case
def checkpoints_that_do_not_fit(cluster_of, nodes):
    X, y = regression(seed=35, d=30, n=60)
    path, damaged = common("fits", nodes), common("damaged", nodes)
    solved(X, y, cluster_of(nodes), nodes, max_rounds=2, callbacks=[Checkpoint(path)])
    given = {"X": X, "y": y, "nodes": nodes, "resume": path}
    whole = solved(X, y, simulated(nodes), nodes)
    # After this, rank 0 has written it for sure.
    assert_resumed(solved(**given, cluster=cluster_of(nodes)), whole, 2)
    other = X.copy()
    other[3, 40] = np.nextafter(other[3, 40], np.inf)
    broken = own("broken")
    broken.write_bytes(path.read_bytes()[:-1])
    write_once(damaged, broken)
    foreign, snapshot = common("foreign", nodes), read_checkpoint(path)
    snapshot.ids[0] = 60
    write_checkpoint(own("foreign"), snapshot)
    write_once(foreign, own("foreign"))
    for kind, message, how in (
        (FileNotFoundError, "there is no file", {"resume": common("nowhere", nodes)}),
        (ValueError, "no checkpoint file, or is damaged", {"resume": damaged}),
        (ValueError, "checkpoint of other data", {"X": other}),
        (ValueError, "checkpoint of another problem", {"beta": 2.5}),
        (ValueError, "step='corrective', but this run has step='away'", {"step": "away"}),
        (ValueError, "has an atom 60, which no node holds", {"resume": foreign}),
    ):
        with pytest.raises(kind, match=message):
            solved(**{**given, **how}, cluster=cluster_of(nodes))


def on_the_command_line(engine, folder, monkeypatch):
    """`atomcast fit` with an engine goes on from its own checkpoint, and that of another."""
    from typer.testing import CliRunner

    from atomcast import load_model
    from atomcast.cli import app

    monkeypatch.chdir(folder)
    X, y = regression(seed=36, d=30, n=60)
    np.save("X.npy", X)
    np.save("y.npy", y)
    fit = ["fit", "lasso", "X.npy", "--target", "y.npy", "--beta", "3", "--tol", "1e-9", "--quiet"]

    def run(*options):
        done = CliRunner().invoke(app, [*fit, *options, "--out", "m.safetensors"])
        assert done.exit_code == 0, done.output
        return load_model("m.safetensors")

    whole = run()
    there = ("--engine", engine, "--nodes", "2")
    run(*there, "--checkpoint", "c.safetensors", "--checkpoint-rounds", "1", "--max-rounds", "2")
    assert read_checkpoint("c.safetensors").round == 2
    for options in ((*there, "--resume", "c.safetensors"), ("--resume", "c.safetensors")):
        resumed = run(*options)
        np.testing.assert_allclose(resumed.coef_, whole.coef_, rtol=0, atol=1e-9)
        assert resumed.certificate_.rounds == whole.certificate_.rounds > 2
    done = CliRunner().invoke(app, [*fit, *there, "--resume", "nowhere.safetensors"])
    assert done.exit_code == 2
    assert "there is no file nowhere.safetensors" in done.output


class KeptAt(Checkpoint):
    """A checkpoint of every round, of which one is kept as if the program had ended there."""

    def __init__(self, path, kept, at):
        super().__init__(path, rounds=1)
        self.kept, self.at, self.count = kept, at, 0

    def _write(self, state):
        super()._write(state)
        self.count += 1
        if state.speaks and self.count == self.at:
            write_once(self.kept, self.path)


@case
def a_path_goes_on_from_the_problem_that_it_was_at(cluster_of, nodes):
    X, y = regression(seed=36, d=30, n=24)
    betas, path = [0.5, 2.0, 6.0], common("path", nodes)
    whole = lasso_path(X, y, betas=betas, cluster=simulated(nodes))
    at = whole.results[0].rounds + 2
    watch = [KeptAt(common("path-all", nodes), path, at)]
    lasso_path(X, y, betas=betas, cluster=cluster_of(nodes), solver=Solver(callbacks=watch))
    assert len(read_checkpoint(path).finished) == 1
    how = {"betas": betas, "solver": Solver(resume=path)}
    resumed = lasso_path(X, y, cluster=cluster_of(nodes), **how)
    np.testing.assert_allclose(resumed.coefs, whole.coefs, rtol=0, atol=1e-9)
    np.testing.assert_allclose(resumed.intercepts, whole.intercepts)
    assert [one.rounds for one in resumed.results] == [one.rounds for one in whole.results]


@case
def cross_validation_goes_on_from_the_fold_that_it_was_at(cluster_of, nodes):
    X, y = regression(seed=37, d=30, n=24)
    settings, path, local = {"betas": [0.5, 2.0], "cv": 2}, common("cv", nodes), own("cv")
    watch = KeptAt(own("cv-all"), local, -1)
    whole = LassoCV(**settings, solver=Solver(callbacks=[watch])).fit(X, y)
    watch.at, watch.count = watch.count - 2, 0
    LassoCV(**settings, solver=Solver(callbacks=[watch])).fit(X, y)
    assert any(name.startswith("losses") for name in read_checkpoint(local).notes)
    write_once(path, local)
    model = LassoCV(**settings, cluster=cluster_of(nodes), solver=Solver(resume=path)).fit(X, y)
    np.testing.assert_allclose(model.mse_path_, whole.mse_path_, rtol=1e-7)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-9)
