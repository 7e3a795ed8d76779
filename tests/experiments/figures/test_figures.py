"""The figures at tiny sizes: the files they leave, and numbers that can be checked otherwise."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from typer.testing import CliRunner

import realdata
from atomcast.baselines.subsets import local_frank_wolfe, solve_on_subsets
from atomcast.commands.reproduce import reproduce_app
from atomcast.data.generators import make_sparse_regression
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.experiments.figures import EXPERIMENTS, atom_counts, fig3, find, topologies
from atomcast.experiments.figures.fig2b import Fig2b
from atomcast.experiments.figures.fig3 import Fig3, Truth
from atomcast.experiments.figures.fig4 import Fig4
from atomcast.experiments.page import output
from atomcast.experiments.runs import admm_runs, baseline_runs, real_data
from atomcast.experiments.runs.curves import (
    AUTO,
    CLASSIC,
    COCOA,
    COMPOUND,
    CORRECTIVE,
    LINE_SEARCH,
    ONCE,
    Point,
)
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster
from pictures import check_legible, check_pictures, read
from problems import optimum

#: Sizes that are quicker still than the quick ones.
TINY = {
    "lower-bound": {"atoms": (16,), "distances": (2,)},
    "topologies": {
        "nodes": (6, 12), "d": 10, "n": 60, "tol": 0.5, "atoms": (50, 100), "eps": 0.5,
    },
    "clustering-bound": {"examples": 300},
    "centers": {"d": 20, "n": 120, "nodes": 3, "rounds": 40, "amounts": (3, 10), "weights": 4},
    "fig2a": {"nodes": 5, "rounds": 60, "per_node": (1, 3), "examples": 200},
    "fig2b": {"betas": (4.0,), "nodes": 5, "rounds": 60, "per_node": (1, 3), "tol": 1e-6},
    "fig3": {
        "d": 60, "n": 120, "atom_densities": (0.1, 0.5), "solution_densities": (0.05,),
        "nodes": 4, "rounds": 60, "admm_rounds": 30, "tol": 1e-6,
    },
    "fig4": {"betas": (2.0, 4.0), "nodes": 5, "rounds": 60, "admm_rounds": 20, "tol": 1e-6},
    "fig5a": {"n": 300, "nodes": (1, 3), "ranks": (), "rounds": 6},
    "scale": {"n": 300, "nodes": (1, 3), "ranks": (), "rounds": 6},
    "fig5b": {"n": 300, "nodes": 3, "rounds": 20},
    "fig5c": {"losses": (0.0, 0.2), "nodes": 3, "rounds": 10, "tol": 0.1, "n": 200},
}  # fmt: skip
TINY_2B, TINY_3, TINY_4 = Fig2b(**TINY["fig2b"]), Fig3(**TINY["fig3"]), Fig4(**TINY["fig4"])


def stand_in():
    return real_data.dorothea(synthetic=True, n=200)


def test_fig2b(tmp_path):
    data = stand_in()
    rows = TINY_2B.run(data, runs=2, out=tmp_path).rows
    check_pictures(tmp_path, "fig2b")
    written = read(tmp_path / "fig2b.csv")
    assert len(written) == len(rows)
    assert {row["method"] for row in written} == set(baseline_runs.METHODS)
    assert {row["run"] for row in written} == {"0", "1"}
    best, _ = optimum(data.X, data.y, L1Ball(4.0))
    last = {(row.method, row.run): row.objective for row in rows}
    assert last[CORRECTIVE, 0] == pytest.approx(best, rel=1e-4)
    assert all(objective >= best * (1 - 1e-9) for objective in last.values())
    # The same atoms, sent to everybody or to one place.
    problem = explicit_problem(SquaredError(data.y), L1Ball(4.0))
    shards = Shards.split(data.X, 5, random_state=1)
    chosen = local_frank_wolfe(problem, shards, 3, tol=1e-6)
    for method, destination in (
        (baseline_runs.LOCAL, "everybody"),
        (baseline_runs.LOCAL_STAR, "coordinator"),
    ):
        trace, _ = solve_on_subsets(
            problem, shards, chosen, (1, 3), LocalCluster(5), tol=1e-6, destination=destination
        )
        mine = [row for row in rows if (row.method, row.run) == (method, 1)]
        assert [row.values for row in mine] == trace["values"].tolist()
        assert [row.bytes for row in mine] == trace["bytes"].tolist()
        assert [row.objective for row in mine] == trace.objective.tolist()
    # The best weights on the atoms of a run are no worse than the weights it had itself.
    own = {row.round: row.objective for row in rows if (row.method, row.run) == (CLASSIC, 0)}
    better = [row for row in rows if (row.method, row.run) == (baseline_runs.BATCH, 0)]
    assert len(better) > 3
    assert all(row.objective <= own[row.round] * (1 + 1e-6) for row in better)
    means = read(tmp_path / "fig2b-mean.csv")
    assert all(float(r["low"]) <= float(r["mean"]) <= float(r["high"]) for r in means)


def test_fig3_solves_the_problem_of_the_paper(tmp_path):
    rows, verdicts, *_ = TINY_3.run(runs=2, out=tmp_path)
    check_pictures(tmp_path, "fig3")
    assert [v.rule for v in verdicts] == pytest.approx([0.1 * 0.05 * 120, 0.5 * 0.05 * 120])
    assert len(read(tmp_path / "fig3-verdict.csv")) == 2
    made = make_sparse_regression(60, 120, 0.5, 0.05, random_state=0)
    share = 0.1 * np.abs(made.X.T @ made.y).max() / 60
    model = Lasso(alpha=share, fit_intercept=False, tol=1e-10, max_iter=10**5)
    expected = np.mean((made.y - made.X @ model.fit(made.X, made.y).coef_) ** 2)
    panel = "s_A=0.5 s_alpha=0.05"
    ends = {r.method: r.mse for r in rows if r.panel == panel and r.run == 0}
    assert ends[CORRECTIVE] == pytest.approx(expected, rel=1e-4)
    others = {COMPOUND, AUTO, COCOA, *admm_runs.NAMES}
    assert set(ends) == {CLASSIC, LINE_SEARCH, ONCE, CORRECTIVE, *others}
    assert all(v.auto <= v.corrective and v.compound < np.inf for v in verdicts)
    assert all(v.parameters in admm_runs.NAMES for v in verdicts)
    assert all(v.corrective < np.inf for v in verdicts)


def test_fig4_compares_at_equal_beta(tmp_path):
    data = stand_in()
    rows, costs, *_ = TINY_4.run(data, runs=2, out=tmp_path)
    check_pictures(tmp_path, "fig4")
    for beta in (2.0, 4.0):
        best, _ = optimum(data.X, data.y, L1Ball(beta))
        mine = [row for row in rows if row.panel == f"beta={beta:g}"]
        assert min(row.objective for row in mine) == pytest.approx(best, rel=1e-4)
        ends = {row.method: row.objective for row in mine}
        assert ends["ADMM (rho=10, alpha=1.5)"] < 1.2 * best
    assert len(costs) == 2 * 3 * 9
    corrective = [cost for cost in costs if cost.method == CORRECTIVE]
    assert all(np.isfinite([cost.values, cost.round, cost.seconds]).all() for cost in corrective)
    assert len(read(tmp_path / "fig4-cost.csv")) == len(costs)


def test_admm_solves_the_same_problem_in_fig3_and_fig4(monkeypatch):
    """Given enough rounds, its objective at equal beta is that of dFW."""
    monkeypatch.setattr(fig3, "BEYOND", 1.0)  # it is not to end before
    long = replace(TINY_3, atom_densities=(0.5,), admm_rounds=500, tol=1e-9)
    rows = long.one_run(None, "p", (0.5, 0.05), 0).rows
    last = {row.method: row.objective for row in rows}
    for name in (admm_runs.name(1.0, 1.5), admm_runs.name(10.0, 1.0), admm_runs.name(10.0, 1.5)):
        assert last[name] == pytest.approx(last[CORRECTIVE], rel=2e-3)
    longer = replace(TINY_4, admm_rounds=500, tol=1e-9)
    done = longer.one_run(stand_in(), "p", 4.0, 0)
    last = {row.method: row.objective for row in done.rows}
    assert last[admm_runs.name(10.0, 1.5)] == pytest.approx(done.facts[0], rel=2e-3)
    assert last[CORRECTIVE] == pytest.approx(done.facts[0], rel=1e-6)


def made_up(panel, method, run, *points):
    """Iterates with given (values, objective)."""
    return [
        Point(panel, method, run, k, 0.5 * k, objective, objective / 10, 0.0, k, values, values)
        for k, (values, objective) in enumerate(points)
    ]


def test_what_methods_needed_is_read_off_their_curves():
    panel, admm = "s_A=0.1 s_alpha=0.1", admm_runs.name(1.0, 1.0)
    truths = [Truth(100.0, 0.0, 3), Truth(120.0, 20.0, 5)]  # arrived at 5 and at 25
    assert [truth.target for truth in truths] == pytest.approx([5.0, 25.0])
    rows = [
        *made_up(panel, CLASSIC, 0, (0, 100.0), (30, 6.0), (50, 5.0), (70, 1.0)),
        *made_up(panel, CLASSIC, 1, (0, 120.0), (30, 24.0)),
        *made_up(panel, LINE_SEARCH, 0, (0, 100.0), (60, 5.0)),
        *made_up(panel, LINE_SEARCH, 1, (0, 120.0), (20, 24.0)),
        *made_up(panel, ONCE, 0, (0, 100.0), (10, 4.0)),
        *made_up(panel, ONCE, 1, (0, 120.0), (10, 26.0)),
        *made_up(panel, CORRECTIVE, 0, (0, 100.0), (8, 3.0)),
        *made_up(panel, CORRECTIVE, 1, (0, 120.0), (12, 21.0)),
    ]
    corrective = rows[-4:]  # others of ours, which do the same here
    for method in (COMPOUND, AUTO, COCOA):
        rows += [row._replace(method=method) for row in corrective]
    for k, name in enumerate(admm_runs.NAMES):
        for run in (0, 1):
            start = 100.0 + 20 * run
            later = 21.0 + k if name != admm else 4.0 + 20 * run
            rows += made_up(panel, name, run, (0, start), (100, 80.0), (200, later))
            if name == admm:
                rows += [row._replace(method=admm_runs.PROXIMAL) for row in rows[-3:]]
    one = replace(TINY_3, atom_densities=(0.1,), solution_densities=(0.1,))
    (verdict,) = one.judge(rows, {panel: truths})
    assert verdict.parameters == admm
    assert (verdict.classic, verdict.corrective, verdict.admm) == (40.0, 10.0, 200.0)
    assert (verdict.line_search, verdict.paper) == (40.0, 35.0)  # run by run the better one
    assert verdict.once == np.inf  # one of its runs did not arrive
    assert (verdict.least_once, verdict.least_classic) == (10.0, 40.0)
    assert verdict.support == 4.0
    panel = "beta=8"
    rows = [row._replace(panel=panel) for row in rows]
    judged = Fig4(betas=(8.0,)).judge(rows, {panel: [(20.0,)]})
    costs = {(cost.above, cost.method): cost for cost in judged}
    assert costs[0.5, CLASSIC][3:] == (30.0, 1.0, 0.5) * 2  # also at least
    assert costs[0.02, CORRECTIVE][3:6] == (np.inf, np.inf, np.inf)
    assert costs[0.02, CORRECTIVE].least_values == 10.0
    assert costs[0.1, CORRECTIVE][3:6] == (10.0, 1.0, 0.5)
    assert costs[0.5, admm][3:6] == (200.0, 2.0, 1.0)


def test_topologies_follow_their_formulas(tmp_path):
    small = topologies.Topologies(**TINY["topologies"])
    rows, counts, *_ = small.run(runs=2, out=tmp_path)
    check_pictures(tmp_path, "topologies")
    assert len(rows) == len(read(tmp_path / "topologies.csv")) == 2 * 2 * 5 * 2
    for row in rows:
        if row.step == "classic":
            assert row.values == row.formula
            assert row.atoms_sent == row.rounds
        else:
            assert np.isnan(row.formula)
    assert len(counts) == len(read(tmp_path / "topologies-atoms.csv")) == 4
    # The model does not depend on the network, nor on how many nodes there are.
    assert len({row.rounds for row in rows if row.run == 0 and row.step == "classic"}) == 1


def test_more_atoms_to_the_same_gap():
    rows = atom_counts.atom_counts((50, 200), d=20, runs=2, eps=0.3)
    assert len(rows) == 4
    for row in rows:
        assert row.values == topologies.formula("star", 10, 10, 20, row.rounds)
        assert 0 < row.rounds <= row.allowed == pytest.approx(6.75 * 72 / 0.3)
    # The gap is that of the problem described, in whose units eps is.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 200))
    X /= np.linalg.norm(X, axis=0)
    y = X[:, :10] @ rng.standard_normal(10) + 0.1 * rng.standard_normal(20)
    y /= np.linalg.norm(y)
    problem = explicit_problem(SquaredError(y), L1Ball(atom_counts.BETA))
    solver = Solver("classic", tol=1e-12, max_rounds=rows[1].rounds)
    result = solver.solve(problem, Shards.split(X, 1), LocalCluster(1))
    best, _ = optimum(X, y, L1Ball(atom_counts.BETA))
    assert result.gap <= 0.3
    assert result.objective - best <= result.gap


def test_formulas_of_section_4_1():
    assert topologies.formula("star", 10, 20, 50, 3) == 3 * 10 * 56 + 60
    assert topologies.formula("tree", 10, 20, 50, 3) == 3 * 9 * 56 + 54
    assert topologies.formula("graph, spanning tree", 10, 20, 50, 0) == 40 + 54
    assert topologies.formula("graph, flooding", 10, 20, 50, 1) == 31 * (2 * 40 + 50)
    assert topologies.formula("star, plain", 10, 20, 50, 1) == 10 * (2 * 30 + 50)


@pytest.fixture
def tiny(monkeypatch):
    """Quick settings that are quicker still."""
    for name, sizes in TINY.items():
        monkeypatch.setattr(find(name), "quick", sizes)
    monkeypatch.setattr(real_data, "dorothea", partial(real_data.dorothea, n=200))
    monkeypatch.setattr(real_data, "adult", partial(real_data.adult, n=400))
    monkeypatch.setattr(real_data, "letter", partial(real_data.letter, n=400))


def test_everything_with_one_command(tmp_path, tiny, monkeypatch):
    drawn, write = [], output.write_figure
    monkeypatch.setattr(output, "write_figure", lambda *args: (drawn.append(args[0]), write(*args)))
    arguments = ["all", "--quick", "--runs", "1", "--synthetic", "--out", str(tmp_path / "new")]
    outcome = CliRunner().invoke(reproduce_app, arguments)
    assert outcome.exit_code == 0, outcome.output
    assert len(drawn) == len(EXPERIMENTS)
    for figure in drawn:
        check_legible(figure)
    for name in EXPERIMENTS:
        check_pictures(tmp_path / "new", name)
        assert read(tmp_path / "new" / f"{name}.csv")
    assert "measured = formula in all 10 runs" in outcome.output
    assert "s_A s_alpha n" in outcome.output
    assert "generated stand-in for Dorothea" in outcome.output
    page = (tmp_path / "new" / "index.html").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f'<section id="{name}">' in page
        assert f'<img src="{name}.svg"' in page
        assert f'<a href="{name}.csv">' in page
    assert "generated stand-in for Dorothea" in page
    assert "was not run" not in page


def test_what_cannot_work_is_said_before_the_work(tmp_path, monkeypatch):
    def not_called(*args, **more):
        raise AssertionError("the experiment was run")

    for name in EXPERIMENTS:
        monkeypatch.setattr(find(name), "run", not_called)
    file = tmp_path / "file"
    file.touch()
    for name in ("fig3", "topologies", "fig5a", "fig5b", "lower-bound"):
        outcome = CliRunner().invoke(reproduce_app, [name, "--quick", "--out", str(file)])
        assert outcome.exit_code == 2, name
        assert "file" in outcome.stderr
    for density in ("0", "2", "-1", "nan"):
        arguments = ["fig3", "--quick", "--atom-density", "0.1", "--atom-density", density]
        outcome = CliRunner().invoke(reproduce_app, [*arguments, "--out", str(tmp_path / "out")])
        assert outcome.exit_code == 2
        assert "it must be in (0, 1]" in outcome.stderr


def test_a_density_named_twice_is_run_once(tmp_path, tiny):
    arguments = ["fig3", "--quick", "--runs", "1", "--out", str(tmp_path)]
    arguments += ["--atom-density", "0.3", "--atom-density", "0.3"]
    assert CliRunner().invoke(reproduce_app, arguments).exit_code == 0
    assert len(read(tmp_path / "fig3-verdict.csv")) == 1


def test_missing_data_is_never_replaced_silently(tmp_path, monkeypatch):
    monkeypatch.setenv("ATOMCAST_DATA", str(tmp_path))
    needed = {"fig2a": "a9a", "fig2b": "dorothea", "fig4": "dorothea", "fig5c": "a9a"}
    for name, data in needed.items():
        outcome = CliRunner().invoke(reproduce_app, [name, "--quick", "--out", str(tmp_path)])
        assert outcome.exit_code == 2
        assert f"the data set {data!r} is not complete on this machine" in outcome.stderr
        assert "--synthetic" in outcome.stderr
    assert not list(tmp_path.glob("fig*"))


def test_the_stand_in_looks_like_dorothea():
    data = stand_in()
    assert data.X.shape == (1150, 200)
    assert np.all(data.X.data == 1.0)
    assert data.X.nnz / (1150 * 200) == pytest.approx(0.009, rel=0.1)
    assert set(data.y) == {-1.0, 1.0}
    assert np.mean(data.y > 0) <= 0.1


def test_real_data_is_used_where_it_is(monkeypatch):
    realdata.use("dorothea", monkeypatch)
    assert real_data.dorothea().X.shape == (1150, 100_000)


def test_a_part_of_fig3_can_be_run_alone(tmp_path, tiny):
    arguments = ["fig3", "--quick", "--runs", "1", "--atom-density", "0.3", "--out", str(tmp_path)]
    outcome = CliRunner().invoke(reproduce_app, arguments)
    assert outcome.exit_code == 0, outcome.output
    assert [row["atom_density"] for row in read(tmp_path / "fig3-verdict.csv")] == ["0.3"]
