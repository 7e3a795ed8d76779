"""The lower bound: its constants, its instances, and that no run gets below it."""

from __future__ import annotations

import csv
from math import factorial, log

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

from atomcast.commands.reproduce import reproduce_app
from atomcast.data.generators import make_lower_bound
from atomcast.experiments.runs import hard_runs
from networks import connected_graphs


def log_count(D, t):
    """log N_D(t) / log kappa without repetitions: t vectors, each orthogonal to the others."""
    return sum((D - i) - 1 for i in range(t))


@pytest.mark.parametrize("d", [4, 16, 64, 256])
def test_the_bound_follows_the_proof(d):
    repetitions = log(factorial(d // 2) // factorial(d // 4)) / (hard_runs.BITS * log(2))
    expected = log_count(d // 2, d // 2) - log_count(d // 2, d // 4) - repetitions
    assert hard_runs.bound_in_values(d) == pytest.approx(max(expected, 0.0))
    assert hard_runs.bound_in_values(d, 7) == pytest.approx(7 * max(expected, 0.0))


@pytest.mark.parametrize("step", ["classic", "corrective", "pairwise"])
@pytest.mark.parametrize("form", ["simplex", "l1"])
def test_no_run_gets_below_the_bound(step, form):
    for d in (16, 32):
        row = hard_runs.run(1 / (6 * d), step, form)
        assert row.d == d
        assert row.support > row.needed == 0.75 * d
        # More than d/4 atoms of d/2 values have crossed the edge.
        assert row.certified_values >= row.values > row.floor > row.bound


def best_over(A, chosen):
    """min ||A alpha||^2 over the simplex with weights on chosen atoms only, by CVXPY."""
    import cvxpy as cp

    alpha = cp.Variable(len(chosen))
    task = cp.Problem(
        cp.Minimize(cp.sum_squares(A[:, chosen] @ alpha)), [alpha >= 0, cp.sum(alpha) == 1]
    )
    task.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return task.value


def test_three_quarters_of_the_atoms_are_not_enough():
    eps = 1 / (6 * 24)
    A = make_lower_bound(eps).A
    rng = np.random.default_rng(0)
    assert best_over(A, np.arange(24)) == pytest.approx(1 / 24, abs=1e-9)
    for _ in range(5):
        chosen = rng.permutation(24)[:18]
        assert best_over(A, chosen) > 1 / 24 + eps


def test_the_l1_form_has_the_same_solution():
    import cvxpy as cp

    instance = make_lower_bound(1 / 96)
    _, optimum = hard_runs.hard_problem(instance, "l1")
    d = len(instance.owner)
    alpha = cp.Variable(d)
    y = instance.A.sum(axis=1)
    task = cp.Problem(cp.Minimize(cp.sum_squares(y - instance.A @ alpha)), [cp.norm1(alpha) <= 1])
    task.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert task.value == pytest.approx(optimum, rel=1e-9)
    np.testing.assert_allclose(alpha.value, 1 / d, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(connected_graphs(smallest=2))
def test_the_ends_of_the_diameter_are_farthest_apart(graph):
    first, last, distance = hard_runs.ends_of_diameter(graph)
    assert nx.shortest_path_length(graph, first, last) == distance == nx.diameter(graph)


def test_every_value_travels_the_whole_distance():
    """On a path the two blocks are at its ends: everything crosses every edge."""
    rows = [
        hard_runs.run(1 / 96, "corrective", graph=nx.path_graph(length + 1)) for length in (1, 2, 5)
    ]
    assert [row.distance for row in rows] == [1, 2, 5]
    assert [row.support for row in rows] == [rows[0].support] * 3
    assert all(row.values == row.distance * rows[0].values for row in rows)
    assert rows[2].bound == 5 * rows[0].bound


def test_labels_that_are_no_numbers_are_placed_too():
    graph = nx.relabel_nodes(nx.path_graph(4), dict(enumerate("wzxy")))
    assert hard_runs.ends_of_diameter(graph) == (0, 2, 3)
    assert hard_runs.run(1 / 96, "corrective", graph=graph).distance == 3


def test_the_command_writes_rows_and_pictures(tmp_path):
    outcome = CliRunner().invoke(
        reproduce_app, ["lower-bound", "--quick", "--out", str(tmp_path / "new")]
    )
    assert outcome.exit_code == 0, outcome.output
    assert "more than 3d/4 atoms" in outcome.output
    with open(tmp_path / "new" / "lower-bound.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["step"] for row in rows} == {"classic", "corrective"}
    assert all(float(row["values"]) > float(row["bound"]) for row in rows)
    assert (tmp_path / "new" / "lower-bound.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "new" / "lower-bound.svg").read_text()
