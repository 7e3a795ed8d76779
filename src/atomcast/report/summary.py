"""The few figures that say how a run went, for people and for machines."""

from __future__ import annotations

from typing import Any

from atomcast.network.wave import Count
from atomcast.saving.certificate import Certificate


def outcome(certificate: Certificate | None) -> dict[str, Any]:
    """The figures of a run by name, as --json prints them; none if there was no run."""
    if certificate is None:
        return {}
    names = ("status", "objective", "gap", "relative_gap", "rounds", "nodes")
    traffic = ("atoms_sent", "values", "bytes", "messages")
    figures = {name: getattr(certificate, name) for name in (*names, *traffic)}
    figures["different_atoms"] = len({one.atom for one in certificate.disclosures})
    for kind in ("prediction", "target"):
        figures[f"{kind}_values"] = certificate.by_kind.get(kind, Count()).values
    if certificate.uncertified:
        figures["uncertified"] = ", ".join(certificate.uncertified)
    return figures


#: What a table calls a figure, and how it prints it.
FIGURES: dict[str, tuple[str, str]] = {
    "rows": ("rows", ",d"),
    "nodes": ("nodes", ",d"),
    "status": ("status", "s"),
    "objective": ("objective", ".8g"),
    "relative_gap": ("relative gap", ".1e"),
    "uncertified": ("not certified for", "s"),
    "rounds": ("rounds", ",d"),
    "beta": ("radius", ".6g"),
    "alpha": ("alpha", ".6g"),
    "C": ("C", ".6g"),
    "atoms": ("atoms in the model", ",d"),
    "atoms_available": ("atoms to choose from", ",d"),
    "atoms_sent": ("atoms sent", ",d"),
    "different_atoms": ("different atoms sent", ",d"),
    "values": ("values sent", ",d"),
    "prediction_values": ("of these, predictions", ",d"),
    "target_values": ("values of the target", ",d"),
    "bytes": ("bytes sent", ",d"),
    "seconds": ("seconds", ".2f"),
}


def outcome_rows(*summaries: dict[str, Any]) -> list[tuple[str, ...]]:
    """Rows of a table, one a figure, with a column for each run that is summarised."""
    return [
        (title, *(format(summary[name], form) for summary in summaries))
        for name, (title, form) in FIGURES.items()
        if summaries[0].get(name) is not None
        and any(_is_news(name, summary) for summary in summaries)
    ]


def _is_news(name: str, summary: dict[str, Any]) -> bool:
    """Whether a figure says something that the others do not."""
    if name == "different_atoms":
        return bool(summary[name] != summary["atoms_sent"])
    return name not in ("prediction_values", "target_values") or summary[name] > 0
