"""`atomcast inspect MODEL`: what a model file says of itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atomcast.commands.mistakes import Debug, clear_errors

if TYPE_CHECKING:
    from atomcast.network.disclosure import Disclosed, Disclosure
    from atomcast.storage.container import ModelFile

#: Lines of a long table that are shown unless all are asked for.
SHOWN = 10
#: Columns of tables that are texts.
_TEXTS = ("name", "node", "what", "when")


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Show all atoms and disclosures, not just the first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with everything.")] = False,
    card: Annotated[
        bool, typer.Option("--card", help="Print a model card in Markdown, to hand on.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show a saved model: its fit, its atoms, and who disclosed what."""
    with clear_errors(debug):
        from atomcast.report.printing import print_json
        from atomcast.saving.model_file import making_sense
        from atomcast.storage.container import read_model_file

        file = read_model_file(model)
        with making_sense(str(model)):
            content = described(file)
        if card:
            from atomcast.report.card import model_card

            print(model_card(content), end="")
        elif as_json:
            print_json(content)
        else:
            _print(content, None if everything else SHOWN)


def described(file: ModelFile) -> dict[str, Any]:
    """The content of a model file in plain values."""
    import numpy as np

    from atomcast.data.prepared import described as prepared
    from atomcast.report.summary import outcome
    from atomcast.saving.certificate import certificate_in
    from atomcast.saving.model_file import (
        atom_names,
        atoms_are,
        atoms_in,
        feature_count,
        preparation_in,
    )
    from atomcast.saving.parameters import readable
    from atomcast.storage.container import json_object

    certificate = certificate_in(file)
    names = atom_names(file)
    ids, weights = atoms_in(file)
    size = np.abs(weights)
    if size.ndim > 1:
        size = size.max(axis=1)
    order = np.lexsort((ids, -size))
    disclosures = certificate.disclosures if certificate else ()
    by_kind = certificate.by_kind if certificate else {}
    known = {d.atom: d.name for d in disclosures}
    atoms = [
        {
            "atom": int(ids[k]),
            "name": names[ids[k]] if names is not None else known.get(int(ids[k]), ""),
            "weight": weights[k].tolist(),
        }
        for k in order
    ]
    return {
        "estimator": file.header["estimator"],
        "written_by": f"atomcast {file.header.get('atomcast', '?')}",
        "schema": file.header["schema"],
        "parameters": {k: readable(v) for k, v in json_object(file.header, "parameters").items()},
        "features": feature_count(file),
        "atoms_are": atoms_are(file.header["estimator"]),
        **outcome(certificate),
        "atoms": atoms,
        "communication": {kind: asdict(count) for kind, count in by_kind.items()},
        "parties": certificate and certificate.parties,
        "disclosures": [_plain(one) for one in disclosures],
        "told": [_plain(one) for one in (certificate.told if certificate else ())],
        "preparation": prepared(preparation_in(file) or ()),
        "audit_heads": certificate and certificate.audit_heads,
    }


def _plain(one: Disclosure) -> dict[str, Any]:
    """A disclosure by the names of its fields, and in words who made it and when."""
    return {**asdict(one), "who": one.who, "when": one.when}


def _print(content: dict[str, Any], limit: int | None) -> None:
    from atomcast.report.printing import print_table
    from atomcast.report.summary import outcome_rows

    title = f"{content['estimator']} ({content['written_by']})"
    print_table(title, None, _parameter_rows(content["parameters"]), text_columns=(0, 1))
    figures = {**content, "atoms": len(content["atoms"])}
    if content["atoms_are"] == "features":
        figures["atoms_available"] = content["features"]
    print_table("Fit", None, outcome_rows(figures))
    _print_some(
        "Atoms by weight",
        ("atom", "name", "weight"),
        [(str(a["atom"]), a["name"], _short(a["weight"])) for a in content["atoms"]],
        limit,
    )
    if content["preparation"]:
        _print_some("Prepared columns", ("name", "what"), content["preparation"], limit)
    if not content["disclosures"]:
        print("No atom left its node.")
    if not content["communication"]:
        return
    print_table(
        "Communication",
        ("kind", "messages", "values", "bytes"),
        [
            (kind, *(f"{count[unit]:,}" for unit in ("messages", "values", "bytes")))
            for kind, count in content["communication"].items()
        ],
    )
    if content["disclosures"]:
        _print_disclosures(content["disclosures"], limit)
    if content["told"]:
        _print_told(content["told"], limit)
    if content["audit_heads"]:
        heads = list(content["audit_heads"].items())
        print_table("Heads of audit logs", ("party", "head"), heads, text_columns=(0, 1))
    print("Every node learns these (of predictions, their sums) and the scores of winners.")


def _parameter_rows(parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """A row a parameter, and one for each parameter of a solver."""
    rows = []
    for name, value in parameters.items():
        nested = value.items() if isinstance(value, dict) else [("", value)]
        rows += [(f"{name}.{key}" if key else name, _short(item)) for key, item in nested]
    return rows


def _print_disclosures(disclosures: list[dict[str, Any]], limit: int | None) -> None:
    """Who disclosed how many atoms, and which."""
    nodes = sorted({d["node"] for d in disclosures})
    sent = {node: [d for d in disclosures if d["node"] == node] for node in nodes}
    _print_some(
        "Atoms that left their node",
        ("node", "times", "atoms", "values"),
        [
            (
                those[0]["who"],
                f"{len(those):,}",
                f"{len({d['atom'] for d in those}):,}",
                f"{sum(d['values'] for d in those):,}",
            )
            for those in sent.values()
        ],
        limit,
    )
    _print_some(
        "Disclosures",
        ("when", "node", "atom", "name", "values"),
        [(d["when"], d["who"], str(d["atom"]), d["name"], f"{d['values']:,}") for d in disclosures],
        limit,
    )


def _print_told(told: list[dict[str, Any]], limit: int | None) -> None:
    """Who told the others what beside atoms, added up over the phases of the fit."""
    words: dict[Disclosed, str] = {
        "target": "the target",
        "prediction": "predictions for held-out rows",
        "candidate": "candidates, to the coordinator alone",
        "mixture": "mixtures of atoms",
    }
    totals: dict[tuple[str, str], int] = {}
    for d in told:
        key = words[d["kind"]], d["who"]
        totals[key] = totals.get(key, 0) + d["values"]
    rows: list[tuple[str, ...]] = [(*key, f"{values:,}") for key, values in totals.items()]
    _print_some("Told beside atoms", ("what", "node", "values"), rows, limit)


def _print_some(
    title: str, header: tuple[str, ...], rows: list[tuple[str, ...]], limit: int | None
) -> None:
    """A table of numbers and names, cut at `limit`; a column of names that are all empty goes."""
    from atomcast.report.printing import print_table

    if limit is not None and len(rows) > limit:
        title += f" (the first {limit} of {len(rows):,}; --all shows all)"
        rows = rows[:limit]
    kept = [j for j, name in enumerate(header) if name != "name" or any(row[j] for row in rows)]
    print_table(
        title,
        [header[j] for j in kept],
        [[row[j] for j in kept] for row in rows],
        text_columns=[place for place, j in enumerate(kept) if header[j] in _TEXTS],
    )


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, dict):
        return ", ".join(f"{key}={_short(item)}" for key, item in value.items())
    return str(value)
