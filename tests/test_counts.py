"""The work that fits take, counted, is not more than what is stored beside the benchmarks."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def counts(monkeypatch):
    """The module `benchmarks/counts.py`, as `make bench-check` runs it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import counts

    return counts


def test_no_fit_takes_more_than_it_used_to(counts):
    assert counts.larger(counts.counts(), json.loads(counts.STORED.read_text())) == []


def test_growth_is_told_by_case_and_count(counts):
    stored = json.loads(counts.STORED.read_text())
    found = {name: dict(case) for name, case in stored.items()}
    found["Lasso, text"]["rounds"] = 3 * stored["Lasso, text"]["rounds"]
    (told,) = counts.larger(found, stored)
    assert told.startswith("Lasso, text")
    assert "rounds" in told
    del found["Lasso, text"]
    assert counts.larger(found, stored) != []
