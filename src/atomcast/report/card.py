"""A model card: what a model file says of itself, in Markdown, for whoever is handed it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from atomcast._checks import visible
from atomcast.report.summary import outcome_rows

#: Atoms that a card lists; the file has all of them.
LISTED = 20

#: What a file cannot know.
OPEN = (
    "Intended use, and uses that are out of scope",
    "Who the rows were, when, and how the target was measured",
    "How good the predictions are on rows that were not in the fit, and for which groups of people",
)


def model_card(content: dict[str, Any]) -> str:
    """The card of a model, from what `atomcast inspect --json` says of it.

    Parameters
    ----------
    content : dict
        The content of a model file in plain values; its texts may be anybody's, and are escaped.
    """
    sections = [
        f"# Model card: {_text(content['estimator'])}",
        f"Fitted and written by {_text(content['written_by'])}; made from the model file alone.",
        _table("Fit", ("", ""), outcome_rows({**content, "atoms": len(content["atoms"])})),
        _certificate(content),
        _table("Parameters", ("parameter", "value"), content["parameters"].items()),
        _atoms(content),
        _preparation(content),
        _disclosed(content),
        "## For you to fill in\n\n" + "\n".join(f"- {line}: ..." for line in OPEN),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _certificate(content: dict[str, Any]) -> str:
    if content.get("gap") is None:
        return ""
    return (
        f"The objective is at most {content['gap']:.3g} above the smallest possible one, for these "
        "data and parameters: that is certified. It says nothing of new data."
    )


def _atoms(content: dict[str, Any]) -> str:
    owner = {one["atom"]: one["who"] for one in content["disclosures"]}
    rows = [
        (one["name"] or one["atom"], _number(one["weight"]), owner.get(one["atom"], ""))
        for one in content["atoms"][:LISTED]
    ]
    kind = content["atoms_are"]
    title = f"What it uses: {len(content['atoms']):,} {kind} of {content['features']:,}"
    title = title if kind == "features" else f"What it uses: {len(content['atoms']):,} {kind}"
    more = len(content["atoms"]) - len(rows)
    table = _table(title, (kind, "weight", "sent by"), rows)
    return table + (f"\n\nand {more:,} more, with smaller weights." if more else "")


def _preparation(content: dict[str, Any]) -> str:
    rows = content.get("preparation") or ()
    return _table("How tables were prepared, by each party", ("column", "becomes"), rows)


def _disclosed(content: dict[str, Any]) -> str:
    counts: dict[str, list[int]] = {}
    for one in content["disclosures"]:
        count = counts.setdefault(one["who"], [0, 0])
        count[0], count[1] = count[0] + 1, count[1] + one["values"]
    rows = [(who, *(f"{n:,}" for n in count)) for who, count in counts.items()]
    if not rows:
        return "## What left whom\n\nNo atom left its node."
    return _table("What left whom", ("node", "atoms sent", "values"), rows)


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [f"| {' | '.join(map(_text, row))} |" for row in rows]
    if not lines:
        return ""
    top = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join([f"## {title}", "", *top, *lines])


def _number(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_number, value))
    return f"{value:.6g}"


def _text(value: Any) -> str:
    """A text in which nothing is Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>|&~])", r"\\\1", visible(str(value)))
