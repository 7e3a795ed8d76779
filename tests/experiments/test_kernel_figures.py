"""The figures with kernel SVMs at tiny sizes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

import realdata
from atomcast import KernelSVC, Solver
from atomcast.experiments import baseline_runs, fig2a, kernel_runs, real_data
from atomcast.experiments.curves import CLASSIC, CORRECTIVE
from pictures import check_pictures, read


def stand_in(n=120):
    return real_data.adult(synthetic=True, n=n)


def test_fig2a(tmp_path):
    data = stand_in()
    setting = fig2a.Setting(nodes=4, rounds=150, per_node=(2, 60), tol=1e-4, cost=10.0)
    rows = fig2a.fig2a(data, setting, runs=2, out=tmp_path)
    check_pictures(tmp_path, "fig2a")
    assert len(read(tmp_path / "fig2a.csv")) == len(rows)
    gamma = 1 / np.mean(pairwise_distances(data.X.toarray())[np.triu_indices(120, 1)] ** 2)
    exact = KernelSVC(C=10.0, gamma=gamma, solver=Solver(tol=1e-7)).fit(data.X, data.y)
    best = exact.result_.objective
    for run in (0, 1):
        ends = {row.method: row.objective for row in rows if row.run == run}
        assert set(ends) == set(baseline_runs.METHODS)
        assert min(ends.values()) >= best * (1 - 1e-6)
        # Nodes that choose all of their examples leave nothing out.
        assert ends[baseline_runs.RANDOM] == pytest.approx(best, rel=1e-3)
        assert ends[CORRECTIVE] < ends[CLASSIC]
    # dFW ends where its budget does: the corrective step may not send more than the classic one.
    sent = {row.method: row.values for row in rows if row.run == 0 and row.round > 0}
    before_last = [row.values for row in rows if row.method == CORRECTIVE and row.run == 0][:-1]
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
