"""Section 6.3, figure 5: what the paper says of speedups, unbalanced data and lost messages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from atomcast.experiments.censored import ratio, settled
from atomcast.experiments.findings import (
    MUCH,
    NO_CASE,
    Finding,
    Verdict,
    by_count,
    not_measured,
    number,
    spread,
)

if TYPE_CHECKING:
    from atomcast.experiments.curves import Average
    from atomcast.experiments.fig5a import Timing
    from atomcast.experiments.fig5b import Outcome as Selected
    from atomcast.experiments.fig5c import Outcome as Lossy

#: "Near-linear": the speedup is at least this share of N.
NEAR_LINEAR = 0.8
#: "Not a significant issue": messages take at most this share of the time.
MINOR = 0.1
#: "Large wait time": a round takes so many times as long.
WAITING = 1.5
#: "Negligible", and what is neither negligible nor large, as shares of the objective.
NEGLIGIBLE, MODERATE = 0.01, 0.1
#: "A bit slower": at most so many times as many rounds.
A_BIT = 1.5


def speedup(how: str, means: Sequence[Timing], ceiling: Sequence[Timing] = ()) -> Finding:
    """How much faster N nodes are, by one way of measuring: rows for 1 and more nodes.

    `ceiling` are the times of what could at best be gained on the machine, for the sentence only.
    """
    several = [row for row in means if row.nodes > 1 and np.isfinite(row.speedup)]
    texts = ", ".join(f"{row.speedup:.2f} at N = {row.nodes}" for row in several)
    most = ", ".join(f"{row.speedup:.2f} at N = {row.nodes}" for row in ceiling if row.nodes > 1)
    texts += f" ({ceiling[0].how}: {most})" if texts and most else ""
    return Finding(
        f"near-linear speedup where data is balanced ({how})",
        "section 6.3, figure 5(a); the introduction says significant speedups",
        "the speedup over one node is at least 80 % of N: for all N, for some, for none",
        texts or NO_CASE,
        by_count(row.speedup >= NEAR_LINEAR * row.nodes for row in several),
    )


def computation(means: Sequence[Timing]) -> list[Finding]:
    """What the time goes to, where that is known."""
    known = sorted((row for row in means if np.isfinite(row.work)), key=lambda row: row.nodes)
    shares = [row.network / row.seconds for row in known if row.nodes > 1]
    growth = [
        (few.work / many.work, many.nodes / few.nodes)
        for few, many in pairwise(known)
        if many.work > 0
    ]
    largest = ", ".join(f"{number(time)} for {number(size)}" for time, size in growth)
    return [
        Finding(
            "synchronisation costs are not a significant issue where computation is balanced",
            "section 6.3, figure 5(a)",
            "messages take at most 10 % of the time: for all N > 1, for some, for none",
            f"{spread(100 * share for share in shares)} % of the time, by a model of the network"
            if shares
            else NO_CASE,
            by_count(share <= MINOR for share in shares),
        ),
        Finding(
            "the computational cost of an iteration is O(n_i) on a node with n_i examples",
            "section 6.3",
            "with k times as many examples, a node's own computation takes at most 1.1 k times as "
            "long: between all neighbouring N, some, none",
            f"times as long, for times as many examples: {largest}" if largest else NO_CASE,
            by_count(time <= 1.1 * size for time, size in growth),
        ),
        not_measured(
            "dFW needs only O(n_i) memory on a node with n_i examples",
            "section 6.3",
            "not measured here: see benchmarks/kernel_svm.py scale",
        ),
    ]


def unbalanced(
    balanced: Selected, exact: Selected, centers: Selected, free: Selected, random: Selected
) -> list[Finding]:
    """What half of the data on one node costs, and what m-centers save.

    Parameters
    ----------
    balanced, exact : Outcome
        Exact dFW on balanced and on unbalanced data.
    centers, free : Outcome
        m-centers, with and without the time of clustering.
    random : Outcome
        A random subset of the same size.
    """
    waits = exact.ms_a_round / balanced.ms_a_round
    loss, random_loss = (other.objective / exact.objective - 1 for other in (centers, random))
    return [
        Finding(
            "when the local costs are misaligned, exact dFW suffers from large wait time",
            "section 6.3, figure 5(b)",
            "a round takes at least 1.5 times as long as with balanced data; at least 1.1 times; "
            "less",
            f"{waits:.2f} times as long ({exact.ms_a_round:.2f} against {balanced.ms_a_round:.2f} "
            "ms)",
            _graded(waits, WAITING, 1.1),
        ),
        Finding(
            "approximate dFW reduces the runtime dramatically on the unbalanced distribution",
            "section 6.3, figure 5(b)",
            "for what exact dFW has at half of its rounds, m-centers need less than half of the "
            "time: clustering counted; only if it is not, or less time in either case; no less "
            "time. Runs that ended too early to tell do not count",
            f"m-centers {_longer(centers, exact)} (clustering: {centers.preparing:.2f} s); where "
            f"clustering is not counted, they {_longer(free, exact)}; random subsets "
            f"{_longer(random, exact)}",
            _saving(exact, centers, free),
        ),
        Finding(
            "the additive error of the approximation is negligible",
            "section 6.3, figure 5(b)",
            "after all rounds the objective is at most 1 % above that of exact dFW; at most 10 %; "
            "more",
            f"{_off(loss)} with m-centers, {_off(random_loss)} with a random subset",
            _graded(-loss, -NEGLIGIBLE, -MODERATE),
        ),
    ]


def _saving(exact: Selected, centers: Selected, free: Selected) -> Verdict:
    """What m-centers save, as far as runs went on for long enough."""
    much, *less = (
        settled(*ratio((other.at_least, other.catches_up), (exact.at_least, exact.catches_up)), k)
        for other, k in ((centers, MUCH), (centers, 1), (free, 1))
    )
    if much:
        return Verdict.HOLDS
    if much is False and any(less):
        return Verdict.PARTLY
    return Verdict.FAILS if less == [False, False] else Verdict.UNMEASURED


def _longer(other: Selected, exact: Selected) -> str:
    if other.catches_up == np.inf:
        return (
            f"did not get there in {number(other.at_least)} s (exact dFW: "
            f"{number(exact.catches_up)} s)"
        )
    return f"take {number(other.catches_up / exact.catches_up)} times as long as exact dFW"


def _off(share: float) -> str:
    return f"{abs(share):.2%} {'below' if share < 0 else 'above'}".replace("%", " %")


def _graded(number: float, enough: float, some: float) -> Verdict:
    """Holds from one level on, partly from another."""
    if np.isnan(number):
        return Verdict.UNMEASURED
    if number >= enough:
        return Verdict.HOLDS
    return Verdict.PARTLY if number >= some else Verdict.FAILS


def lossy(lines: dict[float, list[Average]], repaired: Sequence[Lossy]) -> list[Finding]:
    """How the paper's protocol bears lost messages.

    Parameters
    ----------
    lines : dict
        By the probability of loss: the mean objective in every round; without loss as well.
    repaired : sequence of Outcome
        Runs that repeat what was lost.
    """
    where = "section 6.3, figure 5(c)"
    lost = {p: line for p, line in lines.items() if p > 0}
    falls = {p: line[-1].mean / _halfway(line) for p, line in lost.items()}
    slower = {p: _slower(lines[0.0], line) for p, line in lost.items()}
    above = {p: line[-1].mean / lines[0.0][-1].mean for p, line in lost.items()}
    again = ". Where what is lost is repeated, the classic step ends at "
    again += f"{spread(outcome.ratio for outcome in repaired)} times the objective without loss"
    return [
        Finding(
            "dFW converges properly under random communication drops, even of 40 %",
            f"{where}; the abstract says fairly robust",
            "the mean objective of the nodes is lower at the end than at half of the rounds: for "
            "all probabilities of loss, some, none",
            f"at the end it is so many times that at half of the rounds: {_by_loss(falls)}",
            by_count(fall < 1 for fall in falls.values()),
        ),
        Finding(
            "it is only a bit slower then",
            where,
            "to the objective that it ends with it takes at most 1.5 times the rounds that the run "
            "without loss takes, and it is not stuck since half of the rounds: for all "
            "probabilities of loss, some, none",
            f"times as many rounds: {_by_loss(slower)}; times the objective at the end: "
            f"{_by_loss(above)}{again if repaired else ''}",
            by_count(slower[p] <= A_BIT and falls[p] < 1 for p in lost),
        ),
        not_measured(
            "an asynchronous version of dFW could lead to significant speedups in practice",
            "section 6.3",
            "a conjecture, which this experiment does not time: lost messages only stand for it",
        ),
    ]


def _halfway(line: Sequence[Average]) -> float:
    """The mean objective at half of the rounds."""
    before = [point.mean for point in line if point.x <= line[-1].x / 2]
    return before[-1] if before else float("nan")


def _slower(without: Sequence[Average], line: Sequence[Average]) -> float:
    """How many times as many rounds a line takes for its last objective as one without loss."""
    mine, first = (
        next((point.x for point in points if point.mean <= line[-1].mean), points[-1].x)
        for points in (line, without)
    )
    return mine / first


def _by_loss(numbers: dict[float, float]) -> str:
    return ", ".join(f"{number(x)} (p = {p:g})" for p, x in numbers.items()) or NO_CASE
