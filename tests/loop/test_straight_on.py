"""A path of one who is alone goes on as it has: the same solutions, from nearer by."""

import numpy as np
import pytest

from atomcast import LocalCluster, Shards, Solver
from atomcast.domains.balls import L1Ball, Simplex, SolidSimplex
from atomcast.loop.replica import Replica, Tolerance
from atomcast.objectives import Logistic, SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import as_cluster
from atomcast.steps import Corrective
from problems import optimum, sparse_regression


def after(trail, radius, domain=L1Ball):
    """A replica of a radius, after some others."""
    problem = explicit_problem(SquaredError(np.ones(3)), domain(radius))
    replica = Replica(problem, Corrective(), Tolerance(1e-4))
    replica.trail = tuple((beta, np.array(weights)) for beta, weights in trail)
    return replica


def test_weights_go_on_in_a_straight_line():
    trail = [(1.0, [1.0, 0.0]), (2.0, [1.3, 0.3, 0.0, -0.4])]
    expected = [1.45, 0.45, 0.0, -0.6]
    np.testing.assert_allclose(after(trail, 2.5).straight_on(), expected)
    np.testing.assert_allclose(after(trail, 2.5, SolidSimplex).straight_on(), expected)


def test_what_comes_to_zero_stays_there_within_the_ball():
    trail = [(1.0, [0.9, 0.1]), (2.0, [0.3, 1.7])]
    there = after(trail, 3.0).straight_on()
    np.testing.assert_allclose(there, [0.0, 3.0])


@pytest.mark.parametrize("trail", [[], [(1.0, [1.0])], [(2.0, [1.0]), (1.0, [1.0])]])
def test_without_a_way_that_leads_out_there_is_none(trail):
    assert after(trail, 3.0).straight_on() is None
    there = [(1.0, [1.0]), (4.0, [1.0])]
    assert after(there, 3.0).straight_on() is None
    simplex = explicit_problem(SquaredError(np.ones(3)), Simplex())
    replica = Replica(simplex, Corrective(), Tolerance(1e-4))
    replica.trail = ((0.1, np.ones(1)), (0.2, np.ones(1)))
    assert replica.straight_on() is None


@pytest.mark.parametrize("objective", ["squares", "logistic"])
def test_solutions_are_certified_and_take_no_more_rounds(objective, monkeypatch):
    X, y = sparse_regression(seed=3, d=80, n=400)
    loss = SquaredError(y) if objective == "squares" else Logistic(np.where(y > 0, 1.0, -1.0))
    betas = [0.5, 1.0, 1.5, 2.0, 3.0, 500.0]  # the last one is far off
    shards = Shards.split(X, 1)

    def solved():
        problems = (explicit_problem(loss, L1Ball(beta)) for beta in betas)
        return list(Solver(tol=1e-6).solve_path(problems, shards, as_cluster(None), straight=True))

    straight = solved()
    monkeypatch.setattr(Replica, "straight_on", lambda self: None)
    usual = solved()
    for one, other, beta in zip(straight, usual, betas, strict=True):
        assert one.status == "optimal"
        assert np.abs(one.atom_weights).sum() <= beta * (1 + 1e-12)
        assert one.objective == pytest.approx(other.objective, rel=2e-6, abs=1e-8 * float(y @ y))
    assert sum(one.rounds for one in straight) <= sum(other.rounds for other in usual) + 1
    if objective == "squares":
        best, _ = optimum(X.toarray(), y, L1Ball(2.0))
        assert straight[3].objective == pytest.approx(best, rel=1e-5)


def test_others_begin_where_the_path_was(monkeypatch):
    """What one does, all would have to do: so paths on several nodes go as they always have."""
    X, y = sparse_regression(seed=4, d=40, n=60)
    monkeypatch.setattr(Replica, "straight_on", None)  # it would not be callable
    problems = (explicit_problem(SquaredError(y), L1Ball(beta)) for beta in (1.0, 2.0, 3.0))
    path = Solver().solve_path(problems, Shards.split(X, 2), LocalCluster(2), straight=True)
    results = list(path)
    assert [result.status for result in results] == ["optimal"] * 3
