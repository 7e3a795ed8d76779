"""Figure 3: dFW beside ADMM on synthetic problems of nine densities, MSE against communication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from atomcast.atoms.explicit import SparseAtoms
from atomcast.baselines.admm import Features, lasso
from atomcast.baselines.cocoa import ProxCocoa
from atomcast.data.generators import make_sparse_regression
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Facts, Found
from atomcast.experiments.page.findings import Finding, count, finding, not_measured, spread
from atomcast.experiments.page.output import TableForm
from atomcast.experiments.page.pictures import draw, finish, legend_above, name_beside
from atomcast.experiments.page.verdicts import MUCH, Verdict, by_count
from atomcast.experiments.runs import admm_runs, curves, dfw
from atomcast.experiments.runs.cost_ranges import LEFT_OUT, Range, cost_range, known
from atomcast.experiments.runs.curves import (
    AUTO,
    BETTER,
    CLASSIC,
    COCOA,
    COMPOUND,
    CORRECTIVE,
    LINE_SEARCH,
    ONCE,
    PAPER,
    Lines,
    Point,
)
from atomcast.experiments.runs.followed import FollowedAtoms
from atomcast.experiments.runs.jobs import Done
from atomcast.loop.callbacks import State
from atomcast.objectives import SquaredError
from atomcast.plots.drawing import new_figure
from atomcast.problems.features import explicit_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A method has arrived once it has done so much of the way from zero weights to the optimum; ADMM
#: goes on until it has done so much.
ARRIVED, BEYOND = 0.95, 0.99
#: The steps of the paper stop once they have sent so many times what the best ADMM needs.
FAR_MORE = 5
#: What is measured, and what the table calls it, in this order.
SHOWN = (CLASSIC, LINE_SEARCH, ONCE, CORRECTIVE, COMPOUND, AUTO)
#: What is drawn beside ADMM: no more lines than can be told apart; the table has the others.
DRAWN = (CLASSIC, LINE_SEARCH, CORRECTIVE, COMPOUND, AUTO)
OURS = ("classic", "line_search", "once", "corrective", "compound", "auto")


class Needs(NamedTuple):
    """What each method had to send to do 95 % of the way; inf if a run did not get there.

    `paper` is the better of the two steps of the paper, run by run.
    `rule` is s_A s_alpha n, which the paper expects to be about 100 where both methods tie. `admm`
    is of the best parameters and `worst_admm` of the worst; `least_...` is what is known to be
    needed at least, also where a run did not get there.
    """

    atom_density: float
    solution_density: float
    rule: float
    support: float
    runs: int
    paper: float
    classic: float
    line_search: float
    once: float
    corrective: float
    compound: float
    auto: float
    cocoa: float
    admm: float
    parameters: str
    worst_admm: float
    least_paper: float
    least_classic: float
    least_line_search: float
    least_once: float
    least_corrective: float
    least_compound: float
    least_auto: float
    least_cocoa: float
    least_admm: float
    least_worst_admm: float


class Truth(NamedTuple):
    """What is known of one problem: squared errors at zero and at the optimum, and nonzeros."""

    start: float
    optimum: float
    support: float

    def after(self, way: float) -> float:
        """The squared error where so much of the way is done."""
        return self.optimum + (1 - way) * (self.start - self.optimum)

    @property
    def target(self) -> float:
        """The squared error at which a method has arrived."""
        return self.after(ARRIVED)


@dataclass(frozen=True, kw_only=True)
class Fig3(Experiment):
    """The sizes of the experiment; the defaults are the paper's."""

    d: int = 10_000  # length of an atom
    n: int = 100_000  # number of atoms
    atom_densities: Sequence[float] = (0.001, 0.01, 0.1)  # s_A
    solution_densities: Sequence[float] = (0.001, 0.01, 0.1)  # s_alpha
    nodes: int = 100
    penalty: float = 0.1  # lambda, as a share of the largest that does not give zero weights
    rounds: int = 1000  # the steps of the paper go on beyond them until they have arrived,
    most_rounds: int = 10_000  # but not beyond these
    admm_rounds: int = 60
    tol: float = 1e-3  # relative gap at which dFW stops

    name = "fig3"
    title = "Figure 3: dFW beside ADMM on synthetic data"
    quick: ClassVar = {"d": 1000, "n": 10_000, "most_rounds": 3000, "admm_rounds": 40}
    told: ClassVar = {"atom_density": "atom_densities"}
    judged_as = "verdict"
    table = TableForm(
        "Values sent for 95 % of the way to the optimum ({note})",
        dict.fromkeys(("rule", "atom_density", "solution_density"), "g")
        | dict.fromkeys(("support", "runs", *OURS, "cocoa", "admm", "parameters"), ""),
        (13,),
        {
            "rule": "s_A s_alpha n", "atom_density": "s_A", "solution_density": "s_alpha",
            "support": "nonzeros", "classic": "classic step", "line_search": "line search",
            "once": "classic, sent once", "corrective": "corrective step",
            "compound": "compound atoms", "cocoa": "ProxCoCoA", "admm": "ADMM",
            "parameters": "best ADMM",
        },
        sorted_by="rule",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for density in (*self.atom_densities, *self.solution_densities):
            if not 0 < density <= 1:
                raise ValueError(f"density {density!r} is not accepted: it must be in (0, 1]")

    def prepare(self, options: Options) -> tuple[None, str]:
        """Sizes, nodes and runs."""
        return None, f"d = {self.d:,}, n = {self.n:,}, N = {self.nodes}, {options.times}"

    def cases(self) -> dict[str, tuple[float, float]]:
        """Pairs of s_A and s_alpha."""
        pairs = [(a, s) for a in self.atom_densities for s in self.solution_densities]
        return {f"s_A={a:g} s_alpha={s:g}": (a, s) for a, s in pairs}

    def given(self, data: None, case: tuple[float, float]) -> str:
        """Which other problems there are does not matter to one."""
        s_A, s_alpha = case
        return replace(self, atom_densities=(s_A,), solution_densities=(s_alpha,)).sizes

    def one_run(self, data: None, label: str, case: tuple[float, float], run: int) -> Done:
        """All methods on one problem."""
        made = make_sparse_regression(self.d, self.n, *case, random_state=run)
        shards = Shards.split(made.X, self.nodes, random_state=run)
        features = Features.of(shards)
        lam = self.penalty * float(np.abs(made.X.T @ made.y).max())
        x = lasso(made.y, features, lam, tol=1e-7)
        beta, error = float(np.abs(x).sum()), float(np.sum((made.y - made.X @ x) ** 2))
        truth = Truth(float(made.y @ made.y), error, int(np.count_nonzero(x)))
        problem = explicit_problem(SquaredError(made.y), L1Ball(beta))
        rows = admm_runs.run_all(
            label, run, made.y, features, lam, beta, self.admm_rounds, enough=truth.after(BEYOND)
        )
        cocoa = ProxCocoa(lam, beta=beta, max_rounds=self.admm_rounds, local_tol=1e-4)
        cocoa = replace(cocoa, enough=truth.after(BEYOND))
        rows += curves.points(label, COCOA, run, cocoa.solve(made.y, features).trace, self.d)
        parameters = admm_runs.best(rows, label)
        best = curves.needed(rows, label, parameters, "values", "objective", truth.target)

        def enough(state: State) -> bool:
            """Not before it is there, unless it has sent far more than ADMM needs."""
            there = state.round >= self.rounds and state.objective <= truth.target
            return there or state.ledger.values >= FAR_MORE * best

        by_rows = made.X.tocsr()
        followed = replace(
            problem, make_atoms=lambda shard: FollowedAtoms(SparseAtoms(shard.matrix), by_rows)
        )
        done = {
            step: dfw.run(followed, shards, step, self.tol, self.most_rounds, enough=enough)
            for step in ("classic", "line-search")
        }
        for step in ("corrective", "auto"):
            done[step] = dfw.run(problem, shards, step, self.tol, self.rounds)
        done["compound"] = dfw.run(
            *(problem, shards, "compound", self.tol, self.rounds),
            enough=lambda state: state.objective <= truth.after(BEYOND),
        )
        return Done(rows + dfw.points(label, run, done, self.d), truth)

    def judge(self, rows: Sequence[Point], facts: Facts) -> list[Needs]:
        """What each method had to send on each problem."""
        return [self._needs(rows, label, [Truth(*one) for one in facts[label]]) for label in facts]

    def _needs(self, rows: Sequence[Point], label: str, truths: Sequence[Truth]) -> Needs:
        best, targets = admm_runs.best(rows, label), [truth.target for truth in truths]

        def cost(method: str) -> Range:
            return cost_range(curves.runs_of(rows, label, method), "values", targets)

        ranges = [cost(method) for method in (PAPER, *SHOWN, COCOA, best)]
        worst = np.max([cost(name) for name in admm_runs.NAMES], axis=0).tolist()
        least, (*ours, admm, worst_admm) = zip(*ranges, worst, strict=True)
        support = float(np.mean([truth.support for truth in truths]))
        s_A, s_alpha = self.cases()[label]
        where = s_A, s_alpha, s_A * s_alpha * self.n, support, len(truths)
        return Needs._make((*where, *ours, admm, best, worst_admm, *least))

    def lines(self, rows: Sequence[Point], judged: Sequence[Needs]) -> Lines:
        """The error against the values sent, of ADMM with its best parameters."""
        return {
            (label, method): curves.average(rows, label, method, "values", "mse")
            for label, needs in zip(self.cases(), judged, strict=True)
            for method in (*SHOWN, COCOA, needs.parameters)
        }

    def plot(self, found: Found, note: str) -> Figure:
        """A grid of panels, s_A downwards and s_alpha across."""
        down, across = len(self.atom_densities), len(self.solution_densities)
        figure = new_figure(3.6 * across, 3.1 * down + 0.6)
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for ax, label, needs in zip(axes, self.cases(), found.judged, strict=True):
            labels = dict(zip(DRAWN, DRAWN, strict=True)) | {needs.parameters: "ADMM, best"}
            for color, (method, text) in enumerate(labels.items()):
                dash = "--" if method == AUTO else "-"  # it may coincide with the corrective step
                draw(ax, found.lines[label, method], text, color, dash)
            name_beside(ax, found.lines[label, COCOA], COCOA)
            title = "s_A={:g}, s_alpha={:g}, s_A s_alpha n={:g}\n".format(*needs[:3])
            finish(ax, "values", "mse", title + needs.parameters)
        legend_above(figure, axes[0], note, min(3, across))
        return figure

    def findings(self, found: Found) -> list[Finding]:
        """Who sends less, on problems of different density."""
        tuning = not_measured(
            "dFW has no parameter to tune",
            f"introduction; {WHERE}",
            "nothing to be measured: either step is given a rule when to stop, and no more",
        )
        return [
            _sparse([p for p in found.judged if p.rule * NEAR < TIE]),
            tuning,
            *_dense([p for p in found.judged if p.rule > TIE * NEAR * (1 + 1e-9)]),
            _alike([p for p in found.judged if TIE / NEAR <= p.rule <= TIE * NEAR]),
        ]


#: s_A s_alpha n at which the paper sees both methods alike, and how far from it that may be.
TIE, NEAR = 100.0, 3.0
#: "Similarly": neither needs more than so many times what the other does.
SIMILAR = 3.0
WHERE = "section 6.2, figure 3"
NAMES = {
    "admm": "ADMM", "paper": "dFW", "classic": "the classic step", "line_search": "line search",
    "once": "the classic step with atoms sent once", "corrective": "the corrective step",
    "compound": "compound atoms", "auto": "the step auto",
}  # fmt: skip


def _sparse(problems: Sequence[Needs]) -> Finding:
    """Less by all means, and much less on the whole."""
    ratios = [_ratio(problem, "paper", "admm") for problem in problems]
    less = known(times.above(1) for times in ratios)
    verdict = by_count(less)
    # Of what ADMM needs, where it did not arrive, only what it has spent counts.
    factors = [times.low for times in ratios if times.low > 1]
    if verdict is Verdict.HOLDS and np.exp(np.mean(np.log(factors))) < MUCH:
        verdict = Verdict.PARTLY
    return finding(
        "dFW requires much less communication than ADMM when the data and/or the solution are "
        "sparse",
        f"{WHERE}; introduction (ii) says less",
        f"on problems with s_A s_alpha n < 33 dFW sends fewer values, {BETTER}, than the best "
        "ADMM: on all, and half as many or less on the (geometric) average; on some; on none"
        + LEFT_OUT,
        _said(problems, [("admm", ours) for ours in ("paper", *OURS)], f"fewer on {_of(less)}"),
        verdict,
    )


def _dense(problems: Sequence[Needs]) -> list[Finding]:
    """Has ADMM an edge, and does it go if its parameters are chosen badly?"""
    less = known(_ratio(problem, "admm", "paper").above(1) for problem in problems)
    edge = [problem for problem in problems if _ratio(problem, "admm", "paper").above(1)]
    lost = known(
        True
        if problem.paper < np.inf and problem.worst_admm == np.inf
        else _ratio(problem, "paper", "worst_admm").above(1)
        for problem in edge
    )
    worst = f"the worst choice loses on {_of(lost)}; the worst to dFW: "
    worst += f"{_ratios(edge, 'worst_admm', 'paper')}; to the best: "
    return [
        finding(
            "ADMM has the edge in the dense case",
            WHERE,
            "on problems with s_A s_alpha n > 300 the best ADMM sends fewer values than dFW, "
            f"{BETTER}: on all, on some, on none" + LEFT_OUT,
            _said(problems, [(ours, "admm") for ours in ("paper", *OURS)], f"fewer on {_of(less)}"),
            less,
        ),
        finding(
            "ADMM has that edge only if its parameters are properly tuned",
            WHERE,
            "on problems with s_A s_alpha n > 300 on which the best of the 6 choices of rho and "
            "alpha sends fewer values than dFW, the worst sends more, or does not arrive where dFW "
            "does: on all, on some, on none" + LEFT_OUT,
            worst + _ratios(edge, "worst_admm", "admm") if edge else "",
            lost,
        ),
    ]


def _alike(problems: Sequence[Needs]) -> Finding:
    """The rule of thumb."""
    paper, corrective = (
        known(_similar(_ratio(problem, step, "admm")) for problem in problems)
        for step in ("paper", "corrective")
    )
    verdict = by_count(paper)
    if verdict in (Verdict.FAILS, Verdict.UNMEASURED) and any(corrective):
        verdict = Verdict.PARTLY
    return finding(
        "both perform similarly when s_A s_alpha n = O(100)",
        WHERE,
        f"where that is 33 to 300, dFW, {BETTER}, sends at least a third of what the best ADMM "
        "does and at most three times as much: on all such problems; on some, or with the "
        "corrective step only; on none" + LEFT_OUT,
        _said(problems, [(ours, "admm") for ours in ("paper", *OURS)]),
        verdict,
    )


def _ratio(problem: Needs, ours: str, theirs: str) -> Range:
    """How many times the values of one method are those of another."""
    return Range.of(problem, theirs).over(Range.of(problem, ours))


def _similar(times: Range) -> bool | None:
    if times.low * SIMILAR >= 1 and times.high <= SIMILAR:
        return True
    return False if times.low > SIMILAR or times.high * SIMILAR < 1 else None


def _of(cases: Sequence[bool]) -> str:
    some = f"{sum(cases)} of {count(len(cases), 'problem')}"
    return some if cases else "no problem that is decided"


def _said(problems: Sequence[Needs], pairs: Sequence[tuple[str, str]], *first: str) -> str:
    """How many times as much one of a pair sends as the other, after what is to be said first."""
    texts = [f"{NAMES[a]} to {NAMES[b]}: {_ratios(problems, a, b)}" for a, b in pairs]
    return "; ".join([*first, *texts]) if problems else ""


def _ratios(problems: Sequence[Needs], ours: str, theirs: str) -> str:
    """How many times the values of one method are those of another, where both arrived."""
    pairs = [(getattr(problem, ours), getattr(problem, theirs)) for problem in problems]
    both = [a / b for a, b in pairs if max(a, b) < np.inf]
    missing = len(problems) - len(both)
    texts = [f"{spread(both)} times"] if both else []
    return ", ".join([*texts, f"not both arrived on {missing}"] if missing else texts)
