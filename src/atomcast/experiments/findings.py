"""What the paper says, what a run measured, and whether the one bears out the other.

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
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from atomcast.report.tables import visible

#: "Significantly smaller": by so much at least.
CLEARLY = 1.1
#: "Much better", "much less", "dramatically": so many times at least.
MUCH = 2.0
#: What was measured, where nothing was.
NO_CASE = "no such case"


class Verdict(StrEnum):
    """Whether a statement of the paper was borne out."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold"
    UNMEASURED = "not measured"


class Finding(NamedTuple):
    """A statement of the paper beside what a run measured.

    Attributes
    ----------
    claim : str
        The statement, in short.
    where : str
        Where in the paper it stands.
    rule : str
        How the verdict follows from the numbers.
    measured : str
        The numbers of this run, as a sentence.
    verdict : Verdict
    must : bool
        Whether it is a theorem, which holds whatever the data: if not, something is broken.
    """

    claim: str
    where: str
    rule: str
    measured: str
    verdict: Verdict
    must: bool = False

    @property
    def broken(self) -> bool:
        """Whether something that must hold does not."""
        return self.must and self.verdict in (Verdict.PARTLY, Verdict.FAILS)


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


def not_measured(claim: str, where: str, why: str) -> Finding:
    """A statement that an experiment does not look at."""
    return Finding(claim, where, "-", why, Verdict.UNMEASURED)


def number(x: float) -> str:
    """A number for a sentence: three digits, and all of them before the point if it has more."""
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def count(n: int, what: str) -> str:
    """So many of something."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def spread(numbers: Iterable[float]) -> str:
    """The range of some numbers in words; those that are infinite or NaN are left out."""
    finite = [x for x in numbers if math.isfinite(x)]
    if not finite:
        return NO_CASE
    low, high = number(min(finite)), number(max(finite))
    return low if low == high else f"{low} to {high}"


def print_findings(findings: Sequence[Finding]) -> None:
    """Print statements and verdicts below the tables of an experiment."""
    print("What the paper says, and what was measured")
    for finding in findings:
        print(visible(f"  {finding.verdict}: {finding.claim} ({finding.where})"))
        print(visible(f"    {finding.measured}"))
    print()
