"""What a coordinator could learn within the letter of its approvals, and does not."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from atomcast.data.preparing import Preparation
from atomcast.federated.consent import Consents
from atomcast.federated.policy import DataSource, Policy
from atomcast.federated.terms import Terms
from federation import ask, begin_again, claim_of, make_data, offline_node, reopened, trial_keys

FOLDED = {"radius": (1.0, 2.0), "runs": 99}


def approve_too(node, begin, **terms):
    """A second approval, of another problem."""
    offer = Terms(**terms).offer(begin, "coordinator", "")
    node.answer(offer)
    Consents(node.config.state).approve(offer.id, "the privacy officer")


def send_all(node, begin):
    """Have every feature of the node leave; returns their scores at zero."""
    from atomcast.federated.kinds import AtomRequest

    node.answer(begin)
    told = node.answer(ask(count=20))
    for id in told.ids.tolist():
        node.answer(AtomRequest(id))
    return told.scores[np.argsort(told.ids)]


# -- cross-validation -----------------------------------------------------------------------------


def test_folds_of_two_approvals_cannot_differ_by_one_row(tmp_path):
    parts, y = make_data()
    folds = np.arange(60) % 3
    moved = np.where(np.arange(60) == 5, 0, folds)
    node, begin, other = offline_node(tmp_path, parts[0], y, posed={"folds": folds}, **FOLDED)
    node.answer(begin)
    for again in (replace(begin, folds=moved), replace(begin, folds=np.arange(60) // 20)):
        approve_too(node, again, **FOLDED)
    node = reopened(node)
    assert "differ by a few rows" in begin_again(node, replace(begin, folds=moved), other).reason
    assert node.answer(replace(begin, folds=np.arange(60) // 20)).note == ""  # cells of 6 and more
    assert node.answer(begin).note == ""
    (first, second) = [e for e in node._records.log.entries if e["event"] == "folds"]
    assert (first["folds"], second["folds"][-1]) == (folds.tolist(), 2)
    node.close()


def test_rows_are_those_of_the_folds_that_are_asked_about(tmp_path):
    """Two approvals of the same target: fold 0 of one is not fold 0 of the other."""
    parts, y = make_data()
    first, second = np.arange(60) % 3, np.arange(60) // 20
    posed = {"folds": first, "fold": 0, "fit_intercept": False}
    node, begin, _ = offline_node(tmp_path, parts[0], y, posed=posed, **FOLDED)
    other = replace(begin, folds=second)
    approve_too(node, other, **FOLDED)
    for one in (begin, other):
        node.answer(one)
        found, rows = node.answer(ask()), one.folds != 0
        expected = -2.0 * parts[0][rows].T @ y[rows]
        np.testing.assert_allclose(found.scores, expected[found.ids])
    node.close()


@pytest.mark.parametrize("objective", ["squared error", "logistic"])
def test_small_folds_do_not_tell_a_feature_row_by_row(tmp_path, objective):
    """Scores with a fold and without differ by its rows: so many equations give so many values."""
    parts, y = make_data(features=(14, 1, 1))
    y = np.resize([1.0, -1.0], 60) + (0.01 * y if objective == "squared error" else 0.0)
    folds = np.arange(60) // 12
    posed = {"folds": folds, "objective": objective, "fit_intercept": False}
    limits = {**FOLDED, "atoms": 14, "rounds": 200}
    node, begin, other = offline_node(tmp_path, parts[0], y, posed=posed, **limits)
    uphill = send_all(node, begin)
    told = []
    for k in range(30):
        node.answer(replace(begin, fold=0, radius=1.0 + k / 30))
        weights = -1e-4 * uphill * np.random.default_rng(k).random(14)
        told.append(not node.answer(ask(weights, range(14))).exhausted)
    assert sum(told) == 11
    node = reopened(node)
    begin_again(node, replace(begin, fold=0, radius=2.0), other)
    assert node.answer(ask()).exhausted
    node.close()


def test_the_first_question_does_not_raise_the_objective_either(tmp_path):
    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path, parts[0], y, radius=(1.0, 2.0), runs=2)
    uphill = send_all(node, begin)[0]
    node.answer(replace(begin, radius=1.0))
    assert "raise the objective" in node.answer(ask(np.sign([uphill]), [0])).reason
    assert node.answer(ask(-np.sign([uphill]), [0])).best > 0.0
    node.close()


# -- targets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["squared error", "logistic"])
def test_a_class_of_four_rows_is_refused_though_it_is_a_fifth_of_them(tmp_path, objective):
    parts, _ = make_data(rows=20)
    y = np.where(np.arange(20) < 4, 1.0, -1.0)
    node, begin, _ = offline_node(tmp_path, parts[0], y, posed={"objective": objective})
    assert "fewer than 5 rows" in node.answer(begin).reason
    node.close()


# -- tables ---------------------------------------------------------------------------------------


@pytest.fixture
def raw_table(tmp_path):
    """A table in which two people are of ward C, and three of no faith that was told."""
    wards = ["A"] * 30 + ["B"] * 10 + ["C"] * 2
    faiths = ["x"] * 20 + ["y"] * 19 + [""] * 3
    lines = [f"{w},{f},{k * 1.5}" for k, (w, f) in enumerate(zip(wards, faiths, strict=True))]
    path = tmp_path / "raw.csv"
    path.write_text("\n".join(["ward,faith,age", *lines]))
    return DataSource(path, prepare=Preparation())


def test_a_column_that_is_denied_is_denied_in_all_its_values(raw_table):
    from atomcast.federated.holding import load_holding

    denied = load_holding(raw_table, Policy(deny=("ward",), min_count=0))
    assert denied.labels == ("faith=x", "faith=y", "age")
    allowed = load_holding(raw_table, Policy(allow=("ward", "faith=y"), min_count=0))
    assert allowed.labels == ("ward=A", "ward=B", "ward=C", "faith=y")


def test_a_rare_category_does_not_follow_from_the_others(raw_table):
    """Who is neither of ward A nor of B is of C; who has no faith, has not told it."""
    from atomcast.federated.holding import load_holding

    holding = load_holding(raw_table, Policy(min_count=5))
    assert holding.labels == ("ward=A", "faith=x", "age")
    assert set(holding.withheld) == {"ward=B", "ward=C", "faith=y"}


# -- predictions ----------------------------------------------------------------------------------


@pytest.fixture
def predicting(tmp_path):
    """A node that has approved one prediction, of a model with its first feature."""
    from atomcast.federated.kinds import AtomRequest, Predict

    keys = tmp_path / "keys"
    shutil.copytree(trial_keys(), keys)
    parts, y = make_data()
    node, begin, _ = offline_node(
        tmp_path / "n", parts[0], y, keys=keys, predict="later", predictions=1
    )
    path = tmp_path / "later.npy"
    np.save(path, parts[0][:7])
    node.config.data["later"] = DataSource(path, new=True)
    node.answer(begin)
    first = node.answer(ask(count=1))
    node.answer(AtomRequest(int(first.ids[0])))
    weights = -0.1 * np.sign(first.scores)
    node.answer(ask(weights, first.ids))
    yield node, Predict("later", first.ids, weights), path, keys
    node.close()


def test_a_prediction_for_other_people_is_another_prediction(predicting):
    node, predict, path, _ = predicting
    assert len(node.answer(predict).values) == len(node.answer(predict).values) == 7
    np.save(path, np.load(path) + 1.0)
    again = reopened(node)
    assert "1 approved predictions are used up" in again.answer(predict).reason
    again.close()


def test_nothing_is_predicted_for_a_coordinator_that_was_revoked(predicting):
    from atomcast.federated.identity import Credentials
    from atomcast.federated.keys import revoke

    node, predict, _, keys = predicting
    node.meet(claim_of(Credentials(keys, "coordinator")))
    revoke(keys, [keys / "coordinator.pem"])
    assert "'coordinator' was revoked" in node.answer(predict).reason


# -- people who come and go -----------------------------------------------------------------------


def test_a_former_member_that_was_revoked_does_not_stop_the_others(tmp_path):
    from atomcast.federated.identity import Credentials
    from atomcast.federated.keys import revoke
    from atomcast.federated.kinds import Scores

    keys = tmp_path / "keys"
    shutil.copytree(trial_keys(), keys)
    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path / "n", parts[0], y, keys=keys)
    node.answer(claim_of(Credentials(keys, "east")))
    revoke(keys, [keys / "east.pem"])
    node.answer(begin)
    assert isinstance(node.answer(ask()), Scores)
    revoke(keys, [keys / "south.pem"])
    assert "'south' was revoked" in node.answer(ask()).reason
    node.close()


def test_a_certificate_that_expires_during_a_run_stops_it(tmp_path, monkeypatch):
    from atomcast.federated import chains

    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path, parts[0], y)
    node.answer(begin)
    node.answer(ask())
    later = chains.datetime.datetime.now(chains.datetime.UTC) + chains.datetime.timedelta(500)

    class Later(chains.datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return later

    monkeypatch.setattr(chains.datetime, "datetime", Later)
    monkeypatch.setattr("time.time", lambda: 0.0)  # another minute
    assert "not now: renew it" in node.answer(ask()).reason
    node.close()
