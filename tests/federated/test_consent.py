"""What nobody has approved is refused: above all, another target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atomcast import Lasso
from atomcast.federated.consent import target_digest
from federation import Parties, ask, begin_again, claim_of, make_data, offline_node, reopened


@pytest.fixture
def begun(tmp_path):
    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path, parts[0], y, purpose="a trial")
    yield node, begin
    node.close()


def refused(node, message):
    """Why a node refuses; fails if it does not."""
    from atomcast.federated.kinds import Refusal

    answer = node.answer(message)
    assert isinstance(answer, Refusal), answer
    return answer.reason


def test_what_was_approved_is_answered(begun):
    from atomcast.federated.kinds import Acknowledged, Scores

    node, begin = begun
    assert isinstance(node.answer(begin), Acknowledged)
    answer = node.answer(ask())
    assert isinstance(answer, Scores)
    assert len(answer.ids) == 8
    assert answer.best == np.abs(answer.scores).max()


def test_nothing_is_answered_before_approval(tmp_path):
    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path, parts[0], y, approve=False)
    assert "nobody here has approved" in refused(node, begin)
    assert "no problem was begun" in refused(node, ask())
    node.close()


def test_a_row_cannot_be_read_by_choosing_the_target(begun):
    """Scores against e_5 are row 5: no target but the approved one is answered."""
    node, begin = begun
    spike = np.eye(len(begin.target))[5]
    assert "nobody here has approved" in refused(node, replace(begin, target=spike))
    assert "no problem was begun" in refused(node, ask(count=200))


def test_nor_by_the_difference_of_two_ordinary_targets(begun):
    node, begin = begun
    node.answer(begin)
    node.answer(ask())
    other = begin.target + 1e-3 * np.eye(len(begin.target))[5]
    assert "nobody here has approved" in refused(node, replace(begin, target=other))


def test_nor_if_somebody_approves_a_spike_without_looking(tmp_path):
    parts, y = make_data()
    spike = np.eye(len(y))[5]
    node, begin, _ = offline_node(tmp_path, parts[0], spike)
    assert "fewer than 5 rows" in refused(node, begin)
    node.close()


@pytest.mark.parametrize(
    "change",
    [
        {"radius": 2.5},
        {"objective": "logistic"},
        {"objective": "os.system"},
        {"fit_intercept": False},
        {"alias": "../../etc/passwd"},
        {"members": "north=00 south=00"},
    ],
    ids=str,
)
def test_nothing_else_may_differ_either(begun, change):
    node, begin = begun
    assert refused(node, replace(begin, **change))
    assert "no problem was begun" in refused(node, ask())


def test_approvals_expire_and_can_be_withdrawn(begun, monkeypatch):
    import time

    from atomcast.federated.consent import Consents

    node, begin = begun
    node.answer(begin)
    now = time.time()
    with monkeypatch.context() as later:
        later.setattr(time, "time", lambda: now + 32 * 86400)
        assert "has expired" in refused(node, ask())
        assert "nobody here has approved" in refused(node, begin)
    consents = Consents(node.config.state)
    consents.withdraw(consents.approvals()[0].offer.id)
    assert "withdrawn" in refused(node, ask())


def test_weights_must_lie_in_the_ball_and_be_of_features_that_left(begun):
    from atomcast.federated.kinds import AtomRequest

    node, begin = begun
    node.answer(begin)
    node.answer(ask())
    assert "have not left" in refused(node, ask([0.5], [0]))
    node.answer(AtomRequest(0))
    assert "0.1 outside of the ball" in refused(node, ask([2.1], [0]))
    assert "a finite weight for each" in refused(node, ask([0.1, 0.1], [0]))
    assert "finite weight" in refused(node, ask([np.nan], [9]))
    assert "finite weight" in refused(node, ask([0.1, 0.1], [9, 9]))


def test_the_objective_must_not_rise(begun):
    from atomcast.federated.kinds import AtomRequest, Scores

    node, begin = begun
    node.answer(begin)
    node.answer(ask())
    node.answer(AtomRequest(0))
    assert isinstance(node.answer(ask([1.0], [0])), Scores)
    assert "raise the objective" in refused(node, ask([-1.0], [0]))
    assert isinstance(node.answer(ask()), Scores)  # the first question once more
    assert "raise the objective" in refused(node, ask([-1.0], [0]))


def test_features_keep_their_numbers_under_one_approval(tmp_path):
    """Else weights of one feature could be said to be of another that never left."""
    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path, parts[0], y, runs=3, second=True)
    node.answer(begin)
    moved = replace(begin, starts=begin.starts + np.array([0, -3, -3]))
    assert "other numbers" in refused(node, moved)
    node.close()


def test_rows_must_still_be_those_of_the_approval(begun):
    node, begin = begun
    holding = node._holding(begin.alias)
    node._holdings[begin.alias] = replace(holding, order="another")
    assert "no longer those" in refused(node, begin)


@pytest.mark.parametrize("expires", [0, 2**62])
def test_offers_must_expire_within_years(tmp_path, expires):
    from atomcast.federated.consent import Consents

    parts, y = make_data()
    node, _, _ = offline_node(tmp_path, parts[0], y, approve=False)
    (offer,) = Consents(node.config.state).offers()
    assert "must expire" in refused(node, replace(offer, expires=expires))
    node.close()


def test_only_proposed_features_leave(begun):
    from atomcast.federated.kinds import AtomRequest, Sealed

    node, begin = begun
    node.answer(begin)
    first = node.answer(ask(count=1)).ids.tolist()
    assert "was not proposed" in refused(node, AtomRequest(1 if first == [0] else 0))
    assert isinstance(node.answer(AtomRequest(first[0])), Sealed)


def test_a_fit_waits_for_approval_and_names_who_has_not_given_it(tmp_path):
    from atomcast.federated.federated_session import ConsentError

    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(approve=False)
        shards = cluster.shards("cohort")
        cluster.patience = 0.3
        with pytest.raises(ValueError, match="stay with its members"):
            Lasso(1.0, cluster=cluster).fit(np.hstack(parts), y)
        with pytest.raises(ConsentError, match=r"north, south, east .* node approve \w{16}"):
            Lasso(1.0, cluster=cluster).fit(shards, y)
        offers = parties.approve()
        assert {offer.target for offer in offers} == {target_digest(y)}
        with pytest.raises(ValueError, match="may raise the objective"):
            Lasso(1.0, cluster=cluster, solver="classic").fit(shards, y)
        assert Lasso(1.0, cluster=cluster).fit(shards, y).result_.status == "optimal"
        with pytest.raises(ConsentError):
            Lasso(1.0, cluster=cluster).fit(shards, y + 1.0)


def test_a_file_that_changes_under_an_approval_is_refused(tmp_path):
    """Numbers of features would mean other columns: of those, none has left."""
    from atomcast.federated.consent import Consents
    from atomcast.federated.kinds import Acknowledged, AtomRequest, Sealed

    parts, y = make_data()
    node, begin, other = offline_node(tmp_path, parts[0], y, runs=2)
    node.answer(begin)
    first = int(node.answer(ask(count=1)).ids[0])
    assert isinstance(node.answer(AtomRequest(first)), Sealed)
    np.save(node.config.data["cohort"].path, parts[0][:, ::-1])
    node = reopened(node)
    node.answer(claim_of(other))
    assert "no longer those of the approval" in refused(node, begin)
    consents = Consents(node.config.state)
    (approval,) = consents.approvals()
    consents.withdraw(approval.offer.id)
    node.answer(approval.offer)  # the same offer, about other data
    consents.approve(approval.offer.id, "the privacy officer")
    assert isinstance(node.answer(begin), Acknowledged)
    assert "have not left" in refused(node, ask([0.5], [first]))
    node.close()


def test_a_policy_that_changes_under_an_approval_is_refused(tmp_path):
    from atomcast.federated.party import Node
    from atomcast.federated.policy import Policy

    parts, y = make_data()
    node, begin, other = offline_node(tmp_path, parts[0], y)
    node.close()
    stricter = replace(node.config, policy=Policy(deny=("column 7",)))
    node = Node(stricter, node.credentials)
    fewer = replace(begin, starts=np.array([0, 7, 15]))
    assert "no longer those" in begin_again(node, fewer, other).reason
    node.close()
