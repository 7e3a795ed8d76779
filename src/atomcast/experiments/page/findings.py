"""What the paper says beside what a run measured, and the words for both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from atomcast._checks import visible
from atomcast.experiments.page.verdicts import Verdict, by_count, without_exception

#: What was measured, where nothing was.
NO_CASE = "no such case"


class Finding(NamedTuple):
    """A statement of the paper beside what a run measured."""

    claim: str
    where: str  # in the paper
    rule: str  # how the verdict follows from the numbers
    measured: str  # the numbers of this run, as a sentence
    verdict: Verdict
    must: bool = False  # a theorem, which holds whatever the data: if not, something is broken

    @property
    def broken(self) -> bool:
        """Whether something that must hold does not."""
        return self.must and self.verdict in (Verdict.PARTLY, Verdict.FAILS)


def finding(
    claim: str, where: str, rule: str, measured: str, outcome: Iterable[bool] | Verdict
) -> Finding:
    """A statement beside what was measured, if anything was, and a verdict, if need be by cases."""
    verdict = outcome if isinstance(outcome, Verdict) else by_count(outcome)
    return Finding(claim, where, rule, measured or NO_CASE, verdict)


def theorem(claim: str, where: str, rule: str, measured: str, cases: Iterable[bool]) -> Finding:
    """A statement that must hold in every case."""
    return Finding(claim, where, rule, measured, without_exception(cases), must=True)


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
