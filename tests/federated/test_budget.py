"""What a node enforces by itself, over restarts too."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from atomcast import Lasso, LocalCluster, Solver, load_model, save_model
from atomcast.cli import app
from atomcast.federated.policy import DataSource, Policy
from federation import Parties, ask, begin_again, make_data, offline_node, reopened


def test_budget_of_features_holds_over_a_restart(tmp_path):
    from atomcast.federated.kinds import Acknowledged, AtomRequest, Refusal, Sealed

    parts, y = make_data()
    node, begin, other = offline_node(tmp_path, parts[0], y, atoms=2)
    node.answer(begin)
    answer = node.answer(ask())
    assert len(answer.ids) == 2  # more scores than features that may leave are of no use
    assert isinstance(node.answer(AtomRequest(int(answer.ids[0]))), Sealed)
    node = reopened(node)
    assert isinstance(begin_again(node, begin, other), Acknowledged)
    again = node.answer(ask())
    np.testing.assert_array_equal(again.scores, answer.scores)  # the same question: no new answer
    assert isinstance(node.answer(AtomRequest(int(answer.ids[0]))), Sealed)  # it has left before
    assert isinstance(node.answer(AtomRequest(int(answer.ids[1]))), Sealed)
    node = reopened(node)
    begin_again(node, begin, other)
    silent = node.answer(ask(count=3))  # another question
    assert silent.exhausted
    assert len(silent.ids) == 0
    assert isinstance(node.answer(AtomRequest(7)), Refusal)
    node.close()


def test_rounds_and_problems_are_counted(tmp_path):
    from dataclasses import replace

    from atomcast.federated.kinds import Refusal, Scores

    parts, y = make_data()
    terms = {"rounds": 2, "radius": (1.0, 2.0), "runs": 2}
    node, begin, other = offline_node(tmp_path, parts[0], y, **terms)
    for _ in range(2):
        assert not isinstance(begin_again(node, begin, other), Refusal)
        for count in (1, 2, 1, 2):  # to ask again costs nothing
            assert isinstance(node.answer(ask(count=count)), Scores)
        assert "2 rounds" in node.answer(ask(count=3)).reason
        node = reopened(node)
    assert not isinstance(begin_again(node, replace(begin, radius=1.5), other), Refusal)
    assert "2 problems" in node.answer(replace(begin, radius=1.0)).reason
    node.close()


def test_proposals_of_a_round_are_capped(tmp_path):
    parts, y = make_data()
    policy = {"proposals_per_round": 3}
    node, begin, _ = offline_node(tmp_path, parts[0], y, policy=policy, proposals=5)
    node.answer(begin)
    assert len(node.answer(ask(count=200)).ids) == 3
    node.close()


def test_a_run_goes_on_without_a_party_whose_budget_is_used_up(tmp_path):
    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        from dataclasses import replace

        tight = Policy(atoms_per_run=1)
        parties.configs["south"] = replace(parties.configs["south"], policy=tight)
        cluster = parties.open()
        solver = Solver(tol=1e-6)
        with pytest.warns(ConvergenceWarning, match="not certified for south"):
            model = Lasso(5.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)
    assert model.result_.uncertified == ("south",)
    assert model.result_.ledger.uncertified == ("south",)
    left = [one for one in model.result_.ledger.disclosures if one.party == "south"]
    assert len(left) == 1
    # Certified for all others: the same model as without what south has kept.
    kept = np.hstack([parts[0], parts[1][:, [left[0].atom - 8]], parts[2]])
    expected = Lasso(5.0, solver=solver).fit(kept, y)
    assert model.result_.objective == pytest.approx(expected.result_.objective, rel=1e-5)
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors").certificate_
    assert loaded.uncertified == ("south",)
    assert loaded.audit_heads.keys() == {"north", "south", "east"}
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "model.safetensors")]).stdout
    assert re.search(r"not certified for +south", shown)
    assert loaded.audit_heads["east"] in shown


def test_denied_and_rare_features_are_never_scored(tmp_path):
    from dataclasses import replace

    from atomcast.federated.holding import load_holding

    rng = np.random.default_rng(0)
    frame = rng.standard_normal((40, 3))
    flags = np.zeros((40, 2))
    flags[:4, 0], flags[:5, 1] = 1.0, 1.0
    lines = ["lab_a,lab_b,postcode,rare,usual"]
    lines += [",".join(map(str, row)) for row in np.hstack([frame, flags]).tolist()]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    policy = Policy(deny=("post*",))
    holding = load_holding(DataSource(tmp_path / "data.csv"), policy)
    assert holding.names == ("lab_a", "lab_b", "usual")
    assert holding.matrix.shape == (40, 3)
    assert set(holding.withheld) == {"postcode", "rare"}
    assert replace(policy, min_count=0).too_rare(holding.matrix) == []
    np.save(tmp_path / "data.npy", frame)  # without names, columns are called by their numbers
    nameless = load_holding(DataSource(tmp_path / "data.npy"), Policy(deny=("column 0",)))
    assert [nameless.name(j) for j in range(nameless.features)] == ["column 1", "column 2"]
    np.testing.assert_array_equal(nameless.matrix, frame[:, 1:])
    allowed = load_holding(DataSource(tmp_path / "data.csv"), Policy(allow=("lab_*",)))
    assert allowed.names == ("lab_a", "lab_b")


def test_rare_values_are_found_in_sparse_columns_too():
    dense = np.zeros((50, 4))
    dense[:3, 0] = 1.0  # three ones
    dense[:, 1] = np.arange(50.0)  # continuous
    dense[:6, 2] = 1.0
    dense[:47, 3] = 2.0  # three zeros
    policy = Policy()
    assert policy.too_rare(dense) == [0, 3]
    assert policy.too_rare(sparse.csc_array(dense)) == [0, 3]


def test_rounded_scores_lead_to_the_same_model_with_a_true_bound(tmp_path):
    parts, y = make_data()
    expected = Lasso(5.0, cluster=LocalCluster(1), solver=Solver(tol=1e-3)).fit(np.hstack(parts), y)
    with Parties(tmp_path / "p", parts, score_digits=4) as parties:
        cluster = parties.open()
        model = Lasso(5.0, cluster=cluster, solver=Solver(tol=1e-3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(cluster.shards("cohort"), y)
        told = [e for e in parties.log("north") if e["event"] == "scores" and e["ids"]]
    assert told
    for score in told[0]["scores"]:
        assert float(f"{score:.3e}") == pytest.approx(score, rel=1e-12)
    best = Lasso(5.0, solver=Solver(tol=1e-9)).fit(np.hstack(parts), y).result_.objective
    assert model.result_.objective - model.result_.gap <= best * (1 + 1e-9)
    assert model.result_.objective == pytest.approx(expected.result_.objective, rel=2e-3)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"atoms_total": -1}, "atoms_total must be a whole number >= 0"),
        ({"deny": "post*"}, "deny must be a list of patterns"),
        ({"score_digits": 1}, "at least 3"),
    ],
)
def test_bad_policies_are_named(setting, text):
    with pytest.raises(ValueError, match=text):
        Policy(**setting)
