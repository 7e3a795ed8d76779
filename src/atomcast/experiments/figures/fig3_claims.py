"""What the paper says of figure 3, beside what each method had to send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from atomcast.experiments.page.findings import Finding, count, finding, not_measured, spread
from atomcast.experiments.page.verdicts import MUCH, Verdict, by_count
from atomcast.experiments.runs.cost_ranges import LEFT_OUT, Range, known
from atomcast.experiments.runs.curves import BETTER

#: The steps, as the table calls them.
OURS = ("classic", "line_search", "once", "corrective", "compound", "auto")


class Needs(NamedTuple):
    """What each method had to send to do 95 % of the way; inf if a run did not get there.

    `paper` is the better of the two steps of the paper, run by run.
    `rule` is s_A s_alpha n, which the paper expects to be about 100 where both methods tie. `admm`
    is of the best parameters and `worst_admm` of the worst; `least_...` is what is known to be
    needed at least, also where a run did not get there.
    """

    atom_density: float
    solution_density: float
    rule: float
    support: float
    runs: int
    paper: float
    classic: float
    line_search: float
    once: float
    corrective: float
    compound: float
    auto: float
    cocoa: float
    admm: float
    parameters: str
    worst_admm: float
    least_paper: float
    least_classic: float
    least_line_search: float
    least_once: float
    least_corrective: float
    least_compound: float
    least_auto: float
    least_cocoa: float
    least_admm: float
    least_worst_admm: float


#: s_A s_alpha n at which the paper sees both methods alike, and how far from it that may be.
TIE, NEAR = 100.0, 3.0
#: "Similarly": neither needs more than so many times what the other does.
SIMILAR = 3.0
WHERE = "section 6.2, figure 3"
NAMES = {
    "admm": "ADMM", "paper": "dFW", "classic": "the classic step", "line_search": "line search",
    "once": "the classic step with atoms sent once", "corrective": "the corrective step",
    "compound": "compound atoms", "auto": "the step auto",
}  # fmt: skip


def findings(problems: Sequence[Needs]) -> list[Finding]:
    """Who sends less, on problems of different density."""
    tuning = not_measured(
        "dFW has no parameter to tune",
        f"introduction; {WHERE}",
        "nothing to be measured: either step is given a rule when to stop, and no more",
    )
    return [
        _sparse([p for p in problems if p.rule * NEAR < TIE]),
        tuning,
        *_dense([p for p in problems if p.rule > TIE * NEAR * (1 + 1e-9)]),
        _alike([p for p in problems if TIE / NEAR <= p.rule <= TIE * NEAR]),
    ]


def _sparse(problems: Sequence[Needs]) -> Finding:
    """Less by all means, and much less on the whole."""
    ratios = [_ratio(problem, "paper", "admm") for problem in problems]
    less = known(times.above(1) for times in ratios)
    verdict = by_count(less)
    # Of what ADMM needs, where it did not arrive, only what it has spent counts.
    factors = [times.low for times in ratios if times.low > 1]
    if verdict is Verdict.HOLDS and np.exp(np.mean(np.log(factors))) < MUCH:
        verdict = Verdict.PARTLY
    return finding(
        "dFW requires much less communication than ADMM when the data and/or the solution are "
        "sparse",
        f"{WHERE}; introduction (ii) says less",
        f"on problems with s_A s_alpha n < 33 dFW sends fewer values, {BETTER}, than the best "
        "ADMM: on all, and half as many or less on the (geometric) average; on some; on none"
        + LEFT_OUT,
        _said(problems, [("admm", ours) for ours in ("paper", *OURS)], f"fewer on {_of(less)}"),
        verdict,
    )


def _dense(problems: Sequence[Needs]) -> list[Finding]:
    """Has ADMM an edge, and does it go if its parameters are chosen badly?"""
    less = known(_ratio(problem, "admm", "paper").above(1) for problem in problems)
    edge = [problem for problem in problems if _ratio(problem, "admm", "paper").above(1)]
    lost = known(
        True
        if problem.paper < np.inf and problem.worst_admm == np.inf
        else _ratio(problem, "paper", "worst_admm").above(1)
        for problem in edge
    )
    worst = f"the worst choice loses on {_of(lost)}; the worst to dFW: "
    worst += f"{_ratios(edge, 'worst_admm', 'paper')}; to the best: "
    return [
        finding(
            "ADMM has the edge in the dense case",
            WHERE,
            "on problems with s_A s_alpha n > 300 the best ADMM sends fewer values than dFW, "
            f"{BETTER}: on all, on some, on none" + LEFT_OUT,
            _said(problems, [(ours, "admm") for ours in ("paper", *OURS)], f"fewer on {_of(less)}"),
            less,
        ),
        finding(
            "ADMM has that edge only if its parameters are properly tuned",
            WHERE,
            "on problems with s_A s_alpha n > 300 on which the best of the 6 choices of rho and "
            "alpha sends fewer values than dFW, the worst sends more, or does not arrive where dFW "
            "does: on all, on some, on none" + LEFT_OUT,
            worst + _ratios(edge, "worst_admm", "admm") if edge else "",
            lost,
        ),
    ]


def _alike(problems: Sequence[Needs]) -> Finding:
    """The rule of thumb."""
    paper, corrective = (
        known(_similar(_ratio(problem, step, "admm")) for problem in problems)
        for step in ("paper", "corrective")
    )
    verdict = by_count(paper)
    if verdict in (Verdict.FAILS, Verdict.UNMEASURED) and any(corrective):
        verdict = Verdict.PARTLY
    return finding(
        "both perform similarly when s_A s_alpha n = O(100)",
        WHERE,
        f"where that is 33 to 300, dFW, {BETTER}, sends at least a third of what the best ADMM "
        "does and at most three times as much: on all such problems; on some, or with the "
        "corrective step only; on none" + LEFT_OUT,
        _said(problems, [(ours, "admm") for ours in ("paper", *OURS)]),
        verdict,
    )


def _ratio(problem: Needs, ours: str, theirs: str) -> Range:
    """How many times the values of one method are those of another."""
    return Range.of(problem, theirs).over(Range.of(problem, ours))


def _similar(times: Range) -> bool | None:
    if times.low * SIMILAR >= 1 and times.high <= SIMILAR:
        return True
    return False if times.low > SIMILAR or times.high * SIMILAR < 1 else None


def _of(cases: Sequence[bool]) -> str:
    some = f"{sum(cases)} of {count(len(cases), 'problem')}"
    return some if cases else "no problem that is decided"


def _said(problems: Sequence[Needs], pairs: Sequence[tuple[str, str]], *first: str) -> str:
    """How many times as much one of a pair sends as the other, after what is to be said first."""
    texts = [f"{NAMES[a]} to {NAMES[b]}: {_ratios(problems, a, b)}" for a, b in pairs]
    return "; ".join([*first, *texts]) if problems else ""


def _ratios(problems: Sequence[Needs], ours: str, theirs: str) -> str:
    """How many times the values of one method are those of another, where both arrived."""
    pairs = [(getattr(problem, ours), getattr(problem, theirs)) for problem in problems]
    both = [a / b for a, b in pairs if max(a, b) < np.inf]
    missing = len(problems) - len(both)
    texts = [f"{spread(both)} times"] if both else []
    return ", ".join([*texts, f"not both arrived on {missing}"] if missing else texts)
