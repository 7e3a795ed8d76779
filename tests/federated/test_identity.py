"""Who may connect: members with a good certificate, and nobody else; nor to anybody else."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace

import pytest

from atomcast import Lasso, Solver
from atomcast.federated.identity import Credentials, IdentityError, proof_statement
from atomcast.federated.keys import CA, CA_KEY, make_ca, make_keys, revoke, sign_request
from atomcast.federated.kinds import Introduce, Scores
from federation import NAMES, Parties, ask, claim_of, make_data, offline_node, trial_keys
from patience import wait_until


@pytest.fixture
def parties(tmp_path):
    with Parties(tmp_path / "p", make_data()[0]) as parties:
        parties.cluster = parties.make_cluster()
        yield parties


def keys_of(folder, name, days=365, authority=None):
    """A folder with a certificate of that name, of our authority or another."""
    folder.mkdir()
    if authority is None:
        shutil.copy(trial_keys() / CA, folder)
        shutil.copy(trial_keys() / CA_KEY, folder)
    else:
        make_ca(folder)
    sign_request(folder, make_keys(name, folder, ["127.0.0.1"]), days)
    return folder


def turned_away(parties, caplog, name, text):
    """Start a node and wait until the coordinator has turned it away."""
    caplog.set_level(logging.INFO, "atomcast")
    parties.start(name, parties.cluster.listen())
    wait_until(lambda: text in caplog.text, caplog.text)
    with pytest.raises(TimeoutError):
        parties.cluster._switchboard.line(name, 0.0)


def test_a_stranger_of_the_same_authority_is_no_member(parties, caplog):
    parties.configs["stranger"] = replace(parties.configs["north"], name="stranger")
    turned_away(parties, caplog, "stranger", "'stranger' has a certificate, but is no member")
    wait_until(lambda: parties.log("stranger"), "the node takes note")
    assert parties.log("stranger")[-1]["event"] == "disconnected"


def test_a_certificate_of_another_authority_does_not_connect(
    parties, caplog, tmp_path, monkeypatch
):
    other = keys_of(tmp_path / "other", "north", authority="another")
    shutil.copy(trial_keys() / CA, other / CA)  # it believes ours, but we do not believe its
    with pytest.raises(IdentityError, match="a signature does not fit"):
        Credentials(other, "north")
    monkeypatch.setattr(Credentials, "_check_valid", lambda *_: None)  # as a liar would
    parties.configs["north"] = replace(parties.configs["north"], certificates=other)
    turned_away(parties, caplog, "north", "no connection to 127.0.0.1")


def test_an_expired_certificate_does_not_connect(parties, caplog, tmp_path, monkeypatch):
    expired = keys_of(tmp_path / "old", "north", days=-1)
    with pytest.raises(IdentityError, match="not now: renew it"):
        Credentials(expired, "north")
    monkeypatch.setattr(Credentials, "_check_valid", lambda *_: None)  # as a liar would
    parties.configs["north"] = replace(parties.configs["north"], certificates=expired)
    turned_away(parties, caplog, "north", "no connection to 127.0.0.1")


def test_a_revoked_certificate_is_turned_away(tmp_path, caplog):
    folder = tmp_path / "keys"
    shutil.copytree(trial_keys(), folder)
    revoke(folder, [folder / "south.pem"])
    with Parties(tmp_path / "p", make_data()[0], keys=folder) as parties:
        parties.cluster = parties.make_cluster()
        # The one whose certificate was revoked has not heard of it.
        south = replace(parties.configs["south"], certificates=trial_keys())
        parties.configs["south"] = south
        turned_away(parties, caplog, "south", "the certificate of 'south' was revoked")
        parties.start("north", parties.cluster.listen())
        parties.cluster._switchboard.line("north", None)


def test_a_member_cannot_play_the_coordinator(tmp_path, caplog):
    """Its certificate is good and of this host, but its name is not the coordinator's."""
    caplog.set_level(logging.INFO, "atomcast")
    with Parties(tmp_path / "p", make_data()[0]) as parties:
        parties.cluster = parties.make_cluster(name="east")
        parties.start("north", parties.cluster.listen())
        wait_until(lambda: "is that of 'east'" in caplog.text, caplog.text)
        events = [entry["event"] for entry in parties.log("north")]
    assert "disconnected" in events
    assert "connected" not in events


def test_a_list_of_revoked_certificates_must_be_the_authority_s(tmp_path):
    folder = tmp_path / "keys"
    shutil.copytree(trial_keys(), folder)
    other = tmp_path / "other"
    make_ca(other)
    shutil.copy(other / "revoked.pem", folder)
    with pytest.raises(IdentityError, match="not signed by the authority"):
        Credentials(folder, "north")


def test_keys_are_private_and_never_replaced(tmp_path):
    make_keys("west", tmp_path)
    assert (tmp_path / "west.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError, match="never replaced"):
        make_keys("west", tmp_path)
    for name in ("../west", "", "a b"):
        with pytest.raises(ValueError, match="letters, digits"):
            make_keys(name, tmp_path)
    with pytest.raises(FileNotFoundError, match="node keys"):
        Credentials(tmp_path, "west")


def test_a_request_is_certified_for_the_party_it_is_named_after(tmp_path):
    make_ca(tmp_path)
    make_keys("south", tmp_path)
    sign_request(tmp_path, tmp_path / "south.csr")
    for name in ("coordinator.csr", "ca.csr"):
        shutil.copy(tmp_path / "south.csr", tmp_path / name)
        with pytest.raises(ValueError, match="asks for the name 'south'"):
            sign_request(tmp_path, tmp_path / name)


def test_a_greeting_cannot_be_passed_on():
    """What the coordinator signs for one node says nothing to another."""
    coordinator, north, south = (
        Credentials(trial_keys(), name).hello() for name in ("coordinator", *NAMES[:2])
    )
    relayed = replace(south, nonce=north.nonce)
    assert proof_statement("coordinator", relayed, coordinator) != proof_statement(
        "coordinator", north, coordinator
    )


def test_claims_are_checked_whoever_passes_them_on():
    mine = Credentials(trial_keys(), NAMES[0])
    hello = Credentials(trial_keys(), NAMES[1]).hello()
    claim = Introduce(NAMES[1], hello.certificate, hello.key, hello.endorsement)
    assert mine.known(claim).name == NAMES[1]
    for wrong in ({"name": NAMES[2]}, {"key": b"\0" * 32}, {"certificate": b"none"}):
        with pytest.raises(IdentityError):
            mine.known(replace(claim, **wrong))


def test_a_certificate_that_is_revoked_during_a_run_stops_it(tmp_path):
    """The coordinator looks at its list in every round; the nodes here have not heard of it."""
    folder = tmp_path / "keys"
    shutil.copytree(trial_keys(), folder)
    parts, y = make_data()

    def revoke_south(state):
        revoke(folder, [folder / "south.pem"])

    with Parties(tmp_path / "p", parts, keys=folder) as parties:
        for name, config in parties.configs.items():
            parties.configs[name] = replace(config, certificates=trial_keys())
        cluster = parties.open()
        solver = Solver(tol=1e-8, atoms_per_round=1, callbacks=[revoke_south])
        with pytest.raises(IdentityError, match="the certificate of 'south' was revoked"):
            Lasso(5.0, cluster=cluster, solver=solver).fit(cluster.shards("cohort"), y)
        assert "scores" in [entry["event"] for entry in parties.log("north")]


def test_a_node_answers_nothing_once_the_coordinator_is_revoked(tmp_path):
    folder = tmp_path / "keys"
    shutil.copytree(trial_keys(), folder)
    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path / "n", parts[0], y, keys=folder)
    node.meet(claim_of(Credentials(folder, "coordinator")))
    node.answer(begin)
    assert isinstance(node.answer(ask()), Scores)
    revoke(folder, [folder / "coordinator.pem"])
    assert "'coordinator' was revoked" in node.answer(ask()).reason
    assert "'coordinator' was revoked" in node.answer(begin).reason
    node.close()
