"""What figures 2(a) and 2(b) share: the picture, the table, and what section 6.1 says of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from atomcast.experiments.figures.shape import Experiment, Found
from atomcast.experiments.page.findings import NO_CASE, Finding, finding, number
from atomcast.experiments.page.output import shown
from atomcast.experiments.page.reports import PrintedTable
from atomcast.experiments.page.verdicts import CLEARLY, MUCH, Verdict, by_count
from atomcast.experiments.runs import curves
from atomcast.experiments.runs.baseline_runs import (
    BATCH,
    LOCAL,
    LOCAL_STAR,
    METHODS,
    RANDOM,
    RANDOM_STAR,
    Sizes,
)
from atomcast.experiments.runs.cost_ranges import spent
from atomcast.experiments.runs.curves import (
    BETTER,
    CLASSIC,
    CORRECTIVE,
    LINE_SEARCH,
    ONCE,
    PAPER,
    Point,
)

#: A colour by number and a dash; what else was run is in the table.
STYLES = {
    CLASSIC: (0, "-"),
    LINE_SEARCH: (4, "-"),
    ONCE: (0, "--"),
    CORRECTIVE: (1, "-"),
    LOCAL: (2, "-"),
    RANDOM: (3, "-"),
}
#: Budgets that differ by less are the same.
NEARLY = 1.05
BUDGETS = (
    "at the listed budgets of values sent that both have spent and at the most that both have "
    "spent, if it is not nearly the same"
)


@dataclass(frozen=True, kw_only=True)
class BaselineFigure(Experiment, Sizes):
    """dFW beside nodes that choose atoms by themselves; objectives are printed in a form."""

    form: ClassVar[str]
    styles = STYLES

    def tables(self, found: Found, note: str) -> list[PrintedTable]:
        """What every method has reached after so many values sent."""
        header = ["method", *(f"{budget:,.0f}" for budget in self.budgets)]
        tables = []
        for panel in dict.fromkeys(row.panel for row in found.rows):
            race = Race(found.rows, panel, self.budgets)
            cells = [
                [m, *(shown(race.reached(m, budget), self.form) for budget in self.budgets)]
                for m in METHODS
            ]
            title = f"{panel}: objective after so many values sent ({note})"
            tables.append(PrintedTable(title, header, cells))
        return tables


class Compared(NamedTuple):
    """What two methods have reached for a budget; infinite: with all that they may spend."""

    budget: float
    ours: float
    theirs: float

    @property
    def standing(self) -> str:
        """Where the first stands beside the second."""
        if self.ours * CLEARLY <= self.theirs:
            return "ahead"
        return "behind" if self.theirs * CLEARLY <= self.ours else "level"


class Race(NamedTuple):
    """All methods on one problem, and the budgets of values sent at which they are compared."""

    rows: Sequence[Point]
    panel: str
    budgets: Sequence[float]

    def reached(self, method: str, budget: float) -> float:
        """The objective for a budget."""
        return curves.reached_at(self.rows, self.panel, method, budget)

    def end(self, method: str) -> float:
        """The mean over runs of the lowest objective."""
        runs = curves.runs_of(self.rows, self.panel, method)
        return float(np.mean([np.nanmin([row.objective for row in run]) for run in runs]))

    def compared(self, ours: str, theirs: str) -> list[Compared]:
        """Two methods, at budgets with which both have begun and that both spent.

        Besides the listed ones, the largest such budget, unless it is nearly a listed one.
        """
        runs = [curves.runs_of(self.rows, self.panel, method) for method in (ours, theirs)]
        most = min(min(spent(its, "values"), default=0.0) for its in runs)
        listed = [budget for budget in self.budgets if budget <= most]
        if not listed or most > NEARLY * max(listed):
            listed.append(most)
        found = [Compared(b, self.reached(ours, b), self.reached(theirs, b)) for b in listed]
        return [case for case in found if np.isfinite(case).all()]

    def standings(self, baseline: str) -> dict[float, str]:
        """How dFW stands, by listed budget; infinity stands for the most that both spent."""
        return {
            case.budget if case.budget in self.budgets else np.inf: case.standing
            for case in self.compared(PAPER, baseline)
        }


def outperforms(race: Race, where: str) -> list[Finding]:
    """Is dFW ahead of both baselines for what it sends?

    Twice: the paper does not say who is to have the model in the end.
    """
    rule = (
        f"the baseline's objective is at least 10 % above dFW's, {BETTER}, {BUDGETS}: at all; "
        "at some, or beside one baseline only, as the other cannot begin with so little; at none"
    )
    found = []
    for baselines, who in (
        ((LOCAL, RANDOM), "every node has the model in the end"),
        ((LOCAL_STAR, RANDOM_STAR), "it is enough that the coordinator has it"),
    ):
        compared = {
            ours: [race.compared(ours, baseline) for baseline in baselines]
            for ours in (PAPER, CLASSIC, LINE_SEARCH, ONCE, BATCH, CORRECTIVE)
        }
        ahead = {
            ours: [case.standing == "ahead" for cases in both for case in cases]
            for ours, both in compared.items()
        }
        verdict = by_count(ahead.pop(PAPER))
        if verdict is Verdict.HOLDS and [] in compared[PAPER]:
            verdict = Verdict.PARTLY
        measured = "; ".join(
            f"{baseline}: {_ratios(cases, 'the objective of dFW')}"
            for baseline, cases in zip(baselines, compared[PAPER], strict=True)
        )
        for variant, cases in ahead.items():
            measured += f". {variant}: ahead in {sum(cases)} of {len(cases)} cases" if cases else ""
        claim = f"dFW outperforms strategies that choose atoms by a local criterion, if {who}"
        found.append(Finding(claim, where, rule, measured, verdict))
    return found


def local_beats_random(race: Race, where: str) -> Finding:
    """Does local FW do much better than a random choice?"""
    compared = [case for case in race.compared(LOCAL, RANDOM) if case.budget in race.budgets]
    compared.append(Compared(np.inf, race.end(LOCAL), race.end(RANDOM)))
    verdict = by_count(case.ours * MUCH <= case.theirs for case in compared)
    if verdict is Verdict.FAILS and any(case.ours < case.theirs for case in compared):
        verdict = Verdict.PARTLY
    return Finding(
        "local FW does much better than the random strategy",
        where,
        "its objective is at most half of the other's, at the listed budgets that both have spent "
        "and with the most atoms a node: at all; at some, or lower at some; never lower",
        f"a random choice: {_ratios(compared, 'the objective of local FW')}",
        verdict,
    )


def slow_baselines(race: Race, where: str) -> Finding:
    """Do strategies that choose locally lower the objective at a slow rate?"""
    cases, texts = [], []
    for baseline in (LOCAL, RANDOM):
        compared = race.compared(PAPER, baseline)
        if len(compared) > 1:
            (first, *before), (last, *after) = compared[0], compared[-1]
            ours, theirs = (b / a for b, a in zip(before, after, strict=True))
            cases.append(theirs < ours)
            texts.append(
                f"from {first:,.0f} to {last:,.0f} values, {baseline} lowers it by a factor of "
                f"{number(theirs)}, dFW by {number(ours)}"
            )
    return finding(
        "local strategies decrease the objective at a slow rate",
        where,
        f"by a smaller factor than dFW does {BETTER}, from the first listed budget that both have "
        "spent to the most that both have spent: both strategies; one of them; none",
        "; ".join(texts),
        Verdict.PARTLY if cases == [True] else cases,
    )


def same_order(race: Race, others: Sequence[Race], where: str) -> Finding:
    """Is whoever is ahead on one problem also ahead on the others?"""
    cases, texts = [], []
    for baseline in (LOCAL, RANDOM):
        usual = race.standings(baseline)
        for other in others:
            standings = other.standings(baseline).items()
            same = [usual[k] == standing for k, standing in standings if k in usual]
            cases += same
            texts.append(f"{other.panel}, {baseline}: in {sum(same)} of {len(same)} cases")
    return finding(
        "other values of beta do not change the relative performance significantly",
        where,
        f"dFW, {BETTER}, is ahead of a baseline (at least 10 % above), level or behind, as "
        f"with {race.panel}, {BUDGETS}: at all, at some, at none",
        f"the same: {'; '.join(texts)}" if cases else "",
        cases,
    )


def _ratios(compared: Sequence[Compared], what: str) -> str:
    """How many times the second number is the first, budget by budget."""
    texts = [
        f"{number(theirs / ours)} times"
        + (f" (at {budget:,.0f} values)" if np.isfinite(budget) else " (most atoms a node)")
        for budget, ours, theirs in compared
    ]
    return f"{', '.join(texts)} {what}" if texts else NO_CASE
