"""A fit between parties comes to what simulated nodes come to, and says what left whom."""

from __future__ import annotations

import numpy as np
import pytest

from atomcast import Lasso, LocalCluster, Shards, Solver
from federation import NAMES, Parties, make_data


@pytest.mark.parametrize("step", ["corrective", "pairwise"])
def test_the_same_atoms_and_disclosures_as_simulated_nodes(tmp_path, step):
    parts, y = make_data()
    solver = Solver(step=step, tol=1e-6)
    sizes = [part.shape[1] for part in parts]
    shards = Shards.split(np.hstack(parts), 3, by=sizes, party_names=NAMES)
    expected = Lasso(5.0, cluster=LocalCluster(3), solver=solver).fit(shards, y)
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open()
        model = Lasso(5.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)
    found, right = model.result_, expected.result_
    assert found.ledger.disclosures == right.ledger.disclosures
    assert found.ledger.told == right.ledger.told
    assert (found.status, found.rounds) == (right.status, right.rounds)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-9)
    assert found.uncertified == ()
