"""The disclosure report: what has left a node, when, to whom and under which approval.

It is made from the audit log for the people who answer for the data.
"""

from __future__ import annotations

import csv
import html
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from atomcast._checks import visible
from atomcast._replacing import replacing
from atomcast.federated.audit import Entry

#: What a report says of an offer beside its limits.
ASKED = ("coordinator", "purpose", "alias", "members", "target", "order", "predict")
STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; width: 100%; }
th, td { border-bottom: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top; }
th { background: #f3f3f3; } code { overflow-wrap: anywhere; }
"""


class Disclosed(NamedTuple):
    """Something that has left the node, or that it was told."""

    time: str
    what: str
    content: str
    values: int
    to: str
    approval: str
    approved_by: str


def disclosed(entries: Sequence[Entry], parties: str = "the coordinator") -> list[Disclosed]:
    """All that the log tells of data that left, in order."""
    runs = {entry["run"]: entry for entry in entries if entry["event"] == "run"}
    approvers = {entry["id"]: entry["by"] for entry in entries if entry["event"] == "approved"}
    found = []
    for entry in entries:
        event, run = entry["event"], runs.get(entry.get("run", ""), {})
        approval = entry.get("approval") or run.get("approval", "")
        by = approvers.get(approval, "")
        coordinator = entry.get("coordinator") or run.get("coordinator", parties)
        if event == "run":
            told = f"the target of {entry['rows']} rows, SHA-256 {entry['target']}"
            row = ("target (received)", told, entry["rows"], "this node, from " + coordinator)
        elif event == "scores" and entry["best"] is not None:
            told = f"scores of {', '.join(entry['names'])}" if entry["ids"] else "the largest score"
            sums = 1 + (entry["partial"] is not None)
            row = ("scores", told, len(entry["ids"]) + sums, coordinator)
        elif event == "atom":
            told, to = ", ".join(entry["names"]), ", ".join(entry["recipients"])
            row = ("feature", told, entry["values"], to)
        elif event == "handed":
            told = f"{entry['name'] or 'feature {id}'.format(**entry)} of {entry['owner']}"
            row = ("feature (received)", told, entry["values"], "this node, from " + coordinator)
        elif event == "prediction":
            told = f"its part of the score for each row of {entry['alias']!r}"
            row = ("prediction", told, entry["rows"], coordinator)
        elif event == "repeated":
            row = ("scores", "an answer that was given before, once more", 0, coordinator)
        elif event == "fingerprint":
            row = ("fingerprint", "a keyed hash of all features", 1, coordinator)
        elif event == "described":
            told = f"number of rows and features of {entry['alias']!r}"
            row = ("size", told, 2, coordinator)
        else:
            continue
        found.append(Disclosed(entry["time"], *row, approval, by))
    return found


def write_csv(path: Path, entries: Sequence[Entry]) -> None:
    """A row for everything that left."""
    with replacing(path, newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(Disclosed._fields)
        table.writerows([_harmless(cell) for cell in row] for row in disclosed(entries))


def write_html(path: Path, entries: Sequence[Entry], party: str) -> None:
    """A page that needs nothing but itself."""
    rows = disclosed(entries)
    features = sorted({name for one in entries if one["event"] == "atom" for name in one["names"]})
    approvals = [entry["terms"] for entry in entries if entry["event"] == "offer"]
    ids = [entry["id"] for entry in entries if entry["event"] == "offer"]
    decisions = [entry for entry in entries if entry["event"] in ("approved", "withdrawn")]
    refused = [entry for entry in entries if entry["event"] in ("refused", "failed")]
    head = entries[-1]["hash"] if entries else "none"
    sections = [
        f"<h1>What has left {html.escape(party)}</h1>",
        f"<p>{len(features)} features, {sum(r.values for r in rows if r.what == 'scores')} scores "
        f"and {sum(r.values for r in rows if r.what == 'prediction')} predicted values have left. "
        f"The audit log has {len(entries)} lines, unbroken; its head is <code>{head}</code>.</p>",
        _section("Features that have left", ["feature"], [[name] for name in features]),
        _section(
            "What was asked for",
            ["id", *ASKED, "limits"],
            [
                [id, *(terms[name] for name in ASKED), _limits(terms)]
                for id, terms in zip(ids, approvals, strict=True)
            ],
        ),
        _section(
            "What was decided",
            ["time", "decision", "id", "by"],
            [[one["time"], one["event"], one["id"], one["by"]] for one in decisions],
        ),
        _section("In order", list(Disclosed._fields), [list(map(str, row)) for row in rows]),
        _section(
            "Refused",
            ["time", "request", "reason"],
            [[one["time"], one["request"], one["reason"]] for one in refused],
        ),
    ]
    title = f"<title>What has left {html.escape(party)}</title><style>{STYLE}</style>"
    page = f'<!doctype html><html lang="en"><meta charset="utf-8">{title}{"".join(sections)}</html>'
    with replacing(path, encoding="utf-8") as file:
        file.write(page)


def _limits(terms: Entry) -> str:
    radius = f"radius {terms['radius_from']:g} to {terms['radius_to']:g}"
    counts = ("runs", "rounds", "proposals", "atoms", "atoms_total", "predictions")
    kinds = [terms[name] for name in ("objective", "domain", "groups", "folds") if terms[name]]
    until = f"until {datetime.fromtimestamp(terms['expires'], UTC):%Y-%m-%d}"
    return ", ".join([*kinds, radius, *(f"{name} {terms[name]}" for name in counts), until])


def _section(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return f"<h2>{title}</h2><p>Nothing.</p>"
    cells = [_cells("th", header), *(_cells("td", row) for row in rows)]
    return f"<h2>{title}</h2><table>{''.join(cells)}</table>"


def _cells(tag: str, cells: Sequence[str]) -> str:
    inner = "".join(f"<{tag}>{html.escape(visible(str(cell)))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


def _harmless(cell: object) -> str:
    """A cell that no spreadsheet takes for a formula."""
    text = visible(str(cell))
    return f"'{text}" if text[:1] in "=+-@" else text
