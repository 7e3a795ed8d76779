"""Section 6.2, figures 3 and 4: what the paper says of dFW beside ADMM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from atomcast.experiments import admm_runs, curves
from atomcast.experiments.curves import CLASSIC, CORRECTIVE, Point
from atomcast.experiments.findings import MUCH, Finding, Verdict, by_count, spread

if TYPE_CHECKING:
    from atomcast.experiments.fig3 import Verdict as Problem
    from atomcast.experiments.fig4 import Cost

#: s_A s_alpha n at which the paper sees both methods alike, and how far from it that may be.
TIE, NEAR = 100.0, 3.0
#: "Similarly": neither needs more than so many times what the other does.
SIMILAR = 3.0
#: "1 to 2 orders of magnitude".
ORDER = 10.0
WHERE_3, WHERE_4 = "abstract; section 6.2, figure 3", "section 6.2, figure 4"


def synthetic(problems: Sequence[Problem]) -> list[Finding]:
    """Who sends less, on problems of different density."""
    return [_sparse(problems), _dense(problems), _alike(problems)]


def _sparse(problems: Sequence[Problem]) -> Finding:
    """Less by all means, and much less on the whole."""
    chosen = [p for p in problems if p.rule * NEAR < TIE and _arrived(p.classic, p.admm)]
    verdict = by_count(p.classic < p.admm for p in chosen)
    factors = [p.admm / p.classic for p in chosen if max(p.admm, p.classic) < np.inf]
    if verdict is Verdict.HOLDS and factors and np.exp(np.mean(np.log(factors))) < MUCH:
        verdict = Verdict.PARTLY
    less = sum(p.classic < p.admm for p in chosen)
    better = [p.admm / p.corrective for p in chosen if max(p.admm, p.corrective) < np.inf]
    return Finding(
        "dFW requires much less communication than ADMM when the data and/or the solution are "
        "sparse",
        WHERE_3,
        "on problems with s_A s_alpha n < 33 the classic step sends fewer values than the best "
        "ADMM: on all, and half as many or less on the (geometric) average; on some; on none",
        f"fewer on {less} of {len(chosen)} problems; ADMM sends {spread(factors)} times as many "
        f"(beside the corrective step: {spread(better)} times)",
        verdict,
    )


def _dense(problems: Sequence[Problem]) -> Finding:
    chosen = [p for p in problems if p.rule >= TIE * (1 - 1e-9) and _arrived(p.classic, p.admm)]
    factors = [p.classic / p.admm for p in chosen]
    others = [p.corrective / p.admm for p in chosen]
    less = sum(p.admm < p.classic for p in chosen)
    return Finding(
        "ADMM has the edge in the dense case",
        "section 6.2, figure 3",
        "on problems with s_A s_alpha n >= 100 the best ADMM sends fewer values than the classic "
        "step: on all, on some, on none",
        f"fewer on {less} of {len(chosen)} problems; the classic step sends {spread(factors)} "
        f"times as many, the corrective step {spread(others)} times (-: it did not arrive)",
        by_count(p.admm < p.classic for p in chosen),
    )


def _alike(problems: Sequence[Problem]) -> Finding:
    """The rule of thumb."""
    chosen = [p for p in problems if TIE / NEAR <= p.rule <= TIE * NEAR]
    classic = [p.classic / p.admm for p in chosen if _arrived(p.classic, p.admm)]
    corrective = [p.corrective / p.admm for p in chosen if _arrived(p.corrective, p.admm)]
    verdict = by_count(_similar(factor) for factor in classic)
    if verdict is Verdict.FAILS and any(_similar(factor) for factor in corrective):
        verdict = Verdict.PARTLY
    return Finding(
        "both perform similarly when s_A s_alpha n = O(100)",
        "section 6.2, figure 3",
        "where that is 33 to 300, the classic step sends at least a third and at most three times "
        "of what the best ADMM does: on all such problems; on some, or with the corrective step "
        "only; on none",
        f"{len(chosen)} such problems: the classic step sends {spread(classic)} times as many "
        f"values, the corrective step {spread(corrective)} times (-: it did not arrive)",
        verdict,
    )


def _similar(factor: float) -> bool:
    return 1 / SIMILAR <= factor <= SIMILAR


def _arrived(*costs: float) -> bool:
    """Whether one of two methods got there, so that they can be compared."""
    return min(costs) < np.inf


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
        "section 6.2, figure 3",
        "on problems with s_A s_alpha n >= 100, where the best of the 6 choices of rho and alpha "
        "arrives, the worst has at least twice its mean squared error: on all, on some, on none",
        f"{len(factors)} such problems; the worst choice has {spread(factors)} times the error",
        by_count(factor >= MUCH for factor in factors),
    )


#: Costs of the classic step, the corrective step and ADMM, for one beta and one accuracy.
Case = tuple["Cost", "Cost", "Cost"]


def dorothea(costs: Sequence[Cost]) -> list[Finding]:
    """Who needs less communication, fewer iterations and less time on real data."""
    cases = _cases(costs)
    return [_little(cases), _catching_up(cases), _iterations(cases), _each(cases), _time(cases)]


def _cases(costs: Sequence[Cost]) -> list[Case]:
    groups: dict[tuple[float, float], dict[str, Cost]] = {}
    for cost in costs:
        who = cost.method if cost.method in (CLASSIC, CORRECTIVE) else "ADMM"
        groups.setdefault((cost.beta, cost.above), {})[who] = cost
    return [(group[CLASSIC], group[CORRECTIVE], group["ADMM"]) for group in groups.values()]


def _little(cases: Sequence[Case]) -> Finding:
    betas = {classic.beta for classic, _, _ in cases}
    chosen = [case for case in cases if len(betas) == 1 or case[0].beta < max(betas)]
    verdict, text = _judged(chosen, "values", lambda ours, admm: ours < admm)
    return Finding(
        "dFW is better at finding sparse solutions with very little communication",
        f"abstract; {WHERE_4} (left)",
        "for every beta but the largest, the classic step sends fewer values than the best ADMM: "
        "at all listed accuracies, at some, at none",
        f"fewer {text}",
        verdict,
    )


def _catching_up(cases: Sequence[Case]) -> Finding:
    betas = sorted({classic.beta for classic, _, _ in cases})
    falls, texts = [], []
    for above in sorted({classic.above for classic, _, _ in cases}, reverse=True):
        ends = [
            case for beta in (betas[0], betas[-1]) for case in cases
            if (case[0].beta, case[0].above) == (beta, above)
        ]  # fmt: skip
        if len(betas) > 1 and all(_arrived(c.values, a.values) for c, _, a in ends):
            few, many = (admm.values / classic.values for classic, _, admm in ends)
            falls.append(many < few)
            texts.append(f"{few:.2g} and {many:.2g} ({above:.0%} above the optimum)")
    return Finding(
        "as the target model becomes more dense (the largest beta), ADMM catches up with dFW",
        f"{WHERE_4} (left)",
        "the ratio of ADMM's values to those of the classic step is smaller at the largest beta "
        "than at the smallest: at all listed accuracies, at some, at none",
        f"ratio at the smallest and the largest beta: {', '.join(texts) or '-'}; 0: dFW did not "
        "arrive",
        by_count(falls),
    )


def _iterations(cases: Sequence[Case]) -> Finding:
    verdict, text = _judged(cases, "round", lambda ours, admm: admm < ours)
    return Finding(
        "ADMM generally converges in fewer iterations than dFW",
        f"{WHERE_4} (middle)",
        "the best ADMM needs fewer rounds than the classic step: for all beta and listed "
        "accuracies, for some, for none",
        f"fewer {text}",
        verdict,
    )


def _each(cases: Sequence[Case]) -> Finding:
    factors = []
    for classic, _, admm in cases:
        if max(classic.seconds, admm.seconds) < np.inf and min(classic.round, admm.round) > 0:
            factors.append((admm.seconds / admm.round) / (classic.seconds / classic.round))
    return Finding(
        "an iteration of ADMM is computationally more expensive; one of dFW is much faster",
        f"{WHERE_4} (right)",
        "local computation of a round takes ADMM at least twice as long as the classic step: "
        "wherever both arrive, in some cases, in none",
        f"{spread(factors)} times as long",
        by_count(factor >= MUCH for factor in factors),
    )


def _time(cases: Sequence[Case]) -> Finding:
    verdict, text = _judged(cases, "seconds", lambda ours, admm: ours * ORDER <= admm)
    faster, faster_text = _judged(cases, "seconds", lambda ours, admm: ours < admm)
    if verdict is Verdict.FAILS and faster is not Verdict.FAILS:
        verdict = Verdict.PARTLY
    return Finding(
        "dFW decreases the objective faster than ADMM by 1 to 2 orders of magnitude, in time of "
        "local computation",
        f"{WHERE_4} (right)",
        "ADMM needs at least 10 times the seconds of the classic step: for all beta and listed "
        "accuracies; for some, or the classic step is the faster one for some; for none",
        f"10 times faster {text}; faster at all {faster_text}",
        verdict,
    )


def _judged(
    cases: Sequence[Case], what: str, better: Callable[[float, float], bool]
) -> tuple[Verdict, str]:
    """The verdict on the classic step beside ADMM, and how often, and by how much."""
    pairs = [(getattr(classic, what), getattr(admm, what)) for classic, _, admm in cases]
    pairs = [pair for pair in pairs if _arrived(*pair)]
    found = [better(ours, admm) for ours, admm in pairs]
    factors = spread(admm / ours for ours, admm in pairs if max(ours, admm) < np.inf)
    missing = sum(ours == np.inf for ours, _ in pairs)
    late = f"; dFW did not arrive in {missing}" if missing else ""
    text = f"in {sum(found)} of {len(found)} cases (ADMM to dFW: {factors}{late})"
    return by_count(found), text
