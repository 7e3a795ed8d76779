"""The figures with kernel SVMs at tiny sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel

import realdata
from atomcast import KernelSVC, LocalCluster, Shards, Solver
from atomcast.errors import ClusterError
from atomcast.experiments.figures import clustering_bound, fig5a, fig5b
from atomcast.experiments.figures.fig2a import Fig2a
from atomcast.experiments.figures.fig5a import Fig5a
from atomcast.experiments.figures.fig5b import Fig5b
from atomcast.experiments.figures.options import Options
from atomcast.experiments.page.verdicts import Verdict
from atomcast.experiments.runs import baseline_runs, clocked_runs, kernel_runs, real_data
from atomcast.experiments.runs.curves import CLASSIC, CORRECTIVE
from atomcast.simulation.alone import Alone
from pictures import check_pictures, read


def stand_in(n=120):
    return real_data.adult(synthetic=True, n=n)


def test_fig2a(tmp_path):
    data = stand_in()
    setting = Fig2a(nodes=4, rounds=150, per_node=(2, 60), tol=1e-4, cost=10.0)
    rows = setting.run(data, runs=1, out=tmp_path).rows
    check_pictures(tmp_path, "fig2a")
    assert len(read(tmp_path / "fig2a.csv")) == len(rows)
    gamma = 1 / np.mean(pairwise_distances(data.X.toarray())[np.triu_indices(120, 1)] ** 2)
    exact = KernelSVC(C=10.0, gamma=gamma, solver=Solver(tol=1e-7)).fit(data.X, data.y)
    best = exact.result_.objective
    ends = {row.method: row.objective for row in rows}
    assert set(ends) == set(baseline_runs.METHODS)
    assert min(ends.values()) >= best * (1 - 1e-6)
    # Nodes that choose all of their examples leave nothing out.
    assert ends[baseline_runs.RANDOM] == pytest.approx(best, rel=1e-3)
    assert ends[CORRECTIVE] < ends[CLASSIC]
    # dFW ends where its budget does: the corrective step may not send more than the classic one.
    sent = {row.method: row.values for row in rows}
    before_last = [row.values for row in rows if row.method == CORRECTIVE][:-1]
    assert max(before_last) < sent[CLASSIC]


@pytest.mark.parametrize("sparse", [True, False])
def test_gamma_is_that_of_the_mean_distance(sparse):
    X = stand_in().X
    X = X if sparse else X.toarray().astype(np.float32)
    dense = np.asarray(X.toarray() if sparse else X, dtype=np.float64)
    pairs = pairwise_distances(dense)[np.triu_indices(len(dense), 1)]
    assert kernel_runs.mean_distance_gamma(X) == pytest.approx(1 / np.mean(pairs**2), rel=1e-6)


def test_the_stand_in_looks_like_adult():
    data = stand_in(1000)
    assert data.X.shape == (1000, 123)
    assert np.all(data.X.sum(axis=1) == 14)
    assert np.all(data.X.data == 1)
    assert np.mean(data.y > 0) == pytest.approx(0.24, abs=0.01)


def test_adult_itself_is_used_where_it_is(monkeypatch):
    realdata.use("a9a", monkeypatch)
    assert real_data.adult().X.shape == (32_561, 123)


def test_fig5b(tmp_path):
    setting = Fig5b(n=400, nodes=5, rounds=40)
    assert setting.shard_sizes() == [200, 50, 50, 50, 50]
    rows, outcomes, *_ = setting.run(runs=2, out=tmp_path)
    check_pictures(tmp_path, "fig5b")
    assert len(read(tmp_path / "fig5b.csv")) == len(rows)
    assert [outcome.method for outcome in outcomes] == 2 * list(fig5b.METHODS)
    panel = "examples far apart"
    by_method = {
        m: [r for r in rows if (r.panel, r.method, r.run) == (panel, m, 1)] for m in fig5b.METHODS
    }
    objective = {m: [row.objective for row in mine[1:]] for m, mine in by_method.items()}
    # How data is spread changes the time of exact dFW, and nothing else.
    assert objective[fig5b.BALANCED] == pytest.approx(objective[fig5b.EXACTLY], rel=1e-9)
    assert objective[fig5b.CENTERS] == objective[fig5b.FREE]
    assert objective[fig5b.CENTERS] != pytest.approx(objective[fig5b.EXACTLY], rel=1e-3)
    for mine in by_method.values():
        assert np.all(np.diff([row.seconds for row in mine]) > 0)
    prepared = {outcome.method: outcome.preparing for outcome in outcomes if outcome.data == panel}
    assert prepared[fig5b.EXACTLY] == prepared[fig5b.FREE] == 0.0
    assert prepared[fig5b.CENTERS] > 0.0
    counted, free = by_method[fig5b.CENTERS][-1], by_method[fig5b.FREE][-1]
    assert counted.seconds > free.seconds
    for method in (fig5b.CORRECTIVE, fig5b.CORRECTIVE_RANDOM):
        assert 0 < by_method[method][-1].round <= setting.rounds
        assert np.all(np.diff(objective[method]) <= 1e-12)


def test_clocked_runs_of_other_steps_end_when_their_time_is_over():
    data, problem = clocked_runs.speech_problem(300, 0)
    shards, cluster = Shards.split(data.X, 3), clocked_runs.PAPERS_NETWORK.cluster(3)
    solver = Solver("corrective", tol=clocked_runs.TOL, atoms_per_round=5)
    result, seconds, _ = clocked_runs.clocked_run(problem, shards, cluster, 8, solver=solver)
    expected = replace(solver, max_rounds=8).solve(problem, shards, LocalCluster(3))
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)
    assert len(seconds) == 9
    ended, seconds, _ = clocked_runs.clocked_run(
        problem, shards, cluster, 8, solver=solver, limit=1e-9
    )
    assert len(seconds) == 1
    assert ended.rounds == 0


def test_fig5a_without_mpi(tmp_path):
    setting = Fig5a(n=300, nodes=(1, 3), ranks=(), rounds=12, corrective_rounds=3)
    rows, timings, *_ = setting.run(fig5a.StartedRanks(), runs=2, out=tmp_path)
    check_pictures(tmp_path, "fig5a")
    assert len(read(tmp_path / "fig5a.csv")) == len(rows)
    hows = (fig5a.CLOCK, fig5a.CORRECTIVE_CLOCK)
    assert [(t.how, t.nodes, t.run) for t in timings] == [
        (how, N, run) for run in (0, 1) for how in hows for N in (1, 3)
    ]
    for timing in timings:
        parts = timing.work + timing.step + timing.network
        assert timing.seconds == pytest.approx(parts)
        assert (timing.network > 0) == (timing.nodes > 1)
    assert [t.speedup for t in timings if t.nodes == 1] == [1.0] * 4
    assert timings[1].speedup == pytest.approx(timings[0].seconds / timings[1].seconds)
    for how, count in zip(hows, (13, 4), strict=True):
        mine = [r for r in rows if (r.method, r.run) == (how, 0)]
        one, three = ([r.objective for r in mine if r.panel == f"N={N}"] for N in (1, 3))
        assert len(one) == len(three) == count
        assert one[1:] == pytest.approx(three[1:], rel=1e-9)
    # On any number of nodes, the corrective step must reach what the classic one has in the end.
    for timing in (t for t in timings if t.how == fig5a.CORRECTIVE_CLOCK):
        target = max(t.objective for t in timings if (t.how, t.run) == (fig5a.CLOCK, timing.run))
        key = (timing.how, timing.run, f"N={timing.nodes}")
        mine = [r for r in rows if (r.method, r.run, r.panel) == key and r.objective <= target]
        assert timing.reached == mine[0].seconds


def test_fig5a_tells_when_the_corrective_step_is_as_good_as_the_classic_one_in_the_end():
    setting = Fig5a(n=300, nodes=(2,), ranks=(), rounds=12, corrective_rounds=3)
    rows, (classic, corrective), *_ = setting.run(fig5a.StartedRanks(), runs=1)
    by_step = {
        how: [row for row in rows if row.method == how]
        for how in (fig5a.CLOCK, fig5a.CORRECTIVE_CLOCK)
    }
    ends = {how: mine[-1] for how, mine in by_step.items()}
    assert (classic.reached, classic.objective) == ends[fig5a.CLOCK][4:6]
    assert corrective.objective == ends[fig5a.CORRECTIVE_CLOCK].objective < classic.objective
    passed = [r for r in by_step[fig5a.CORRECTIVE_CLOCK] if r.objective <= classic.objective]
    assert corrective.reached == passed[0].seconds <= corrective.seconds
    data, _ = fig5a.speech_problem(300, 0)
    problem = clocked_runs.corrective_problem(data)
    _, never = setting.by_clock(problem, data, 2, run=0, target=corrective.objective / 2)
    assert never.reached == np.inf


def test_the_median_round_does_not_depend_on_the_first_and_on_hiccups():
    assert fig5a.median_round([0.0, 9.0, 9.5, 10.0, 10.5, 31.0, 31.5]) == 0.5


def test_a_node_that_is_held_up_once_does_not_make_all_rounds_longer(monkeypatch):
    times = iter([(1.0, 9.0), (2.0, 0.5), (1.0, 0.5), (2.0, 9.0), (1.0, 0.25), (7.0, 7.0)])
    monkeypatch.setattr(Alone, "usual_round", lambda cluster: next(times))
    data, problem = clocked_runs.speech_problem(40, 0)
    shards, cluster = Shards.split(data.X, 2), clocked_runs.PAPERS_NETWORK.cluster(2)
    cluster.heard = []
    clocked_runs.clocked_run(problem, shards, cluster, 2)
    # The second node is the slower one, in its best try.
    assert clocked_runs.slowest_alone(problem, shards, cluster.heard) == (2.0, 0.5)


def test_fig5a_says_where_mpi_is_missing(tmp_path, monkeypatch):
    def refuse(*args):
        raise ClusterError("the ranks did not start")

    monkeypatch.setattr(fig5a, "mpi_run", refuse)
    setting = Fig5a(n=300, nodes=(1,), ranks=(1,), rounds=4)
    with pytest.warns(UserWarning, match="MPI ranks are not measured: the ranks did not start"):
        ranks = setting.ranks_that_start()
    found = setting.run(ranks, runs=1, out=tmp_path)
    assert [timing.how for timing in found.judged] == [fig5a.CLOCK, fig5a.CORRECTIVE_CLOCK]
    assert "MPI ranks could not be started here" in (tmp_path / "fig5a.svg").read_text()
    # The note and the finding say why.
    with pytest.warns(UserWarning, match="MPI ranks are not measured: the ranks did not start"):
        report = setting.show(Options(quick=True, out=tmp_path))
    why = "1 MPI ranks are not measured: the ranks did not start"
    assert report.note.endswith(f"; {why}")
    assert "1 run; simulator's clock: " in report.note
    *_, finding = report.findings
    assert (finding.measured, finding.verdict) == (why, Verdict.UNMEASURED)
    assert "own computation (s)" in report.tables[0].header


def test_the_augmented_kernel_and_its_distances():
    data = stand_in(40)
    gamma, signs = kernel_runs.mean_distance_gamma(data.X), data.y.astype(float)
    expected = np.outer(signs, signs) * (rbf_kernel(data.X, gamma=gamma) + 1) + np.eye(40) / 7
    K = clustering_bound.augmented_kernel(data.X, data.y, cost=7.0)
    np.testing.assert_allclose(K, expected, atol=1e-12)
    pairs = clustering_bound.pairs_of(K)
    root = np.linalg.cholesky(K)  # its rows are the points in kernel space
    distances = pairwise_distances(root)[np.triu_indices(40, 1)]
    np.testing.assert_allclose(pairs.footnote, distances**2, rtol=1e-9)
    longest = np.linalg.norm(root, axis=1).max()
    np.testing.assert_allclose(pairs.cauchy_schwarz, 2 * distances * longest, rtol=1e-9)
    by_hand = 2 * np.abs(K[3] - K[9]).max()
    place = np.flatnonzero((np.triu_indices(40, 1)[0] == 3) & (np.triu_indices(40, 1)[1] == 9))
    assert pairs.difference[place] == pytest.approx(by_hand)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_gradients_differ_by_no_more_than_columns_do(seed):
    """The first step of the footnote holds, and Cauchy-Schwarz; its second step does not."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 4)), np.where(rng.random(30) > 0.5, 1, -1)
    K = clustering_bound.augmented_kernel(X, y)
    pairs = clustering_bound.pairs_of(K)
    gradient = 2 * K @ rng.dirichlet(np.full(30, 0.1))
    i, j = np.triu_indices(30, 1)
    assert np.all(np.abs(gradient[i] - gradient[j]) <= pairs.difference * (1 + 1e-12))
    assert np.all(pairs.difference <= pairs.cauchy_schwarz * (1 + 1e-12))
    assert np.any(pairs.difference > pairs.footnote)


def test_clustering_bound(tmp_path):
    binary, clouds = stand_in(), real_data.letter(synthetic=True, n=200)
    data = {"binary": binary, "clouds": clouds}
    rows = clustering_bound.ClusteringBound(examples=60).run(data, runs=2, out=tmp_path).rows
    check_pictures(tmp_path, "clustering-bound")
    assert len(read(tmp_path / "clustering-bound.csv")) == len(rows) == 4
    assert all(row.pairs == 60 * 59 / 2 for row in rows)
    assert all(row.break_cauchy_schwarz == 0 for row in rows)
    for row in rows:
        if row.data == "binary":  # squared distances of binary points are a metric
            assert row.break_footnote == row.nearest_break == 0.0
            assert row.worst == pytest.approx(1.0)
        else:
            assert row.nearest_break >= row.break_footnote > 0.3
            assert row.worst > 2


def test_letter_itself_is_used_where_it_is(monkeypatch):
    realdata.use("letter", monkeypatch)
    data = real_data.letter()
    assert data.X.shape == (16_000, 16)
    assert set(data.y) == {-1, 1}


@pytest.mark.parametrize("error", [ClusterError("no slots"), PermissionError("not executable")])
def test_fig5a_measures_as_many_ranks_as_can_be_started(monkeypatch, error):
    def run(problem, shards, rounds):
        if shards.nodes > most:
            raise error

    monkeypatch.setattr(fig5a, "mpi_run", run)
    monkeypatch.setattr(fig5a.os, "sched_getaffinity", lambda pid: set(range(8)))
    most = 2
    with pytest.warns(UserWarning, match="8 MPI ranks are not measured: no"):
        assert Fig5a(ranks=(1, 2, 8)).ranks_that_start().numbers == [1, 2]
    most = 0
    with pytest.warns(UserWarning, match="1 MPI ranks are not measured: no"):
        assert Fig5a(ranks=(1, 2, 8)).ranks_that_start().numbers == []
