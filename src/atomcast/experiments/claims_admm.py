"""Section 6.2, figure 3: what the paper says of dFW beside ADMM on synthetic problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from atomcast.experiments.censored import LEFT_OUT, Range, known, ratio, settled
from atomcast.experiments.findings import (
    MUCH,
    NO_CASE,
    Finding,
    Verdict,
    by_count,
    count,
    not_measured,
    spread,
)

if TYPE_CHECKING:
    from atomcast.experiments.fig3 import Verdict as Problem

#: s_A s_alpha n at which the paper sees both methods alike, and how far from it that may be.
TIE, NEAR = 100.0, 3.0
#: "Similarly": neither needs more than so many times what the other does.
SIMILAR = 3.0
WHERE = "section 6.2, figure 3"


def synthetic(problems: Sequence[Problem]) -> list[Finding]:
    """Who sends less, on problems of different density."""
    dense = [problem for problem in problems if problem.rule > TIE * NEAR * (1 + 1e-9)]
    return [
        _sparse([problem for problem in problems if problem.rule * NEAR < TIE]),
        not_measured(
            "dFW has no parameter to tune",
            f"introduction; {WHERE}",
            "nothing to be measured: the classic step is given a rule when to stop, and no more",
        ),
        _dense(dense),
        _tuning(dense),
        _alike([problem for problem in problems if TIE / NEAR <= problem.rule <= TIE * NEAR]),
    ]


def _sparse(problems: Sequence[Problem]) -> Finding:
    """Less by all means, and much less on the whole."""
    ratios = [_ratio(problem, "classic", "admm") for problem in problems]
    less = known(settled(*times, 1) for times in ratios)
    verdict = by_count(less)
    # Of what ADMM needs, where it did not arrive, only what it has spent counts.
    factors = [low for low, _ in ratios if low > 1]
    if verdict is Verdict.HOLDS and np.exp(np.mean(np.log(factors))) < MUCH:
        verdict = Verdict.PARTLY
    return Finding(
        "dFW requires much less communication than ADMM when the data and/or the solution are "
        "sparse",
        f"{WHERE}; introduction (ii) says less",
        "on problems with s_A s_alpha n < 33 the classic step sends fewer values than the best "
        "ADMM: on all, and half as many or less on the (geometric) average; on some; on none"
        + LEFT_OUT,
        _sentence(less, problems, "admm", "classic once corrective"),
        verdict,
    )


def _dense(problems: Sequence[Problem]) -> Finding:
    less = known(settled(*_ratio(problem, "admm", "classic"), 1) for problem in problems)
    return Finding(
        "ADMM has the edge in the dense case",
        WHERE,
        "on problems with s_A s_alpha n > 300 the best ADMM sends fewer values than the classic "
        "step: on all, on some, on none" + LEFT_OUT,
        _sentence(less, problems, "classic once corrective", "admm"),
        by_count(less),
    )


def _tuning(problems: Sequence[Problem]) -> Finding:
    """Does the edge of ADMM go if its parameters are chosen badly?"""
    edge = [p for p in problems if settled(*_ratio(p, "admm", "classic"), 1)]
    lost = known(
        True
        if problem.classic < np.inf and problem.worst_admm == np.inf
        else settled(*_ratio(problem, "classic", "worst_admm"), 1)
        for problem in edge
    )
    return Finding(
        "ADMM has that edge only if its parameters are properly tuned",
        WHERE,
        "on problems with s_A s_alpha n > 300 on which the best of the 6 choices of rho and alpha "
        "sends fewer values than the classic step, the worst sends more, or does not arrive where "
        "the classic step does: on all, on some, on none" + LEFT_OUT,
        f"the worst choice loses on {_of(lost)}; the worst to the classic step: "
        f"{_ratios(edge, 'worst_admm', 'classic')}; to the best: "
        f"{_ratios(edge, 'worst_admm', 'admm')}"
        if edge
        else NO_CASE,
        by_count(lost),
    )


def _alike(problems: Sequence[Problem]) -> Finding:
    """The rule of thumb."""
    classic, corrective = (
        known(_similar(*_ratio(problem, step, "admm")) for problem in problems)
        for step in ("classic", "corrective")
    )
    verdict = by_count(classic)
    if verdict in (Verdict.FAILS, Verdict.UNMEASURED) and any(corrective):
        verdict = Verdict.PARTLY
    return Finding(
        "both perform similarly when s_A s_alpha n = O(100)",
        WHERE,
        "where that is 33 to 300, the classic step sends at least a third of what the best ADMM "
        "does and at most three times as much: on all such problems; on some, or with the "
        "corrective step only; on none" + LEFT_OUT,
        f"the classic step to ADMM: {_ratios(problems, 'classic', 'admm')}; the corrective step to "
        f"ADMM: {_ratios(problems, 'corrective', 'admm')}"
        if problems
        else NO_CASE,
        verdict,
    )


def _ratio(problem: Problem, ours: str, theirs: str) -> Range:
    """How many times the values of one method are those of another."""
    mine, his = (
        (getattr(problem, f"least_{name}"), getattr(problem, name)) for name in (ours, theirs)
    )
    return ratio(mine, his)


def _similar(low: float, high: float) -> bool | None:
    if low * SIMILAR >= 1 and high <= SIMILAR:
        return True
    return False if low > SIMILAR or high * SIMILAR < 1 else None


def _of(cases: Sequence[bool]) -> str:
    if not cases:
        return "no problem that is decided"
    return f"{sum(cases)} of {count(len(cases), 'problem')}"


def _sentence(less: Sequence[bool], problems: Sequence[Problem], ours: str, theirs: str) -> str:
    """How often one sends less, and how many times as much each of some sends as each other."""
    if not problems:
        return NO_CASE
    names = {"admm": "ADMM", "classic": "the classic step", "corrective": "the corrective step"}
    names["once"] = "the classic step with atoms sent once"
    texts = [
        f"{names[a]} to {names[b]}: {_ratios(problems, a, b)}"
        for a in ours.split()
        for b in theirs.split()
    ]
    return "; ".join([f"fewer on {_of(less)}", *texts])


def _ratios(problems: Sequence[Problem], ours: str, theirs: str) -> str:
    """How many times the values of one method are those of another, where both arrived."""
    pairs = [(getattr(problem, ours), getattr(problem, theirs)) for problem in problems]
    both = [a / b for a, b in pairs if max(a, b) < np.inf]
    missing = len(problems) - len(both)
    text = f"{spread(both)} times" if both else ""
    late = f"not both arrived on {missing}" if missing else ""
    return ", ".join(part for part in (text, late) if part)
