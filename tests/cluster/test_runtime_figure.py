"""Figure 5(a) on MPI ranks that are really started."""

from __future__ import annotations

import pytest

from atomcast import Shards
from atomcast.errors import ClusterError
from atomcast.experiments.figures import fig5a
from atomcast.experiments.runs import mpi_rank, mpi_runs


@pytest.mark.mpi
@pytest.mark.xdist_group("processes")
@pytest.mark.usefixtures("mpi_environment")
def test_fig5a_on_real_ranks(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    setting = fig5a.Fig5a(n=300, nodes=(1,), ranks=(1, 2, 50), rounds=6, corrective_rounds=2)
    rows, timings, *_ = setting.run(setting.ranks_that_start(), runs=1, out=tmp_path)
    # No more ranks than cores: they would have to take turns.
    assert [(t.how, t.nodes) for t in timings] == [
        (fig5a.CLOCK, 1), (fig5a.CORRECTIVE_CLOCK, 1),
        (fig5a.MPI, 1), (fig5a.ALONE, 1), (fig5a.MPI, 2), (fig5a.ALONE, 2),
    ]  # fmt: skip
    assert all(t.seconds > 0 for t in timings)
    ends = [r for r in rows if r.round == 6]
    assert [(r.method, r.panel) for r in ends] == [
        (fig5a.CLOCK, "N=1"), (fig5a.MPI, "N=1"), (fig5a.MPI, "N=2"),
    ]  # fmt: skip
    assert [r.objective for r in ends] == pytest.approx([ends[0].objective] * 3, rel=1e-9)


@pytest.mark.mpi
@pytest.mark.xdist_group("processes")
@pytest.mark.usefixtures("mpi_environment")
def test_ranks_that_fail_say_why():
    data, problem = fig5a.speech_problem(50, 0)
    X = data.X.copy()
    X[30, 2] = float("nan")
    with pytest.raises(ClusterError, match="NaN"):
        mpi_runs.mpi_run(problem, Shards.split(X, 2, by="contiguous"), 3)


@pytest.mark.parametrize(("cores", "ranks", "taken"), [({4, 7}, 2, {7}), ({4}, 2, None)])
def test_a_rank_takes_one_of_the_cores_that_it_may_use(monkeypatch, cores, ranks, taken):
    used = []
    monkeypatch.setattr("os.sched_getaffinity", lambda process: cores)
    monkeypatch.setattr("os.sched_setaffinity", lambda process, own: used.append(own))
    mpi_rank.take_own_core(1, ranks)
    assert used == ([] if taken is None else [taken])
