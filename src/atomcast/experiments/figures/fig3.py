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
from atomcast.experiments.figures import fig3_claims
from atomcast.experiments.figures.fig3_claims import OURS, Needs
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Facts, Found
from atomcast.experiments.page.findings import Finding
from atomcast.experiments.page.output import TableForm
from atomcast.experiments.page.pictures import draw, finish, legend_above, name_beside
from atomcast.experiments.runs import admm_runs, curves, dfw
from atomcast.experiments.runs.cost_ranges import Range, cost_range
from atomcast.experiments.runs.curves import (
    AUTO,
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
#: What is measured, in the order of the table.
SHOWN = (CLASSIC, LINE_SEARCH, ONCE, CORRECTIVE, COMPOUND, AUTO)
#: What is drawn beside ADMM: no more lines than can be told apart; the table has the others.
DRAWN = (CLASSIC, LINE_SEARCH, CORRECTIVE, COMPOUND, AUTO)


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
        best = curves.needed(rows, label, parameters, "values", truth.target)

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
        return fig3_claims.findings(found.judged)
