"""Figure 5(b): half of the data on one of ten nodes; exact dFW beside cheaper selections.

Exact dFW waits for the large node in every round. With m-centers (Algorithm 5), or with a random
subset, the large node scores as many examples as the others. What the centers themselves cost is
shown too. Our corrective step, over all examples and over a random subset, has as many seconds as
exact dFW took for its rounds; it starts from as many examples as may join in a round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np

from atomcast.data.shards import Shards
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Facts, Found
from atomcast.experiments.page.findings import Finding, finding, number
from atomcast.experiments.page.output import TableForm
from atomcast.experiments.page.verdicts import MUCH, Verdict, graded
from atomcast.experiments.runs import clocked_runs, curves
from atomcast.experiments.runs.clocked_runs import PAPERS_NETWORK, Network, clocked_run
from atomcast.experiments.runs.cost_ranges import Range, cost_range
from atomcast.experiments.runs.curves import Point
from atomcast.experiments.runs.jobs import Done
from atomcast.selection.rules import EXACT, MCenters, RandomSubset

#: How the stand-in is made if examples are to cluster, as the paper says of its own; in the usual
#: one no two are close.
CLUSTERED = {"rank": 4, "noise": 0.1}
BALANCED, EXACTLY = "exact, balanced data", "exact"
CENTERS, FREE = "m-centers", "m-centers, clustering not counted"
RANDOM = "random subset"
CORRECTIVE, CORRECTIVE_RANDOM = "exact, corrective step", "random subset, corrective step"
LINE_SEARCH = "exact, line search"
#: A colour by number, one for each selection, and a dash.
STYLES = {
    BALANCED: (4, "-"),
    EXACTLY: (0, "-"),
    CENTERS: (1, "-"),
    FREE: (1, ":"),
    RANDOM: (2, "-"),
    CORRECTIVE: (0, "--"),
    CORRECTIVE_RANDOM: (2, "--"),
    LINE_SEARCH: (0, ":"),
}
METHODS = tuple(STYLES)
#: No more than six lines a panel; the table has all.
DRAWN = {name: style for name, style in STYLES.items() if name not in (RANDOM, CORRECTIVE)}


class Selected(NamedTuple):
    """What a method reached: mean over the runs.

    `catches_up` is the time it needs for the objective that exact dFW on the unbalanced data has
    at half of its rounds, inf if a run never gets there; `at_least` is what is known of it then.
    """

    data: str
    method: str
    ms_a_round: float
    preparing: float
    objective: float
    catches_up: float
    at_least: float


@dataclass(frozen=True, kw_only=True)
class Fig5b(Experiment):
    """The sizes of the experiment; nodes and share are the paper's, n is not (8.7 million)."""

    n: int = 160_000
    nodes: int = 10
    share: float = 0.5
    rounds: int = 1000
    network: Network = PAPERS_NETWORK

    name = "fig5b"
    title = "Figure 5(b): unbalanced data, exact and approximate dFW"
    # Fewer nodes rather than fewer examples on each: nodes with very few score them in another
    # way, which takes longer for each.
    quick: ClassVar = {"n": 54_000, "nodes": 4, "rounds": 300}
    quick_runs = 1
    told: ClassVar = {"n": "n"}
    timed = True
    judged_as = "outcome"
    table = TableForm(
        "Unbalanced data ({note})",
        {
            "data": "", "method": "", "ms_a_round": ".2f", "preparing": ".2f", "objective": ".3e",
            "catches_up": ".2f",
        },
        (0, 1),
    )  # fmt: skip
    styles, size, across, axis = DRAWN, (11.0, 5.0), "seconds", "clock"

    def prepare(self, options: Options) -> tuple[None, str]:
        """Data, rounds, runs, and what the clock shows."""
        return None, (
            f"kernel SVM, stand-in for the speech data, n = {self.n:,} x 120, {self.share:.0%} on "
            f"one of {self.nodes} nodes,\n{options.times}, {self.rounds:,} rounds; measured "
            "computation of the slowest node, one core each,\nplus the time of messages by a model "
            f"({self.network})"
        )

    def cases(self) -> dict[str, bool]:
        """Whether examples cluster."""
        return {"examples far apart": False, "examples that cluster": True}

    def given(self, data: None, case: bool) -> str:
        """Sizes, the corrective step, and how data is generated."""
        return f"{self.sizes} {clocked_runs.CORRECTIVE} {CLUSTERED if case else ''}"

    def shard_sizes(self) -> list[int]:
        """The examples on each node: half of them on the first, the rest in equal parts."""
        large = round(self.share * self.n)
        small = np.array_split(np.arange(self.n - large), self.nodes - 1)
        return [large, *(len(part) for part in small)]

    def one_run(self, data: None, label: str, case: bool, run: int) -> Done:
        """Every selection on data of one seed; the facts are the seconds of preparation.

        Examples come in random order, so that a block of them is a random part.
        """
        warm_up(min(self.n, 40_000), self.network)
        made, problem = clocked_runs.speech_problem(self.n, run, **(CLUSTERED if case else {}))
        unbalanced = Shards.split(made.X, self.nodes, by=self.shard_sizes())
        balanced = Shards.split(made.X, self.nodes, by="contiguous")
        better = clocked_runs.corrective_problem(made), clocked_runs.CORRECTIVE
        by_step = {
            "classic": (problem, clocked_runs.CLASSIC),
            "line-search": (problem, clocked_runs.LINE_SEARCH),
            "corrective": better,
        }
        limits, random = {"classic": np.inf, "line-search": np.inf}, RandomSubset(seed=run)
        rows: list[Point] = []
        prepared = {FREE: 0.0}
        for method, shards, selection, step in (
            (BALANCED, balanced, EXACT, "classic"),
            (EXACTLY, unbalanced, EXACT, "classic"),
            (CENTERS, unbalanced, MCenters(), "classic"),
            (RANDOM, unbalanced, random, "classic"),
            (CORRECTIVE, unbalanced, EXACT, "corrective"),
            (CORRECTIVE_RANDOM, unbalanced, random, "corrective"),
            (LINE_SEARCH, unbalanced, EXACT, "line-search"),
        ):
            cluster, (problem, solver) = self.network.cluster(self.nodes), by_step[step]
            result, seconds, preparing = clocked_run(
                problem, shards, cluster, self.rounds, selection, solver, limit=limits[step]
            )
            rows += curves.points(label, method, run, result.trace, seconds=seconds)
            prepared[method] = preparing[-1]
            if method == EXACTLY:
                limits["corrective"] = seconds[-1]
            if method == CENTERS:
                free = (np.array(seconds) - preparing).tolist()
                rows += curves.points(label, FREE, run, result.trace, seconds=free)
        return Done(rows, tuple(prepared[method] for method in METHODS))

    def judge(self, rows: Sequence[Point], facts: Facts) -> list[Selected]:
        """What every method reached, and when it had what exact dFW has at half of its rounds."""
        judged = []
        for label, prepared in facts.items():
            exact = curves.runs_of(rows, label, EXACTLY)
            targets = [self.halfway(run) for run in exact]
            for method, seconds in zip(METHODS, np.transpose(prepared), strict=True):
                runs = curves.runs_of(rows, label, method)
                at_least, catches_up = cost_range(runs, "seconds", targets)
                lowest = [np.nanmin([row.objective for row in run]) for run in runs]
                pace, prepares, end = (float(np.mean(x)) for x in (pace_of(runs), seconds, lowest))
                judged.append(
                    Selected(label, method, 1e3 * pace, prepares, end, catches_up, at_least)
                )
        return judged

    def halfway(self, run: Sequence[Point]) -> float:
        """The objective of a run at half of its rounds."""
        return min(row.objective for row in run if 0 < row.round <= self.rounds // 2)

    def findings(self, found: Found) -> list[Finding]:
        """What the paper says of this figure, beside what a run reached on data of each kind."""
        return [
            one._replace(claim=f"{one.claim} ({label})")
            for label in self.cases()
            for one in _findings({row.method: row for row in found.judged if row.data == label})
        ]


@cache
def warm_up(n: int, network: Network) -> None:
    """Compile what the nodes will use, which must not stand on the clock."""
    data, problem = clocked_runs.speech_problem(n, 0)
    shards = Shards.split(data.X, 2, by="contiguous")
    for selection in (EXACT, MCenters(m=50)):
        clocked_run(problem, shards, network.cluster(2), 3, selection)
    better = clocked_runs.corrective_problem(data)
    clocked_run(better, shards, network.cluster(2), 10, EXACT, clocked_runs.CORRECTIVE)


def pace_of(runs: Sequence[Sequence[Point]]) -> list[float]:
    """The seconds that a round of each run takes, without the first ones: they also set up."""
    late = [[row for row in run if row.round >= run[-1].round // 10] for run in runs]
    return [
        (run[-1].seconds - run[0].seconds) / max(run[-1].round - run[0].round, 1) for run in late
    ]


#: "Large wait time": a round takes so many times as long.
WAITING = 1.5
#: "Negligible", and what is neither negligible nor large, as shares of the objective.
NEGLIGIBLE, MODERATE = 0.01, 0.1
WHERE = "section 6.3, figure 5(b)"


def _findings(by: dict[str, Selected]) -> list[Finding]:
    """What half of the data on one node costs, and what m-centers save."""
    balanced, exact, centers, free, random = (by[method] for method in METHODS[:5])
    waits = exact.ms_a_round / balanced.ms_a_round
    loss, random_loss = (other.objective / exact.objective - 1 for other in (centers, random))
    return [
        finding(
            "when the local costs are misaligned, exact dFW suffers from large wait time",
            WHERE,
            "a round takes at least 1.5 times as long as with balanced data; at least 1.1 times; "
            "less",
            f"{waits:.2f} times as long ({exact.ms_a_round:.2f} against {balanced.ms_a_round:.2f} "
            "ms)",
            graded(waits, WAITING, 1.1),
        ),
        finding(
            "approximate dFW reduces the runtime dramatically on the unbalanced distribution",
            WHERE,
            "for what exact dFW has at half of its rounds, m-centers need less than half of the "
            "time: clustering counted; only if it is not, or less time in either case; no less "
            "time. Runs that ended too early to tell do not count",
            f"m-centers {_longer(centers, exact)} (clustering: {centers.preparing:.2f} s); where "
            f"clustering is not counted, they {_longer(free, exact)}; random subsets "
            f"{_longer(random, exact)}",
            _saving(exact, centers, free),
        ),
        finding(
            "the additive error of the approximation is negligible",
            WHERE,
            "after all rounds the objective is at most 1 % above that of exact dFW; at most 10 %; "
            "more",
            f"{_off(loss)} with m-centers, {_off(random_loss)} with a random subset",
            graded(-loss, -NEGLIGIBLE, -MODERATE),
        ),
    ]


def _saving(exact: Selected, centers: Selected, free: Selected) -> Verdict:
    """What m-centers save, as far as runs went on for long enough."""
    time, counted, not_counted = (
        Range(one.at_least, one.catches_up) for one in (exact, centers, free)
    )
    much = time.over(counted).above(MUCH)
    less = [time.over(counted).above(1), time.over(not_counted).above(1)]
    if much:
        return Verdict.HOLDS
    if much is False and any(less):
        return Verdict.PARTLY
    return Verdict.FAILS if less == [False, False] else Verdict.UNMEASURED


def _longer(other: Selected, exact: Selected) -> str:
    if other.catches_up == np.inf:
        spent = f"did not get there in {number(other.at_least)} s"
        return f"{spent} (exact dFW: {number(exact.catches_up)} s)"
    return f"take {number(other.catches_up / exact.catches_up)} times as long as exact dFW"


def _off(share: float) -> str:
    return f"{abs(share):.2%} {'below' if share < 0 else 'above'}".replace("%", " %")
