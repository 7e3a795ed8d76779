"""Nodes with very many atoms look through them in pieces, and propose what others would."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.datasets import make_classification

from atomcast import KernelSVC, LocalCluster, Solver
from atomcast.cluster import node as fleet
from atomcast.messages.proposals import Request


@pytest.mark.parametrize("step", ["classic", "pairwise", "corrective"])
@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("selection", ["exact", "per-node"])
def test_pieces_change_nothing(step, nodes, selection, monkeypatch):
    X, y = make_classification(400, 8, n_informative=6, random_state=1)
    cluster = LocalCluster(nodes, isolated=True)  # every node is a fleet of its own
    solver = Solver(step, tol=1e-3, max_rounds=40, selection=selection)
    model = KernelSVC(cluster=cluster, solver=solver)
    with pytest.warns(match="gap") if step != "corrective" else nullcontext():
        whole = model.fit(X, y).result_
    used = dict.fromkeys(("_draw_of_many", "_propose_one_of_many"), 0)

    def counted(name):
        method = getattr(fleet.Fleet, name)

        def call(self, *args):
            used[name] += 1
            return method(self, *args)

        monkeypatch.setattr(fleet.Fleet, name, call)

    for name in used:
        counted(name)
    monkeypatch.setattr(fleet, "CHUNK", 17)
    with pytest.warns(match="gap") if step != "corrective" else nullcontext():
        pieces = model.fit(X, y).result_
    np.testing.assert_array_equal(pieces.atom_ids, whole.atom_ids)
    np.testing.assert_array_equal(pieces.atom_weights, whole.atom_weights)
    assert pieces.gap == whole.gap
    assert pieces.ledger.values == whole.ledger.values
    assert used["_draw_of_many"] == nodes  # the first round draws at random
    assert bool(used["_propose_one_of_many"]) == (step != "corrective")


@pytest.mark.parametrize("known_too", [True, False])
@pytest.mark.parametrize("level", [np.inf, 1.1])
def test_a_draw_leaves_out_what_the_request_does(known_too, level, monkeypatch):
    X, y = make_classification(300, 8, n_informative=6, random_state=2)
    seen = []
    propose = fleet.Fleet._propose

    def both(self, replica, request):
        if replica.round == 4:
            threshold = -level * replica.active.inner()
            asked = Request(count=9, random=True, known_too=known_too, threshold=threshold)
            plain = propose(self, replica, asked)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(fleet, "CHUNK", 13)
                seen.append((plain, propose(self, replica, asked)))
        return propose(self, replica, request)

    monkeypatch.setattr(fleet.Fleet, "_propose", both)
    KernelSVC(solver=Solver(tol=1e-3, atoms_per_round=10)).fit(X, y)
    ((plain, pieces),) = seen
    assert 0 < len(plain.id) <= 9
    if level == np.inf:
        assert len(plain.id) == 9
    for field in ("node", "id", "score", "merit", "best"):
        np.testing.assert_array_equal(getattr(pieces, field), getattr(plain, field))
