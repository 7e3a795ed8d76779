"""Whatever a coordinator says, a node answers, and refuses what makes no sense for a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import get_type_hints

import numpy as np
import pytest

from atomcast.federated.kinds import KINDS, Begin, Floats, Ids
from atomcast.federated.schema import decode, encode
from federation import ask, make_data, offline_node

TEXTS = ["", "cohort", "a\nb", "x" * 4000, "logistic", "multinomial", "group ball", "l1 ball"]
CHOICES = {
    bool: [True, False],
    int: [-1, 0, 1, 3, 8, 16, 2**40, -(2**63), 2**63 - 1],
    float: [0.0, -1.0, 1.5, 2.0, np.nan, np.inf, -np.inf, 1e308],
    str: TEXTS,
    bytes: [b"", b"\0" * 40, b"-----BEGIN CERTIFICATE-----"],
}
SIZES = [0, 1, 2, 3, 16, 60, 61]
APPROVED = {
    "folds": {"folds": np.arange(60) % 3},
    "groups": {
        "domain": "group ball",
        "groups": np.arange(16) // 4,
        "group_weights": np.full(4, 2.0),
    },
    "classes": {"objective": "multinomial", "target": np.arange(60.0) % 3},
}


def anything(rng, form):
    """A value of a field, often one that cannot be."""
    if form in (Floats, Ids):
        numbers = CHOICES[float] if form == Floats else CHOICES[int]
        return rng.choice(np.array(numbers), size=rng.choice(SIZES))
    return CHOICES[form][rng.integers(len(CHOICES[form]))]


@pytest.mark.parametrize("kind", APPROVED)
def test_nothing_that_can_be_said_makes_a_node_fail(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    parts, y = make_data()
    how = {"runs": 100, "rounds": 100, "radius": (1.0, 2.0), "posed": APPROVED[kind]}
    node, begin, _ = offline_node(tmp_path, parts[0], y, **how)
    rng, hints = np.random.default_rng(0), get_type_hints(Begin)
    for _ in range(80):
        other = KINDS[rng.integers(len(KINDS))]
        field = rng.choice(list(hints))
        for message in (
            other(**{name: anything(rng, form) for name, form in get_type_hints(other).items()}),
            replace(begin, **{field: anything(rng, hints[field])}),
            replace(begin, radius=rng.uniform(1.0, 2.0)),
            replace(ask(), ids=anything(rng, Ids), weights=anything(rng, Floats)),
            ask(count=int(rng.integers(1, 5))),
        ):
            assert node.answer(decode(encode(message))) is not None
    entries = node._records.log.entries
    node.close()
    assert [entry for entry in entries if entry["event"] == "failed"] == []
    told = {entry["event"] for entry in entries}
    assert {"run", "scores", "refused"} <= told  # it was about something
    assert sum(entry["event"] == "run" for entry in entries) <= 100
