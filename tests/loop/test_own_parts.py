"""Steps, selections and topologies of a user's own, as objects and as what makes them."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from atomcast import Lasso, LocalCluster, Solver
from atomcast.domains import L1Ball
from atomcast.network.complete import Complete
from atomcast.network.star import Star
from atomcast.selection.rules import Rewording, Subset
from atomcast.steps import Step
from atomcast.steps.classic import LineSearch
from atomcast.steps.step import winner_vertex
from problems import regression, solve

X, Y = regression(2, d=30, n=20)
BALL = L1Ball(1.5)


class Counting(LineSearch):
    """Line search with a workspace that would spoil the next run."""

    def __init__(self, worn=0):
        self.worn = worn

    def advance(self, replica, agreement):
        assert self.worn == replica.round, "a run began with a workspace that was used before"
        self.worn += 1
        super().advance(replica, agreement)


class Halving(Step):
    """Only what must be said: half of the way to the winner, in every round."""

    def advance(self, replica, agreement):
        change = winner_vertex(replica, agreement) - replica.active.weights
        replica.active.move(change, 0.5)


@pytest.mark.parametrize("step", [Counting(), Counting, partial(Counting, 0)])
def test_each_run_has_a_fresh_workspace(step):
    solver = Solver(step, max_rounds=7)
    with pytest.warns(match="after 7 rounds"):
        models = [Lasso(1.5, cluster=3, solver=solver).fit(X, Y) for _ in range(2)]
    plain = solve(X, Y, BALL, step="line-search", max_rounds=7, fit_intercept=True)
    for model in models:
        np.testing.assert_allclose(model.coef_, plain.weights, atol=1e-12)
    with pytest.warns(match="after 7 rounds"):
        clone(models[0]).fit(X, Y)


def test_a_step_that_says_no_more_than_it_must():
    result = solve(X, Y, BALL, nodes=3, step=Halving, max_rounds=5)
    assert result.rounds == 5
    assert Halving.name == "Halving"
    assert result.ledger.by_kind()["proposal"].values > 0


@dataclass(frozen=True)
class FirstHalf(Subset):
    """The first half of each node's atoms."""

    def chooser(self, atoms, owner, sizes):
        return Half(owner)


class Half:
    def __init__(self, owner):
        self.radius = {}
        self.chosen = np.sort(
            np.concatenate(
                [np.flatnonzero(owner == i)[: max(1, sum(owner == i) // 2)] for i in set(owner)]
            )
        )

    def rows(self, round):
        return self.chosen


def test_a_selection_of_a_user_s_own():
    result = solve(X, Y, BALL, nodes=2, by="contiguous", selection=FirstHalf(), tol=1e-8)
    assert set(result.atom_ids.tolist()) <= {*range(5), *range(10, 15)}
    everything = solve(X, Y, BALL, tol=1e-8)
    assert result.objective - result.gap <= everything.objective <= result.objective


def test_a_selection_that_forgets_to_choose():
    class Forgetful(Subset):
        pass

    with pytest.raises(TypeError, match=r"Forgetful.* chooser"):
        Forgetful()


class TwoOfEach(Rewording):
    """No more than two atoms of each node in a round, whatever the loop would take."""

    def asked(self, request, nodes):
        return replace(request, count=min(request.count, 2))


def test_a_selection_that_asks_for_less():
    many = {"nodes": 2, "tol": 1e-8, "atoms_per_round": 8}
    few = solve(X, Y, BALL, selection=TwoOfEach(), **many)
    assert few.status == "optimal"
    assert max(few.trace.atoms[1:] - few.trace.atoms[:-1]) <= 4
    assert few.rounds > solve(X, Y, BALL, **many).rounds


@pytest.mark.parametrize("topology", [Complete(4), Complete, partial(Star)])
def test_a_topology_of_a_user_s_own(topology):
    cluster = LocalCluster(4, topology=topology)
    name = "complete" if "Star" not in repr(topology) else "star"
    for _ in range(2):
        result = solve(X, Y, BALL, nodes=4, cluster=cluster, tol=1e-6)
        ours = solve(X, Y, BALL, nodes=4, cluster=LocalCluster(4, topology=name), tol=1e-6)
        np.testing.assert_array_equal(result.weights, ours.weights)
        assert result.ledger.by_edge() == ours.ledger.by_edge()


def test_an_object_says_how_many_nodes_there_are():
    assert LocalCluster(topology=Complete(7)).nodes == 7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Solver(step="quick"), "step must be one of 'classic', .* got 'quick'"),
        (lambda: Solver(step=3), "or an atomcast.steps.Step of your own .* got 3"),
        (lambda: Solver(selection=3), "selection must be one of 'exact', .* got 3"),
        (lambda: LocalCluster(3, topology=5), "topology must be one of 'star', .* got 5"),
        (lambda: LocalCluster(3, topology=Complete(4)), "has 4 nodes, but the cluster has 3"),
        (lambda: LocalCluster(3, topology=lambda n: n), "makes 3 of 3 nodes, which is no"),
        (lambda: LocalCluster(3, Complete, broadcast="plain"), "leave broadcast out, got 'plain'"),
        (lambda: LocalCluster(3, Complete, latency=1.0), "leave latency and bandwidth out"),
        (lambda: LocalCluster(3, Complete, asynchronous=True), "needs a coordinator"),
        (lambda: solve(X, Y, BALL, step=lambda: 3), "makes 3, which is no atomcast.steps.Step"),
    ],
)
def test_parts_that_are_none(make, message):
    with pytest.raises(ValueError, match=message):
        make()
