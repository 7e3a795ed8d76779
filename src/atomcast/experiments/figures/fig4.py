"""Figure 4: dFW beside ADMM on Dorothea: MSE against communication, iterations and local time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from atomcast.baselines.admm import Features
from atomcast.data.datasets import DataSet
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Facts, Found
from atomcast.experiments.page.findings import NO_CASE, Finding, finding, number, spread
from atomcast.experiments.page.output import TableForm
from atomcast.experiments.page.pictures import draw, finish, legend_above
from atomcast.experiments.page.verdicts import MUCH, Verdict, by_count
from atomcast.experiments.runs import admm_runs, curves, dfw, real_data
from atomcast.experiments.runs.cost_ranges import LEFT_OUT, Range, cost_range, known
from atomcast.experiments.runs.curves import (
    AUTO,
    BETTER,
    CLASSIC,
    COMPOUND,
    CORRECTIVE,
    LINE_SEARCH,
    ONCE,
    PAPER,
    Lines,
    Point,
)
from atomcast.experiments.runs.jobs import Done, checksum
from atomcast.experiments.runs.kernel_runs import one_thread
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.plots.drawing import new_figure
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES = ("values", "round", "seconds")
#: What stands beside the best ADMM.
OURS = (CLASSIC, LINE_SEARCH, ONCE, CORRECTIVE, COMPOUND, AUTO)
#: What is drawn: no more lines than can be told apart; the table has the others.
DRAWN = (CLASSIC, LINE_SEARCH, CORRECTIVE, AUTO, "ADMM, coordinate descent", admm_runs.PROXIMAL)


class Cost(NamedTuple):
    """What a method needs for an objective that is so much above the optimum; inf: never.

    `least_...` is what is known to be needed at least, also where a run did not get there.
    """

    beta: float
    above: float
    method: str
    values: float
    round: float
    seconds: float
    least_values: float
    least_round: float
    least_seconds: float


@dataclass(frozen=True, kw_only=True)
class Fig4(Experiment):
    """The sizes of the experiment; the defaults are the paper's."""

    betas: Sequence[float] = (8.0, 16.0, 24.0)
    nodes: int = 100
    rounds: int = 3000
    admm_rounds: int = 100
    tol: float = 1e-4

    name = "fig4"
    title = "Figure 4: Lasso, dFW beside ADMM by communication, iterations and time"
    quick: ClassVar = {"rounds": 1000, "admm_rounds": 50}
    timed = True
    judged_as = "cost"
    table = TableForm(
        "What it takes for an objective so much above the optimum ({note})",
        {"beta": "g", "above": ".0%", "method": "", "values": "", "round": "", "seconds": ".3f"},
        (0, 1, 2),
    )

    def prepare(self, options: Options) -> tuple[DataSet, str]:
        """Dorothea."""
        note = f"{options.named('Dorothea')}, N = {self.nodes}, {options.times}, up to "
        note += f"{self.rounds:,} rounds of dFW and {self.admm_rounds} of ADMM"
        return real_data.dorothea(**options.source), note

    def cases(self) -> dict[str, float]:
        """The radii."""
        return {f"beta={beta:g}": beta for beta in self.betas}

    def given(self, data: DataSet, case: float) -> str:
        """As usual, and how seconds are measured."""
        return f"{self.sizes} one thread {checksum(data.X, data.y)}"

    def one_run(self, data: DataSet, label: str, case: float, run: int) -> Done:
        """All methods on one random partition; the fact is the optimum.

        On a single core, as in the paper: local computation is one node after the other.
        """
        problem = explicit_problem(SquaredError(data.y), L1Ball(case))
        with one_thread():
            exact = Solver(tol=1e-7).solve(problem, Shards.split(data.X, 1), LocalCluster(1))
            assert exact.image is not None
            # The penalty whose solution has this l1 norm: the largest correlation at the optimum.
            lam = float(np.abs(data.X.T @ (data.y - exact.image)).max())
            shards = Shards.split(data.X, self.nodes, random_state=run)
            done = {
                step: dfw.run(problem, shards, step, self.tol, self.rounds) for step in dfw.METHODS
            }
            rows = dfw.points(label, run, done, len(data.y))
            features, rounds = Features.of(shards), self.admm_rounds
            rows += admm_runs.run_all(
                label, run, data.y, features, lam, case, rounds, proximal=True
            )
        return Done(rows, (exact.objective,))

    def judge(self, rows: Sequence[Point], facts: Facts) -> list[Cost]:
        """What each method needs for an objective within 50 %, 10 % and 2 % of the optimum."""
        costs = []
        for label, ((optimum,), *_) in facts.items():  # the same for all runs of a beta
            for above in (0.5, 0.1, 0.02):
                for method in (PAPER, *shown_methods(rows, label)):
                    runs = curves.runs_of(rows, label, method)
                    targets = [(1 + above) * optimum] * len(runs)
                    least, most = zip(*(cost_range(runs, x, targets) for x in AXES), strict=True)
                    costs.append(Cost(self.cases()[label], above, method, *most, *least))
        return costs

    def lines(self, rows: Sequence[Point], judged: Sequence[Cost]) -> Lines:
        """The lines by problem, method and axis."""
        return {
            (label, method, x): curves.average(rows, label, method, x, "mse")
            for label in self.cases()
            for method in shown_methods(rows, label)
            for x in AXES
        }

    def plot(self, found: Found, note: str) -> Figure:
        """A row of panels for each beta, one for each axis."""
        betas = list(self.cases())
        figure = new_figure(12.0, 3.2 * len(betas) + 0.8)
        axes = figure.subplots(len(betas), len(AXES), squeeze=False, sharex="col", sharey="row")
        panels = dict(zip(product(betas, AXES), axes.ravel(), strict=True))
        for (label, method, x), line in found.lines.items():
            text = "ADMM, coordinate descent" if method in admm_runs.NAMES else method
            # Where nothing is sent, the classic step does the same with atoms sent once.
            dash = "--" if method in (ONCE, admm_runs.PROXIMAL) else "-"
            if text in DRAWN:
                draw(panels[label, x], line, text, DRAWN.index(text), dash)
        for (label, x), ax in panels.items():
            finish(ax, x, "mse", label)
        legend_above(figure, axes[0, 0], note, 3)
        return figure

    def findings(self, found: Found) -> list[Finding]:
        """Who needs less communication, fewer iterations and less time on real data."""
        costs: Sequence[Cost] = found.judged
        admm, proximal = (
            {(c.beta, c.above): c for c in costs if c.method in names}
            for names in (admm_runs.NAMES, [admm_runs.PROXIMAL])
        )
        cases, densest = _cases(costs, PAPER, admm), max(cost.beta for cost in costs)
        fewer = _above([Case(case.admm, case.ours) for case in cases], "round", 1)
        # Of all beta but the largest, unless there is only one.
        rest = [c for c in costs if c.beta < densest] or costs
        sparse = _cases(rest, PAPER, admm)
        less = _above(sparse, "values", 1)
        texts = [_sentence("fewer", less, sparse, "values")]
        texts += [
            f"{method}: in {sum(its)} of {len(its)}"
            for method in OURS
            if (its := _above(_cases(rest, method, admm), "values", 1))
        ]
        return [
            finding(
                "dFW is better at finding sparse solutions with very little communication",
                f"{WHERE} (left)",
                f"for every beta but the largest, dFW, {BETTER}, sends fewer values than the best "
                "ADMM: at all listed accuracies, at some, at none" + LEFT_OUT,
                "; ".join(texts),
                less,
            ),
            _catching_up(cases),
            finding(
                "ADMM generally converges in fewer iterations than dFW",
                f"{WHERE} (middle)",
                f"the best ADMM needs fewer rounds than dFW, {BETTER}: for all beta and listed "
                "accuracies, for some, for none" + LEFT_OUT,
                _sentence("fewer", fewer, cases, "round"),
                fewer,
            ),
            *_local(_cases(costs, PAPER, proximal), "by proximal gradient, as in the paper"),
            *_local(cases, "by compiled coordinate descent"),
        ]


def shown_methods(rows: Sequence[Point], label: str) -> tuple[str, ...]:
    """What is shown of a problem: of ADMM, the best parameters, in both ways."""
    return *OURS, admm_runs.best(rows, label), admm_runs.PROXIMAL


#: "1 to 2 orders of magnitude".
ORDER = 10.0
WHERE = "section 6.2, figure 4"


class Case(NamedTuple):
    """What dFW and ADMM need for one beta and one accuracy."""

    ours: Cost
    admm: Cost

    @property
    def both(self) -> bool:
        """Whether both arrived."""
        return max(self.ours.values, self.admm.values) < np.inf

    def ratio(self, axis: str) -> Range:
        """How many times what ADMM needs is what dFW does."""
        return Range.of(self.admm, axis).over(Range.of(self.ours, axis))


def _cases(costs: Sequence[Cost], method: str, admm: dict[tuple[float, float], Cost]) -> list[Case]:
    return [
        Case(cost, admm[where])
        for cost in costs
        if cost.method == method and (where := (cost.beta, cost.above)) in admm
    ]


def _catching_up(cases: Sequence[Case]) -> Finding:
    """Does ADMM to dFW, in values, fall from the smallest beta to the largest?"""
    betas = sorted({case.ours.beta for case in cases})
    falls, texts = [], []
    for above in sorted({case.ours.above for case in cases}, reverse=True):
        before, after = (
            next(c for c in cases if (c.ours.beta, c.ours.above) == (beta, above)).ratio("values")
            for beta in (betas[0], betas[-1])
        )
        fall = before.over(after).above(1)
        if fall is not None and len(betas) > 1:
            falls.append(fall)
            texts.append(f"{_shown(before)} and {_shown(after)} ({above:.0%} above the optimum)")
    return finding(
        "as the target model becomes more dense (the largest beta), ADMM catches up with dFW",
        f"{WHERE} (left)",
        f"the ratio of ADMM's values to those of dFW, {BETTER}, is smaller at the largest beta "
        "than at the smallest: at all listed accuracies, at some, at none" + LEFT_OUT,
        f"ratio at the smallest and the largest beta: {', '.join(texts)}" if texts else "",
        falls,
    )


def _shown(times: Range) -> str:
    low, high = times
    if low == high:
        return number(low)
    return f"at most {number(high)}" if high < np.inf else f"at least {number(low)}"


def _local(cases: Sequence[Case], how: str) -> list[Finding]:
    """Local computation, with the local problems of ADMM solved in some way."""
    both = _each(cases), _time(cases)
    return [one._replace(claim=f"{one.claim} (ADMM's local problems {how})") for one in both]


def _each(cases: Sequence[Case]) -> Finding:
    factors = [
        (case.admm.seconds / case.admm.round) / (case.ours.seconds / case.ours.round)
        for case in cases
        if case.both
    ]
    return finding(
        "an iteration of ADMM is computationally more expensive; one of dFW is much faster",
        f"{WHERE} (right)",
        "local computation of a round takes ADMM at least twice as long as dFW: "
        "wherever both arrive, in some cases, in none",
        f"{spread(factors)} times as long" if factors else "",
        [factor >= MUCH for factor in factors],
    )


def _time(cases: Sequence[Case]) -> Finding:
    much, faster = (_above(cases, "seconds", times) for times in (ORDER, 1))
    verdict = by_count(much)
    if verdict is Verdict.FAILS and any(faster):
        verdict = Verdict.PARTLY
    return finding(
        "dFW decreases the objective faster than ADMM by 1 to 2 orders of magnitude, in time of "
        "local computation",
        f"{WHERE} (right)",
        f"ADMM needs more than 10 times the seconds of dFW, {BETTER}: for all beta and listed "
        "accuracies; for some, or dFW is the faster one for some; for none" + LEFT_OUT,
        _sentence(f"faster in {sum(faster)} of {len(faster)}, 10 times", much, cases, "seconds"),
        verdict,
    )


def _above(cases: Sequence[Case], axis: str, times: float) -> list[bool]:
    """Whether the second needs more than so many times what the first does, where settled."""
    return known(case.ratio(axis).above(times) for case in cases)


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
