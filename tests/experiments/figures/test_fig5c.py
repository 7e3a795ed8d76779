"""Figure 5(c) at a tiny size: lost messages, with and without a log."""

from __future__ import annotations

import numpy as np
import pytest

from atomcast import KernelSVC, Solver
from atomcast.experiments.figures.fig5c import (
    ADULT,
    CORRECTIVE_LOG,
    LOG,
    PAPER,
    PROTOCOLS,
    SPEECH,
    Fig5c,
)
from atomcast.experiments.runs import real_data
from atomcast.experiments.runs.kernel_runs import mean_distance_gamma
from pictures import check_pictures, read

TINY = Fig5c(losses=(0.0, 0.3), nodes=4, rounds=40, tol=1e-4, cost=10.0, n=200)


def test_fig5c(tmp_path):
    data = real_data.adult(synthetic=True, n=120)
    rows, outcomes, *_ = TINY.run(data, runs=2, out=tmp_path)
    check_pictures(tmp_path, "fig5c")
    assert len(read(tmp_path / "fig5c.csv")) == len(rows)
    assert len(read(tmp_path / "fig5c-outcome.csv")) == 12
    there = {(one.protocol, one.loss): one for one in outcomes if one.setting == SPEECH}
    assert there[PAPER, 0.0].ratio == 1.0  # to the classic step in the same setting
    assert there[PAPER, 0.3].ratio > 1.0
    # Every node proposes to every other, and one of them sends its atom to every other.
    assert there[PAPER, 0.0].values > 40 * 4 * 3 * 3 + 40 * 3 * 120
    outcomes = [one for one in outcomes if one.setting == ADULT]
    ends = {(outcome.protocol, outcome.loss): outcome for outcome in outcomes}
    gamma = mean_distance_gamma(data.X)
    exact = KernelSVC(C=10.0, gamma=gamma, solver=Solver(tol=1e-7)).fit(data.X, data.y)
    best = exact.result_.objective
    assert all(outcome.objective >= best * (1 - 1e-6) for outcome in outcomes)
    for loss in TINY.losses:
        assert ends[CORRECTIVE_LOG, loss].objective == pytest.approx(best, rel=2e-4)
        assert ends[CORRECTIVE_LOG, loss].gap <= 1e-4
    assert ends[PAPER, 0.0].objective == pytest.approx(ends[LOG, 0.0].objective, rel=1e-6)
    assert ends[LOG, 0.3].ratio <= 1.1
    assert ends[PAPER, 0.3].ratio > ends[LOG, 0.3].ratio
    assert ends[LOG, 0.3].repair > ends[LOG, 0.0].repair == 0
    # The mean of the runs is that of the rounds as they were, not of the best so far.
    means = read(tmp_path / "fig5c-mean.csv")
    panel = PROTOCOLS[0].panel
    last = [row for row in means if row["panel"] == panel and row["method"] == "p = 0.3"][-1]
    shown = [row for row in rows if (row.panel, row.method) == (panel, "p = 0.3")]
    of_runs = [row.objective for row in shown if row.round == TINY.rounds]
    assert float(last["mean"]) == pytest.approx(np.mean(of_runs), rel=1e-9)
    assert float(last["low"]) == pytest.approx(min(of_runs), rel=1e-9)
