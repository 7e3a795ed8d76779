"""Section 6.1, figure 2: what the paper says of nodes that choose atoms by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from atomcast.experiments import curves
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
    Finding,
    Verdict,
    by_count,
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
        "the classic step's objective is at least 10 % below the baseline's, at the listed budgets "
        "of values sent that both have spent and at the most that both have spent: at all; at "
        "some, or beside one baseline only, as the other cannot begin with so little; at none"
    )
    found = []
    for baselines, who in (
        ((LOCAL, RANDOM), "every node has the model in the end"),
        ((LOCAL_STAR, RANDOM_STAR), "it is enough that the coordinator has it"),
    ):
        ahead = _ahead(rows, panel, CLASSIC, baselines, budgets)
        verdict = by_count(chain(*ahead))
        if verdict is Verdict.HOLDS and [] in ahead:
            verdict = Verdict.PARTLY
        measured = "; ".join(
            f"{baseline} has {_ratios(_compare(rows, panel, CLASSIC, baseline, budgets))} the "
            "objective of dFW"
            for baseline in baselines
        )
        for variant in (ONCE, BATCH, CORRECTIVE):
            cases = list(chain(*_ahead(rows, panel, variant, baselines, budgets)))
            measured += f". {variant}: ahead in {sum(cases)} of {len(cases)} cases"
        claim = f"dFW outperforms strategies that choose atoms by a local criterion, if {who}"
        found.append(Finding(claim, where, rule, measured, verdict))
    return found


def _ahead(
    rows: Sequence[Point],
    panel: str,
    ours: str,
    baselines: Sequence[str],
    budgets: Sequence[float],
) -> list[list[bool]]:
    """By baseline: whether a method is clearly ahead of it, budget by budget."""
    compared = (_compare(rows, panel, ours, baseline, budgets) for baseline in baselines)
    return [[mine * CLEARLY <= theirs for _, mine, theirs in cases] for cases in compared]


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
        f"a random choice has {_ratios(compared)} the objective of local FW",
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
                f"from {first:,.0f} to {last:,.0f} values, {baseline} lowers it {theirs:.2g} times,"
                f" dFW {ours:.2g} times"
            )
    return Finding(
        "local strategies decrease the objective at a slow rate",
        where,
        "by a smaller factor than dFW does, from the first listed budget that both have spent to "
        "the most that both have spent: both strategies; one of them; none",
        "; ".join(texts) or "no two budgets that both methods have spent",
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
        ahead = {one: _leaders(rows, one, baseline, budgets) for one in (panel, *others)}
        for other in others:
            same = [ahead[panel][k] == yes for k, yes in ahead[other].items() if k in ahead[panel]]
            cases += same
            texts.append(f"{other}, {baseline}: in {sum(same)} of {len(same)} cases")
    return Finding(
        "other values of beta do not change the relative performance significantly",
        where,
        f"of dFW and each baseline the same one is ahead as with {panel}, at the listed budgets "
        "that both have spent and at the most that both have spent: at all, at some, at none",
        f"the same one is ahead: {'; '.join(texts) or 'no other beta was run'}",
        by_count(cases),
    )


def _leaders(
    rows: Sequence[Point], panel: str, baseline: str, budgets: Sequence[float]
) -> dict[float, bool]:
    """Whether dFW is ahead, by listed budget; infinity stands for the most that both spent."""
    compared = _compare(rows, panel, CLASSIC, baseline, budgets)
    ends = [(np.inf, ours, theirs) for _, ours, theirs in compared[-1:]]
    listed = [case for case in compared if case[0] in budgets]
    return {budget: ours < theirs for budget, ours, theirs in listed + ends}


def _compare(
    rows: Sequence[Point], panel: str, ours: str, theirs: str, budgets: Sequence[float]
) -> Compared:
    """What two methods have reached, at budgets with which both have begun and that both spent.

    Besides the listed ones, the largest such budget.
    """
    most = min(_spent(rows, panel, ours), _spent(rows, panel, theirs))
    budgets = [*(budget for budget in budgets if budget < most), most]
    reached = [
        (budget, _reached(rows, panel, ours, budget), _reached(rows, panel, theirs, budget))
        for budget in budgets
    ]
    return [case for case in reached if np.isfinite(case).all()]


def _reached(rows: Sequence[Point], panel: str, method: str, budget: float) -> float:
    return curves.reached_at(rows, panel, method, "values", "objective", budget)


def _spent(rows: Sequence[Point], panel: str, method: str) -> float:
    """What every run of a method has sent."""
    runs = curves.runs_of(rows, panel, method)
    return min((max(row.values for row in run) for run in runs), default=0)


def _end(rows: Sequence[Point], panel: str, method: str) -> float:
    """The mean over runs of the lowest objective."""
    runs = curves.runs_of(rows, panel, method)
    return float(np.mean([np.nanmin([row.objective for row in run]) for run in runs]))


def _ratios(compared: Compared) -> str:
    """How many times the second number is the first, budget by budget."""
    texts = [
        f"{theirs / ours:.2g} times"
        + (f" (at {budget:,.0f} values)" if np.isfinite(budget) else " (most atoms a node)")
        for budget, ours, theirs in compared
    ]
    return ", ".join(texts) or "nothing to be compared with"
