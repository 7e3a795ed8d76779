"""Section 6.2, figure 4: what the paper says of dFW beside ADMM on real data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from atomcast.experiments import admm_runs
from atomcast.experiments.censored import Range, cost_range, known, settled
from atomcast.experiments.curves import CLASSIC, Point
from atomcast.experiments.findings import MUCH, Finding, Verdict, by_count, spread

if TYPE_CHECKING:
    from atomcast.experiments.fig4 import Cost

#: "1 to 2 orders of magnitude".
ORDER = 10.0
WHERE = "section 6.2, figure 4"
LEFT_OUT = ". Cases in which neither arrives, or a run ended too early to tell, do not count"


class Case(NamedTuple):
    """What the classic step and ADMM need for one beta and one accuracy."""

    ours: Cost
    admm: Cost
    ranges: dict[str, tuple[Range, Range]]

    def known(self) -> bool:
        """Whether both arrived."""
        return max(self.ours.values, self.admm.values) < np.inf


def dorothea(
    costs: Sequence[Cost], rows: Sequence[Point], panel_of: Callable[[float], str]
) -> list[Finding]:
    """Who needs less communication, fewer iterations and less time on real data.

    Parameters
    ----------
    costs : sequence of Cost
    rows : sequence of Point
        What the methods have spent, also those that did not arrive.
    panel_of : callable
        The panel of a beta in the rows.
    """
    groups: dict[tuple[float, float], dict[str, Cost]] = {}
    for cost in costs:
        who = "ADMM" if cost.method in admm_runs.NAMES else cost.method
        groups.setdefault((cost.beta, cost.above), {})[who] = cost
    cases = []
    for group in groups.values():
        ours, admm = group[CLASSIC], group["ADMM"]
        ranges = {}
        for axis in ("values", "round", "seconds"):
            mine, his = (
                cost_range(getattr(cost, axis), rows, panel_of(cost.beta), cost.method, axis)
                for cost in (ours, admm)
            )
            ranges[axis] = (mine, his)
        cases.append(Case(ours, admm, ranges))
    return [_little(cases), _catching_up(cases), _iterations(cases), _each(cases), _time(cases)]


def _little(cases: Sequence[Case]) -> Finding:
    betas = {case.ours.beta for case in cases}
    chosen = [case for case in cases if len(betas) == 1 or case.ours.beta < max(betas)]
    found, text = _judged(chosen, "values", lambda ours, admm: ours < admm)
    return Finding(
        "dFW is better at finding sparse solutions with very little communication",
        f"abstract; {WHERE} (left)",
        "for every beta but the largest, the classic step sends fewer values than the best ADMM: "
        "at all listed accuracies, at some, at none" + LEFT_OUT,
        f"fewer {text}",
        by_count(found),
    )


def _catching_up(cases: Sequence[Case]) -> Finding:
    """Does ADMM to dFW, in values, fall from the smallest beta to the largest?"""
    betas = sorted({case.ours.beta for case in cases})
    falls, texts = [], []
    for above in sorted({case.ours.above for case in cases}, reverse=True):
        few, many = (
            next(c for c in cases if (c.ours.beta, c.ours.above) == (beta, above))
            for beta in (betas[0], betas[-1])
        )
        before, after = _ratio(few), _ratio(many)
        fall = settled(lambda ours, theirs: ours < theirs, after, before)
        if fall is not None and few is not many:
            falls.append(fall)
            texts.append(f"{_shown(before)} and {_shown(after)} ({above:.0%} above the optimum)")
    return Finding(
        "as the target model becomes more dense (the largest beta), ADMM catches up with dFW",
        f"{WHERE} (left)",
        "the ratio of ADMM's values to those of the classic step is smaller at the largest beta "
        "than at the smallest: at all listed accuracies, at some, at none" + LEFT_OUT,
        f"ratio at the smallest and the largest beta: {', '.join(texts) or '-'}",
        by_count(falls),
    )


def _ratio(case: Case) -> Range:
    """How many times ADMM's values are those of dFW; anything, if neither arrived."""
    (low, high), (least, most) = case.ranges["values"]
    return least / high, most / low if low else np.inf


def _shown(ratio: Range) -> str:
    low, high = ratio
    if low == high:
        return f"{low:.2g}"
    return f"at most {high:.2g}" if high < np.inf else f"at least {low:.2g}"


def _iterations(cases: Sequence[Case]) -> Finding:
    found, text = _judged(cases, "round", lambda ours, admm: admm < ours)
    return Finding(
        "ADMM generally converges in fewer iterations than dFW",
        f"{WHERE} (middle)",
        "the best ADMM needs fewer rounds than the classic step: for all beta and listed "
        "accuracies, for some, for none" + LEFT_OUT,
        f"fewer {text}",
        by_count(found),
    )


def _each(cases: Sequence[Case]) -> Finding:
    factors = [
        (case.admm.seconds / case.admm.round) / (case.ours.seconds / case.ours.round)
        for case in cases
        if case.known()
    ]
    return Finding(
        "an iteration of ADMM is computationally more expensive; one of dFW is much faster",
        f"{WHERE} (right)",
        "local computation of a round takes ADMM at least twice as long as the classic step: "
        "wherever both arrive, in some cases, in none",
        f"{spread(factors)} times as long",
        by_count(factor >= MUCH for factor in factors),
    )


def _time(cases: Sequence[Case]) -> Finding:
    found, text = _judged(cases, "seconds", lambda ours, admm: ours * ORDER <= admm, ORDER)
    faster, _ = _judged(cases, "seconds", lambda ours, admm: ours < admm)
    verdict = by_count(found)
    if verdict is Verdict.FAILS and any(faster):
        verdict = Verdict.PARTLY
    return Finding(
        "dFW decreases the objective faster than ADMM by 1 to 2 orders of magnitude, in time of "
        "local computation",
        f"{WHERE} (right)",
        "ADMM needs at least 10 times the seconds of the classic step: for all beta and listed "
        "accuracies; for some, or the classic step is the faster one for some; for none" + LEFT_OUT,
        f"10 times as fast {text}; faster at all in {sum(faster)} of {len(faster)}",
        verdict,
    )


def _judged(
    cases: Sequence[Case], axis: str, test: Callable[[float, float], bool], scale: float = 1.0
) -> tuple[list[bool], str]:
    """The classic step beside ADMM: how often a test is passed, and the numbers behind that."""
    found = known([settled(test, *case.ranges[axis], scale) for case in cases])
    ratios = [getattr(c.admm, axis) / getattr(c.ours, axis) for c in cases if c.known()]
    missing = sum(case.ours.values == np.inf for case in cases)
    late = f"; dFW did not arrive in {missing} of {len(cases)}" if missing else ""
    return found, f"in {sum(found)} of {len(found)} cases (ADMM to dFW: {spread(ratios)}{late})"
