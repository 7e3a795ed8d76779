"""The commands of parties: keys, certificates, approval, audit, alignment, fit and predict."""

from __future__ import annotations

import socket
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from atomcast import Lasso, load_model
from atomcast.federated.kinds import Finish
from atomcast.federated.policy import DataSource
from atomcast.federated.terms import Terms
from federation import NAMES, Parties, ask, make_data, offline_node, trial_keys

NODE = """
name = "north"
coordinator = "coordinator"
address = "localhost:7443"
certificates = "{keys}"
[data.cohort]
path = "north.csv"
row_ids = "patient"
[policy]
deny = ["postcode"]
"""


def test_keys_requests_certificates_and_revocation(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("node", "keys", "north", "--out", "north").exit_code == 0
    assert run("coordinator", "ca", "trial", "north/north.csr").exit_code == 0
    assert (tmp_path / "north/north.pem").exists()
    assert run("coordinator", "ca", "trial", "--revoke", "north/north.pem").exit_code == 0
    again = run("node", "keys", "north", "--out", "north")
    assert again.exit_code == 2
    assert "never replaced" in again.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "is no TOML file"),
        (NODE.replace("coordinator", "boss"), "does not know 'boss'"),
        (NODE.replace("name", "#"), "lacks 'name'"),
        (NODE.replace("deny", "denied"), "[policy] does not know 'denied'"),
        (NODE.partition("[data")[0], "names no data"),
    ],
)
def test_mistakes_in_settings_are_named(run, tmp_path, text, message):
    (tmp_path / "node.toml").write_text(text)
    outcome = run("node", "approve", "--config", str(tmp_path / "node.toml"))
    assert outcome.exit_code == 2
    assert message in outcome.stderr


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A table for each party, with rows of its own in an order of its own, and the target."""
    monkeypatch.chdir(tmp_path)
    parts, y = make_data(rows=50)
    rng = np.random.default_rng(1)
    frames = {}
    for name, part in zip(NAMES, parts, strict=True):
        columns = [f"{name}_{j}" for j in range(part.shape[1])]
        frame = pd.DataFrame(part, columns=columns).assign(patient=np.arange(50) + 1000)
        frames[name] = frame.iloc[rng.permutation(50)[: 49 if name == "east" else 50]]
        frames[name].to_csv(f"{name}.csv", index=False)
    frames["target"] = pd.DataFrame({"patient": np.arange(50) + 1000, "outcome": y})
    frames["target"].to_csv("target.csv", index=False)
    (tmp_path / "secret").write_text("a secret of all parties")
    return frames


def test_from_alignment_to_prediction(run, tables, tmp_path):
    """What each party types; the nodes run in threads of this process."""
    for name in NAMES:
        how = ["--secret", "secret", "--row-ids", "patient", "--out", f"{name}.hashes"]
        assert run("align", "hash", f"{name}.csv", *how).exit_code == 0
    hashes = [f"{name}.hashes" for name in NAMES]
    assert "49 rows are common" in run("align", "order", *hashes, "--out", "order").stdout
    with Parties(tmp_path / "p", [np.zeros((1, 1))] * 3) as parties:
        parties.cluster = parties.make_cluster()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        for name in NAMES:
            paths = [tmp_path / f"{name}.csv", "patient", tmp_path / "order", tmp_path / "secret"]
            data = {"cohort": DataSource(*paths)}
            parties.configs[name] = replace(parties.configs[name], data=data)
            parties.start(name, port)
        (tmp_path / "coordinator.toml").write_text(
            f'address = "127.0.0.1:{port}"\nmembers = {list(NAMES)}\nalias = "cohort"\n'
            f'certificates = "{trial_keys()}"\norder = "order"\nsecret = "secret"\n'
            '[terms]\npurpose = "a trial"\npredict = "cohort"\npredictions = 1\n'
        )
        parties.approve_soon()
        federated = ["--config", "coordinator.toml"]
        target = ["--target", "target.csv:outcome", "--row-ids", "patient"]
        arguments = ["--engine", "federated", "--beta", "5", "--out", "model.safetensors"]
        done = run("fit", "lasso", *federated, *target, *arguments)
        assert done.exit_code == 0, done.stderr
        predicted = run("predict", "model.safetensors", *federated)
        assert predicted.exit_code == 0, predicted.stderr
    rows = tables["east"]
    for name in ("north", "south", "target"):
        rows = rows.merge(tables[name], on="patient")
    X = np.hstack([rows.filter(like=f"{name}_") for name in NAMES])
    expected = Lasso(5.0).fit(X, rows["outcome"])
    model = load_model("model.safetensors")
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    found = np.sort(np.array(predicted.stdout.split(), dtype=float))
    np.testing.assert_allclose(found, np.sort(expected.predict(X)), atol=1e-5)


def test_approval_and_audit(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts, y = make_data()
    np.save("y.npy", y)
    np.save("other.npy", y[::-1])
    node, begin, _ = offline_node(tmp_path, parts[0], y, approve=False, purpose="a trial")
    settings = f"{NODE.format(keys=trial_keys())}\n".replace("[data", 'state = "state"\n[data')
    (tmp_path / "north" / "node.toml").write_text(settings)
    config = ["--config", "north/node.toml"]
    shown = run("node", "approve", *config).stdout
    assert "a trial" in shown
    offer = shown.split()[1]
    wrong = run("node", "approve", offer, "--target", "other.npy", *config)
    assert wrong.exit_code == 2
    assert "another target" in wrong.stderr
    done = run("node", "approve", offer, "--target", "y.npy", "--by", "Dr. No", *config)
    assert "approved by Dr. No" in done.stdout
    assert "no offer waits" in run("node", "approve", *config).stdout
    node.answer(begin)
    head = node.answer(ask()) and node.answer(Finish()).note
    other = replace(begin, target=begin.target[::-1])
    node.answer(Terms(purpose="again").offer(other, "coordinator", ""))
    node.close()
    assert "Another target was approved for 'cohort'" in run("node", "approve", *config).stdout
    listed = run("node", "audit", "--head", head, *config)
    assert "unbroken" in listed.stdout
    assert "scores" in listed.stdout
    for name in ("report.html", "report.csv"):
        assert run("node", "audit", "--report", name, *config).exit_code == 0
    assert "Dr. No" in (tmp_path / "report.html").read_text()
    log = tmp_path / "north/state/audit.jsonl"
    log.write_text(log.read_text().replace("Dr. No", "Dr. Yes"))
    tampered = run("node", "audit", *config)
    assert tampered.exit_code == 2
    assert "was altered" in tampered.stderr
    assert "withdrawn" in run("node", "approve", offer, "--withdraw", *config).stdout
    assert "Another target was approved" in run("node", "approve", *config).stdout  # and answered


def test_options_that_do_not_go_together_are_named(run, files):
    how = ["--target", "y.npy", "--beta", "1"]
    for arguments, text in (
        (["a.csv", "--engine", "federated"], "takes data and network from its members"),
        (["--engine", "federated"], "needs --config"),
        (["a.csv", "--config", "x.toml"], "is for --engine federated"),
    ):
        outcome = run("fit", "lasso", *how, *arguments)
        assert outcome.exit_code == 2
        assert text in outcome.stderr
