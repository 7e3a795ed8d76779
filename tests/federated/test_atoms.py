"""Features are what their owners have signed, for this fit alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from atomcast.messages.atom import Atom
from atomcast.network.wire import codec as wire
from federation import ask, make_data, offline_node


@pytest.fixture
def met(tmp_path):
    """A node in the middle of a fit, and what the other member would send it."""
    from atomcast.federated.identity import atom_statement
    from atomcast.federated.kinds import Hand
    from atomcast.federated.run import context_of

    parts, y = make_data()
    node, begin, other = offline_node(tmp_path, parts[0], y)
    node.answer(begin)
    question = node.answer(ask()).question
    context = context_of(begin, "coordinator", target(begin))
    gradient = -2.0 * (y - y.mean())

    def sent(id=8, values=None, signer=other, about=context, score=None, d=60, name=""):
        values = np.arange(len(y), dtype=float) if values is None else values
        atom = wire.encode(Atom(id, d, values, name=name))
        score = float(values @ gradient) if score is None else score
        signature = signer.sign(atom_statement(about, question, score, atom))
        return Hand(1, id, question, score, atom, signature)

    yield node, sent
    node.close()


def target(begin):
    from atomcast.federated.consent import target_digest

    return target_digest(begin.target)


def reason(node, message):
    from atomcast.federated.kinds import Refusal

    answer = node.answer(message)
    assert isinstance(answer, Refusal), answer
    return answer.reason


def test_what_the_owner_has_signed_is_taken(met):
    from atomcast.federated.kinds import Acknowledged, Scores

    node, sent = met
    assert "were not handed over" in reason(node, ask([0.0], [8]))
    assert isinstance(node.answer(sent()), Acknowledged)
    assert isinstance(node.answer(ask([0.0], [8])), Scores)


def test_forged_altered_and_replayed_features_are_refused(met):
    from atomcast.federated.identity import Credentials
    from federation import trial_keys

    node, sent = met
    coordinator = Credentials(trial_keys(), "coordinator")
    assert "forged or altered" in reason(node, sent(signer=coordinator))
    genuine = sent()
    assert "forged" in reason(node, replace(genuine, atom=sent(values=np.ones(60)).atom))
    assert "forged" in reason(node, replace(genuine, score=genuine.score + 1.0))
    assert "forged" in reason(node, sent(about="another fit"))  # signed once, but not for this
    assert "another member" in reason(node, replace(genuine, owner=5))


def test_what_cannot_be_is_refused_even_if_signed(met):
    node, sent = met
    assert "which is not its own" in reason(node, sent(id=3))
    assert "NaN" in reason(node, sent(values=np.full(60, np.nan), score=0.0))
    assert "cannot be read" in reason(node, sent(values=np.ones(61), d=61, score=0.0))
    assert "has the score" in reason(node, sent(score=1.0))


def test_other_members_must_be_those_approved(tmp_path):
    from atomcast.federated.identity import Credentials
    from atomcast.federated.kinds import Introduce
    from federation import trial_keys

    parts, y = make_data()
    node, _, _ = offline_node(tmp_path, parts[0], y)
    hello = Credentials(trial_keys(), "stranger").hello()
    claim = Introduce("south", hello.certificate, hello.key, hello.endorsement)
    assert "is that of 'stranger'" in reason(node, claim)
    mixed = Credentials(trial_keys(), "south").hello()
    claim = Introduce("south", mixed.certificate, hello.key, hello.endorsement)
    assert "a signature does not fit" in reason(node, claim)
    node.close()


def test_an_owner_cannot_sign_one_number_with_two_contents(met):
    """Not even before and after a restart: the log has the hashes of what was received."""
    from atomcast.federated.account import Account
    from atomcast.federated.kinds import Acknowledged

    node, sent = met
    first, second = sent(), sent(values=np.ones(60))
    assert isinstance(node.answer(first), Acknowledged)
    assert isinstance(node.answer(first), Acknowledged)  # once more, as after a lost connection
    assert "signed another feature 8 before" in reason(node, second)
    after = Account(node._records.log.entries).received
    assert list(after.values()) == [hashlib.sha256(first.atom).hexdigest()]


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "cohort\u202egnp", "x" * 201])
def test_names_that_nobody_can_read_are_refused(met, name):
    node, sent = met
    assert "a name that cannot be" in reason(node, sent(name=name))


def test_a_column_with_such_a_name_is_named_to_its_owner(tmp_path):
    from atomcast.federated.holding import load_holding
    from atomcast.federated.policy import DataSource, Policy

    (tmp_path / "data.csv").write_text('age,"b\tmi"\n1,2\n3,4\n')
    with pytest.raises(ValueError, match=r"column 'b\\tmi': .* rename it"):
        load_holding(DataSource(tmp_path / "data.csv"), Policy(min_count=0))
