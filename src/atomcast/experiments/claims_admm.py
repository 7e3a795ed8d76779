"""Section 6.2, figure 3: what the paper says of dFW beside ADMM on synthetic problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from atomcast.experiments import admm_runs, curves
from atomcast.experiments.censored import Range, cost_range, known, settled
from atomcast.experiments.curves import CLASSIC, CORRECTIVE, ONCE, Point
from atomcast.experiments.findings import MUCH, Finding, Verdict, by_count, spread

if TYPE_CHECKING:
    from atomcast.experiments.fig3 import Verdict as Problem

#: s_A s_alpha n at which the paper sees both methods alike, and how far from it that may be.
TIE, NEAR = 100.0, 3.0
#: "Similarly": neither needs more than so many times what the other does.
SIMILAR = 3.0
WHERE = "section 6.2, figure 3"
LEFT_OUT = ". Problems on which neither arrives, or a run ended too early to tell, do not count"


class Case(NamedTuple):
    """The values that each method needs on a problem."""

    rule: float
    classic: Range
    once: Range
    corrective: Range
    admm: Range


def synthetic(
    problems: Sequence[Problem], rows: Sequence[Point], panel_of: Callable[[Problem], str]
) -> list[Finding]:
    """Who sends less, on problems of different density.

    Parameters
    ----------
    problems : sequence of Verdict
    rows : sequence of Point
        What the methods have sent, also those that did not arrive.
    panel_of : callable
        The panel of a problem in the rows.
    """

    def case(problem: Problem) -> Case:
        costs = {CLASSIC: problem.classic, ONCE: problem.once, CORRECTIVE: problem.corrective}
        costs[problem.parameters] = problem.admm
        panel = panel_of(problem)
        ranges = [cost_range(cost, rows, panel, m, "values") for m, cost in costs.items()]
        return Case(problem.rule, *ranges)

    cases = [case(problem) for problem in problems]
    return [_sparse(cases), _dense(cases), _alike(cases)]


def _sparse(cases: Sequence[Case]) -> Finding:
    """Less by all means, and much less on the whole."""
    chosen = [case for case in cases if case.rule * NEAR < TIE]
    ahead = [settled(_less, case.classic, case.admm) for case in chosen]
    less = known(ahead)
    verdict = by_count(less)
    # Of what ADMM needs, where it did not arrive, only what it has spent counts.
    factors = [c.admm[0] / c.classic[0] for c, yes in zip(chosen, ahead, strict=True) if yes]
    if verdict is Verdict.HOLDS and np.exp(np.mean(np.log(factors))) < MUCH:
        verdict = Verdict.PARTLY
    return Finding(
        "dFW requires much less communication than ADMM when the data and/or the solution are "
        "sparse",
        f"abstract; {WHERE}",
        "on problems with s_A s_alpha n < 33 the classic step sends fewer values than the best "
        "ADMM: on all, and half as many or less on the (geometric) average; on some; on none"
        + LEFT_OUT,
        f"fewer on {sum(less)} of {len(less)} problems; ADMM to the classic step: "
        f"{_ratios(chosen, 'admm', 'classic')}; to the same with atoms sent once: "
        f"{_ratios(chosen, 'admm', 'once')}; to the corrective step: "
        f"{_ratios(chosen, 'admm', 'corrective')}",
        verdict,
    )


def _dense(cases: Sequence[Case]) -> Finding:
    chosen = [case for case in cases if case.rule >= TIE * (1 - 1e-9)]
    less = known([settled(_less, case.admm, case.classic) for case in chosen])
    return Finding(
        "ADMM has the edge in the dense case",
        WHERE,
        "on problems with s_A s_alpha n >= 100 the best ADMM sends fewer values than the classic "
        "step: on all, on some, on none" + LEFT_OUT,
        f"fewer on {sum(less)} of {len(less)} problems; the classic step to ADMM: "
        f"{_ratios(chosen, 'classic', 'admm')}; with atoms sent once: "
        f"{_ratios(chosen, 'once', 'admm')}; the corrective step to ADMM: "
        f"{_ratios(chosen, 'corrective', 'admm')}",
        by_count(less),
    )


def _alike(cases: Sequence[Case]) -> Finding:
    """The rule of thumb."""
    chosen = [case for case in cases if TIE / NEAR <= case.rule <= TIE * NEAR]
    classic, corrective = (
        known([settled(_similar, getattr(case, step), case.admm, SIMILAR) for case in chosen])
        for step in ("classic", "corrective")
    )
    verdict = by_count(classic)
    if verdict in (Verdict.FAILS, Verdict.UNMEASURED) and any(corrective):
        verdict = Verdict.PARTLY
    return Finding(
        "both perform similarly when s_A s_alpha n = O(100)",
        WHERE,
        "where that is 33 to 300, the classic step sends at least a third and at most three times "
        "of what the best ADMM does: on all such problems; on some, or with the corrective step "
        "only; on none" + LEFT_OUT,
        f"the classic step to ADMM: {_ratios(chosen, 'classic', 'admm')}; the corrective step to "
        f"ADMM: {_ratios(chosen, 'corrective', 'admm')}",
        verdict,
    )


def _less(ours: float, theirs: float) -> bool:
    return ours < theirs


def _similar(ours: float, theirs: float) -> bool:
    return ours <= SIMILAR * theirs and theirs <= SIMILAR * ours


def _ratios(cases: Sequence[Case], ours: str, theirs: str) -> str:
    """How many times the values of one method are those of another, where both arrived."""
    pairs = [(getattr(case, ours), getattr(case, theirs)) for case in cases]
    both = [a / b for (a, high), (b, top) in pairs if max(high, top) < np.inf]
    missing = len(cases) - len(both)
    text = f"{spread(both)} times" if both else ""
    late = f"not both arrived on {missing}" if missing else ""
    return ", ".join(part for part in (text, late) if part) or "no such problem"


def tuning(rows: Sequence[Point], budgets: Mapping[str, float]) -> Finding:
    """Does ADMM need tuning? By what its parameters reach with what the best ones needed.

    Parameters
    ----------
    rows : sequence of Point
    budgets : mapping
        By dense problem (panel): the values that the best parameters had to send.
    """
    factors = []
    for panel, budget in budgets.items():
        if budget < np.inf:
            reached = [
                curves.reached_at(rows, panel, name, "values", "mse", budget)
                for name in admm_runs.NAMES
            ]
            factors.append(float(np.nanmax(reached) / np.nanmin(reached)))
    return Finding(
        "ADMM has that edge only if its parameters are properly tuned",
        WHERE,
        "on problems with s_A s_alpha n >= 100, where the best of the 6 choices of rho and alpha "
        "arrives, the worst has at least twice its mean squared error: on all, on some, on none",
        f"the worst choice has {spread(factors)} times the error of the best (such problems: "
        f"{len(factors)})",
        by_count(factor >= MUCH for factor in factors),
    )
