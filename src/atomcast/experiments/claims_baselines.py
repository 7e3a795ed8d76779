"""Section 6.1, figure 2: what the paper says of nodes that choose atoms by themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomcast.experiments import censored, curves
from atomcast.experiments.baseline_runs import (
    BATCH,
    LOCAL,
    LOCAL_STAR,
    RANDOM,
    RANDOM_STAR,
)
from atomcast.experiments.curves import CLASSIC, CORRECTIVE, ONCE, Point
from atomcast.experiments.findings import (
    CLEARLY,
    MUCH,
    NO_CASE,
    Finding,
    Verdict,
    by_count,
    number,
)

#: Budgets that differ by less are the same.
NEARLY = 1.05
BUDGETS = (
    "at the listed budgets of values sent that both have spent and at the most that both have "
    "spent, if it is not nearly the same"
)
#: Budgets, and what two methods have reached by each.
Compared = list[tuple[float, float, float]]


def outperforms(
    rows: Sequence[Point], panel: str, budgets: Sequence[float], where: str
) -> list[Finding]:
    """Is dFW ahead of both baselines for what it sends?

    Twice: the paper does not say who is to have the model in the end.
    """
    rule = (
        f"the baseline's objective is at least 10 % above the classic step's, {BUDGETS}: at all; "
        "at some, or beside one baseline only, as the other cannot begin with so little; at none"
    )
    found = []
    for baselines, who in (
        ((LOCAL, RANDOM), "every node has the model in the end"),
        ((LOCAL_STAR, RANDOM_STAR), "it is enough that the coordinator has it"),
    ):
        compared = {
            ours: [_compare(rows, panel, ours, baseline, budgets) for baseline in baselines]
            for ours in (CLASSIC, ONCE, BATCH, CORRECTIVE)
        }
        ahead = {
            ours: [_standing(*case) == "ahead" for cases in both for case in cases]
            for ours, both in compared.items()
        }
        verdict = by_count(ahead.pop(CLASSIC))
        if verdict is Verdict.HOLDS and [] in compared[CLASSIC]:
            verdict = Verdict.PARTLY
        measured = "; ".join(
            f"{baseline}: {_ratios(cases, 'the objective of dFW')}"
            for baseline, cases in zip(baselines, compared[CLASSIC], strict=True)
        )
        for variant, cases in ahead.items():
            measured += f". {variant}: ahead in {sum(cases)} of {len(cases)} cases" if cases else ""
        claim = f"dFW outperforms strategies that choose atoms by a local criterion, if {who}"
        found.append(Finding(claim, where, rule, measured, verdict))
    return found


def _standing(budget: float, ours: float, theirs: float) -> str:
    """Where a method stands beside another."""
    if ours * CLEARLY <= theirs:
        return "ahead"
    return "behind" if theirs * CLEARLY <= ours else "level"


def local_beats_random(
    rows: Sequence[Point], panel: str, budgets: Sequence[float], where: str
) -> Finding:
    """Does local FW do much better than a random choice?"""
    compared = [c for c in _compare(rows, panel, LOCAL, RANDOM, budgets) if c[0] in budgets]
    compared.append((np.inf, _end(rows, panel, LOCAL), _end(rows, panel, RANDOM)))
    verdict = by_count(ours * MUCH <= theirs for _, ours, theirs in compared)
    if verdict is Verdict.FAILS and any(ours < theirs for _, ours, theirs in compared):
        verdict = Verdict.PARTLY
    return Finding(
        "local FW does much better than the random strategy",
        where,
        "its objective is at most half of the other's, at the listed budgets that both have spent "
        "and with the most atoms a node: at all; at some, or lower at some; never lower",
        f"a random choice: {_ratios(compared, 'the objective of local FW')}",
        verdict,
    )


def slow_baselines(
    rows: Sequence[Point], panel: str, budgets: Sequence[float], where: str
) -> Finding:
    """Do strategies that choose locally lower the objective at a slow rate?"""
    cases, texts = [], []
    for baseline in (LOCAL, RANDOM):
        compared = _compare(rows, panel, CLASSIC, baseline, budgets)
        if len(compared) > 1:
            (first, *before), (last, *after) = compared[0], compared[-1]
            ours, theirs = (b / a for b, a in zip(before, after, strict=True))
            cases.append(theirs < ours)
            texts.append(
                f"from {first:,.0f} to {last:,.0f} values, {baseline} lowers it by a factor of "
                f"{number(theirs)}, dFW by {number(ours)}"
            )
    return Finding(
        "local strategies decrease the objective at a slow rate",
        where,
        "by a smaller factor than dFW does, from the first listed budget that both have spent to "
        "the most that both have spent: both strategies; one of them; none",
        "; ".join(texts) or NO_CASE,
        Verdict.PARTLY if cases == [True] else by_count(cases),
    )


def same_order(
    rows: Sequence[Point],
    panel: str,
    others: Sequence[str],
    budgets: Sequence[float],
    where: str,
) -> Finding:
    """Is whoever is ahead on one problem also ahead on the others?"""
    cases, texts = [], []
    for baseline in (LOCAL, RANDOM):
        usual, *all_others = (_standings(rows, p, baseline, budgets) for p in (panel, *others))
        for other, standings in zip(others, all_others, strict=True):
            same = [usual[k] == standing for k, standing in standings.items() if k in usual]
            cases += same
            texts.append(f"{other}, {baseline}: in {sum(same)} of {len(same)} cases")
    return Finding(
        "other values of beta do not change the relative performance significantly",
        where,
        "dFW is ahead of a baseline (whose objective is at least 10 % above), level or behind, as "
        f"with {panel}, {BUDGETS}: at all, at some, at none",
        f"the same: {'; '.join(texts)}" if cases else NO_CASE,
        by_count(cases),
    )


def _standings(
    rows: Sequence[Point], panel: str, baseline: str, budgets: Sequence[float]
) -> dict[float, str]:
    """How dFW stands, by listed budget; infinity stands for the most that both spent."""
    compared = _compare(rows, panel, CLASSIC, baseline, budgets)
    return {case[0] if case[0] in budgets else np.inf: _standing(*case) for case in compared}


def _compare(
    rows: Sequence[Point], panel: str, ours: str, theirs: str, budgets: Sequence[float]
) -> Compared:
    """What two methods have reached, at budgets with which both have begun and that both spent.

    Besides the listed ones, the largest such budget, unless it is nearly a listed one.
    """
    most = min(
        min(censored.spent(curves.runs_of(rows, panel, method), "values"), default=0.0)
        for method in (ours, theirs)
    )
    listed = [budget for budget in budgets if budget <= most]
    if not listed or most > NEARLY * max(listed):
        listed.append(most)
    reached = [
        (budget, _reached(rows, panel, ours, budget), _reached(rows, panel, theirs, budget))
        for budget in listed
    ]
    return [case for case in reached if np.isfinite(case).all()]


def _reached(rows: Sequence[Point], panel: str, method: str, budget: float) -> float:
    return curves.reached_at(rows, panel, method, "values", "objective", budget)


def _end(rows: Sequence[Point], panel: str, method: str) -> float:
    """The mean over runs of the lowest objective."""
    runs = curves.runs_of(rows, panel, method)
    return float(np.mean([np.nanmin([row.objective for row in run]) for run in runs]))


def _ratios(compared: Compared, what: str) -> str:
    """How many times the second number is the first, budget by budget."""
    texts = [
        f"{number(theirs / ours)} times"
        + (f" (at {budget:,.0f} values)" if np.isfinite(budget) else " (most atoms a node)")
        for budget, ours, theirs in compared
    ]
    return f"{', '.join(texts)} {what}" if texts else NO_CASE
