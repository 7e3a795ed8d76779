"""Section 6.2, figure 4: what the paper says of dFW beside ADMM on real data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from atomcast.experiments import admm_runs
from atomcast.experiments.censored import LEFT_OUT, Range, known, ratio, settled
from atomcast.experiments.curves import CLASSIC, CORRECTIVE, ONCE
from atomcast.experiments.findings import (
    MUCH,
    NO_CASE,
    Finding,
    Verdict,
    by_count,
    number,
    spread,
)

if TYPE_CHECKING:
    from atomcast.experiments.fig4 import Cost

#: "1 to 2 orders of magnitude".
ORDER = 10.0
WHERE = "section 6.2, figure 4"


#: Costs by beta and accuracy, and then by method.
Groups = dict[tuple[float, float], dict[str, "Cost"]]


class Case(NamedTuple):
    """What the classic step and ADMM need for one beta and one accuracy."""

    ours: Cost
    admm: Cost

    @property
    def both(self) -> bool:
        """Whether both arrived."""
        return max(self.ours.values, self.admm.values) < np.inf

    def ratio(self, axis: str) -> Range:
        """How many times what ADMM needs is what dFW does."""
        mine, his = ((getattr(cost, f"least_{axis}"), getattr(cost, axis)) for cost in self)
        return ratio(mine, his)


def dorothea(costs: Sequence[Cost]) -> list[Finding]:
    """Who needs less communication, fewer iterations and less time on real data."""
    groups: Groups = {}
    for cost in costs:
        who = "ADMM" if cost.method in admm_runs.NAMES else cost.method
        groups.setdefault((cost.beta, cost.above), {})[who] = cost
    cases = [Case(group[CLASSIC], group["ADMM"]) for group in groups.values()]
    betas = {case.ours.beta for case in cases}
    sparse = [case for case in cases if len(betas) == 1 or case.ours.beta < max(betas)]
    less = _above(sparse, "values", 1)
    fewer = _above([Case(case.admm, case.ours) for case in cases], "round", 1)
    return [
        Finding(
            "dFW is better at finding sparse solutions with very little communication",
            f"{WHERE} (left)",
            "for every beta but the largest, the classic step sends fewer values than the best "
            "ADMM: at all listed accuracies, at some, at none" + LEFT_OUT,
            "; ".join([_sentence("fewer", less, sparse, "values"), *_others(groups, sparse)]),
            by_count(less),
        ),
        _catching_up(cases),
        Finding(
            "ADMM generally converges in fewer iterations than dFW",
            f"{WHERE} (middle)",
            "the best ADMM needs fewer rounds than the classic step: for all beta and listed "
            "accuracies, for some, for none" + LEFT_OUT,
            _sentence("fewer", fewer, cases, "round"),
            by_count(fewer),
        ),
        _each(cases),
        _time(cases),
    ]


def _others(groups: Groups, cases: Sequence[Case]) -> list[str]:
    """In how many of the cases other steps than the paper's send fewer values than ADMM."""
    texts = []
    for method in (ONCE, CORRECTIVE):
        ours = [groups[case.admm.beta, case.admm.above].get(method) for case in cases]
        pairs = [Case(cost, case.admm) for cost, case in zip(ours, cases, strict=True) if cost]
        fewer = _above(pairs, "values", 1)
        if fewer:
            texts.append(f"{method}: in {sum(fewer)} of {len(fewer)}")
    return texts


def _catching_up(cases: Sequence[Case]) -> Finding:
    """Does ADMM to dFW, in values, fall from the smallest beta to the largest?"""
    betas = sorted({case.ours.beta for case in cases})
    falls, texts = [], []
    for above in sorted({case.ours.above for case in cases}, reverse=True):
        before, after = (
            next(c for c in cases if (c.ours.beta, c.ours.above) == (beta, above)).ratio("values")
            for beta in (betas[0], betas[-1])
        )
        fall = settled(*ratio(after, before), 1)
        if fall is not None and len(betas) > 1:
            falls.append(fall)
            texts.append(f"{_shown(before)} and {_shown(after)} ({above:.0%} above the optimum)")
    return Finding(
        "as the target model becomes more dense (the largest beta), ADMM catches up with dFW",
        f"{WHERE} (left)",
        "the ratio of ADMM's values to those of the classic step is smaller at the largest beta "
        "than at the smallest: at all listed accuracies, at some, at none" + LEFT_OUT,
        f"ratio at the smallest and the largest beta: {', '.join(texts)}" if texts else NO_CASE,
        by_count(falls),
    )


def _shown(times: Range) -> str:
    low, high = times
    if low == high:
        return number(low)
    return f"at most {number(high)}" if high < np.inf else f"at least {number(low)}"


def _each(cases: Sequence[Case]) -> Finding:
    factors = [
        (case.admm.seconds / case.admm.round) / (case.ours.seconds / case.ours.round)
        for case in cases
        if case.both
    ]
    return Finding(
        "an iteration of ADMM is computationally more expensive; one of dFW is much faster",
        f"{WHERE} (right)",
        "local computation of a round takes ADMM at least twice as long as the classic step: "
        "wherever both arrive, in some cases, in none",
        f"{spread(factors)} times as long" if factors else NO_CASE,
        by_count(factor >= MUCH for factor in factors),
    )


def _time(cases: Sequence[Case]) -> Finding:
    much, faster = (_above(cases, "seconds", times) for times in (ORDER, 1))
    verdict = by_count(much)
    if verdict is Verdict.FAILS and any(faster):
        verdict = Verdict.PARTLY
    return Finding(
        "dFW decreases the objective faster than ADMM by 1 to 2 orders of magnitude, in time of "
        "local computation",
        f"{WHERE} (right)",
        "ADMM needs more than 10 times the seconds of the classic step: for all beta and listed "
        "accuracies; for some, or the classic step is the faster one for some; for none" + LEFT_OUT,
        _sentence(f"faster in {sum(faster)} of {len(faster)}, 10 times", much, cases, "seconds"),
        verdict,
    )


def _above(cases: Sequence[Case], axis: str, times: float) -> list[bool]:
    """Whether the second needs more than so many times what the first does, where settled."""
    return known(settled(*case.ratio(axis), times) for case in cases)


def _sentence(what: str, found: Sequence[bool], cases: Sequence[Case], axis: str) -> str:
    """How often something is so, and the numbers behind that."""
    if not found:
        return NO_CASE
    ratios = [getattr(c.admm, axis) / getattr(c.ours, axis) for c in cases if c.both]
    texts = [f"ADMM to dFW: {spread(ratios)}"] if ratios else []
    missing = sum(case.ours.values == np.inf for case in cases)
    if missing:
        texts.append(f"dFW did not arrive in {missing} of {len(cases)}")
    numbers = f" ({'; '.join(texts)})" if texts else ""
    return f"{what} in {sum(found)} of {len(found)} cases{numbers}"
