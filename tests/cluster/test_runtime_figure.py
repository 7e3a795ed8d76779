"""Figure 5(a) on MPI ranks that are really started."""

from __future__ import annotations

import pytest

from atomcast.experiments import fig5a


@pytest.mark.mpi
@pytest.mark.xdist_group("mpi")
@pytest.mark.usefixtures("mpi_environment")
def test_fig5a_on_real_ranks(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    setting = fig5a.Setting(n=300, nodes=(1,), ranks=(1, 2, 50), rounds=6)
    rows, timings = fig5a.fig5a(setting, runs=1, out=tmp_path)
    # No more ranks than cores: they would have to take turns.
    assert [(t.how, t.nodes) for t in timings] == [
        (fig5a.CLOCK, 1), (fig5a.MPI, 1), (fig5a.MPI, 2),
    ]  # fmt: skip
    assert all(t.seconds > 0 for t in timings)
    ends = {(r.method, r.panel): r.objective for r in rows}
    assert list(ends.values()) == pytest.approx([ends[fig5a.CLOCK, "N=1"]] * 3, rel=1e-9)
