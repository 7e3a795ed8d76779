"""The audit log cannot be altered unnoticed, and tells all that left."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from atomcast import Lasso
from atomcast.federated.audit import AuditLog, TamperedError, check_head, read_log
from atomcast.federated.disclosures import disclosed, write_csv, write_html
from federation import Parties, ask, make_data, offline_node, reopened

TABLE = {"table", "tr", "th", "td"}


@pytest.fixture
def log(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    for k in range(4):
        log.write("scores", round=k)
    log.close()
    return tmp_path / "audit.jsonl"


def test_a_tampered_line_is_found(log):
    lines = log.read_text().splitlines()
    entry = json.loads(lines[1])
    entry["round"] = 7
    altered = [lines[0], json.dumps(entry, sort_keys=True), *lines[2:]]
    for wrong, line in ((altered, 2), (lines[1:], 1), ([*lines[:2], lines[3]], 3)):
        log.write_text("\n".join(wrong) + "\n")
        with pytest.raises(TamperedError, match=f"line {line} "):
            list(read_log(log))
        with pytest.raises(TamperedError):
            AuditLog(log)


def test_an_end_that_was_cut_off_is_found_by_the_head(log):
    entries = list(read_log(log))
    head = entries[-1]["hash"]
    check_head(entries, head, log)
    log.write_text("\n".join(log.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(TamperedError, match="never had the head"):
        check_head(list(read_log(log)), head, log)


def test_a_line_that_a_power_cut_has_left_unfinished_is_dropped(log):
    with log.open("a") as file:
        file.write('{"event": "atom", "li')
    again = AuditLog(log)
    assert len(again.entries) == 4
    again.write("finished")
    assert len(list(read_log(log))) == 5
    again.close()


def test_one_process_writes_at_a_time(log):
    first = AuditLog(log)
    with pytest.raises(ValueError, match="in use by another process"):
        AuditLog(log)
    first.close()
    AuditLog(log).close()


def test_the_report_tells_what_left_when_to_whom_and_under_which_approval(tmp_path):
    parts, y = make_data()
    with Parties(tmp_path / "p", parts) as parties:
        cluster = parties.open(terms={"purpose": "a <b>trial</b>"})
        model = Lasso(5.0, cluster=cluster).fit(cluster.shards("cohort"), y)
        entries = parties.log("north")
        write_html(tmp_path / "report.html", entries, "north")
        write_csv(tmp_path / "report.csv", entries)
        heads = model.result_.ledger.audit_heads
        for name in parties.names:
            check_head(parties.log(name), heads[name], tmp_path)
    rows = disclosed(entries)
    left = [int(row.content.split()[1]) for row in rows if row.what == "feature"]
    ours = [one.atom for one in model.result_.ledger.disclosures if one.party == "north"]
    assert left == ours
    feature = next(row for row in rows if row.what == "feature")
    assert feature.to == "coordinator, south, east"
    assert feature.values == len(y)
    assert feature.approved_by == "the privacy officer"
    told = {"target (received)", "scores", "feature", "feature (received)", "size"}
    assert told == {row.what for row in rows}
    theirs = {f"feature {one.atom} of {one.party}" for one in model.result_.ledger.disclosures}
    received = {row.content for row in rows if row.what == "feature (received)"}
    assert received < theirs
    assert all(row.approval == feature.approval for row in rows if row.what != "size")
    page = (tmp_path / "report.html").read_text()
    assert "a &lt;b&gt;trial" in page
    assert "<script" not in page
    assert "http" not in page
    with (tmp_path / "report.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(rows)
    assert sum(int(row["values"]) for row in table) == sum(row.values for row in rows)
    scores = [e for e in entries if e["event"] == "scores"]
    assert all(np.isfinite(entry["objective"]) for entry in scores)


def test_a_line_that_could_not_be_written_is_the_last(tmp_path, monkeypatch):
    """Else what follows it would look tampered with."""
    log = AuditLog(tmp_path / "audit.jsonl")
    log.write("first")

    def full(descriptor):
        raise OSError(28, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space"):
            log.write("second")
    with pytest.raises(OSError, match="restart the node"):
        log.write("third")
    log.close()
    again = AuditLog(tmp_path / "audit.jsonl")
    again.write("fourth")
    assert [entry["event"] for entry in again.entries][-1] == "fourth"
    again.close()


def test_decisions_are_in_the_log_even_if_nothing_came_of_them(tmp_path):
    """Also those that were made while the node was not running."""
    from atomcast.federated.consent import Consents

    parts, y = make_data()
    node, _, _ = offline_node(tmp_path, parts[0], y, approve=False)
    node.close()
    consents = Consents(node.config.state)
    (offer,) = consents.offers()
    consents.approve(offer.id, "Dr. Yes")
    consents.withdraw(offer.id)
    node = reopened(node)
    node.answer(offer)
    consents.approve(offer.id, "Dr. Yes")
    node.answer(offer)
    told = [(e["event"], e["by"]) for e in node._records.log.entries if "at" in e]
    decisions = ["approved", "withdrawn", "approved"]
    assert told == [(decision, "Dr. Yes") for decision in decisions]
    node = reopened(node)  # nothing is written down twice
    assert [e["event"] for e in node._records.log.entries if "at" in e] == decisions
    node.close()


def test_what_is_told_once_more_is_in_the_log(tmp_path):
    from atomcast.federated.kinds import Fingerprint

    parts, y = make_data()
    node, begin, _ = offline_node(tmp_path, parts[0], y)
    node.answer(begin)
    for message in (ask(), ask(), Fingerprint()):
        node.answer(message)
    entries = node._records.log.entries
    node.close()
    assert [e["event"] for e in entries][-3:] == ["scores", "repeated", "fingerprint"]
    assert entries[-2]["question"] == entries[-3]["question"]
    assert [row.what for row in disclosed(entries)][-3:] == ["scores", "scores", "fingerprint"]
    met = next(entry for entry in entries if entry["event"] == "introduced")
    assert f"{met['name']}={met['fingerprint']}" in begin.members


def test_a_report_shows_hostile_names_as_they_are(tmp_path):
    """Names of columns, of who approves and what a coordinator says are text, and nothing else."""
    from atomcast.federated.consent import Consents
    from atomcast.federated.holding import Holding
    from atomcast.federated.kinds import AtomRequest
    from atomcast.federated.party import Node

    parts, y = make_data()
    purpose = 'harmless"><script>alert(1)</script>\x1b[2J\u202egnihton'
    names = (
        "=HYPERLINK(1)",
        "<img src=x onerror=alert(2)>",
        "@sum",
        "-1",
        '"quoted"',
        "a",
        "b",
        "c",
    )

    class Hostile(Node):
        def _holding(self, alias):
            return Holding(parts[0], names, names, "", {})

    how = {"purpose": purpose, "node_type": Hostile, "approve": False}
    node, begin, _ = offline_node(tmp_path, parts[0], y, **how)
    consents = Consents(node.config.state)
    consents.approve(consents.offers()[0].id, "=Dr. <b>No</b>")
    node.answer(begin)
    for id in node.answer(ask()).ids.tolist():
        node.answer(AtomRequest(id))
    node.answer(replace(begin, alias="<svg onload=alert(3)>"))
    write_html(tmp_path / "report.html", node._records.log.entries, "<north>")
    write_csv(tmp_path / "report.csv", node._records.log.entries)
    node.close()
    page = (tmp_path / "report.html").read_text()
    tags = set(re.findall(r"<(\w+)", page))
    assert tags <= {"html", "meta", "title", "style", "h1", "h2", "p", "code"} | TABLE
    assert "onerror=alert(2)&gt;" in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    with (tmp_path / "report.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert "'=HYPERLINK(1)" in cells
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@")]
