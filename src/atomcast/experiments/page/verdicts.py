"""Verdicts: whether what a run measured bears out what the paper says.

A verdict follows from the numbers of a run by a rule that is code, the same at every size, and that
stands beside it in words. A statement about several cases (budgets, problems, numbers of nodes)

- holds, if it is true in every one of them,
- holds partly, if it is true in some,
- does not hold, if it is true in none,
- is not measured, if a run has no such case.

A statement that has no exceptions, such as a bound, does not hold as soon as one case breaks it.
Words of the paper that leave a choice ("much", "similarly", "a bit") are numbers below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum

#: "Significantly smaller": by so much at least.
CLEARLY = 1.1
#: "Much better", "much less", "dramatically": so many times at least.
MUCH = 2.0


class Verdict(StrEnum):
    """Whether a statement of the paper was borne out."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold"
    UNMEASURED = "not measured"


def by_count(cases: Iterable[bool]) -> Verdict:
    """The verdict on a statement that is true in some cases and not in others."""
    found = list(cases)
    if not found:
        return Verdict.UNMEASURED
    if all(found):
        return Verdict.HOLDS
    return Verdict.PARTLY if any(found) else Verdict.FAILS


def without_exception(cases: Iterable[bool]) -> Verdict:
    """The verdict on a statement that a single case can refute."""
    verdict = by_count(cases)
    return Verdict.FAILS if verdict is Verdict.PARTLY else verdict


def graded(x: float, enough: float, some: float) -> Verdict:
    """Holds from one level on, partly from another."""
    if math.isnan(x):
        return Verdict.UNMEASURED
    return Verdict.HOLDS if x >= enough else Verdict.PARTLY if x >= some else Verdict.FAILS
