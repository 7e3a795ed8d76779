"""Figure 3: dFW beside ADMM on synthetic problems of nine densities, MSE against communication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from atomcast.baselines.admm import Features, lasso
from atomcast.data.generators import make_sparse_regression
from atomcast.data.shards import Shards
from atomcast.domains.base import L1Ball
from atomcast.experiments import admm_runs, claims_admm, curves, dfw
from atomcast.experiments.censored import Range, cost_range
from atomcast.experiments.curves import CLASSIC, CORRECTIVE, ONCE, Point
from atomcast.experiments.options import Options, shown
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.parts import ONE_BY_ONE, Done, Part, Plan, run_parts
from atomcast.experiments.record import Record, Table
from atomcast.loop.callbacks import State
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Setting:
    """The sizes of the experiment; the defaults are the paper's.

    Parameters
    ----------
    d, n : int
        Length and number of atoms.
    atom_densities, solution_densities : sequence of float
        s_A and s_alpha.
    nodes : int
    penalty : float
        lambda, as a share of the largest that does not give zero weights.
    rounds, most_rounds : int
        The classic step goes on beyond `rounds` until it has arrived, but for no more than
        `most_rounds`; the corrective step does not.
    admm_rounds : int
    tol : float
        Relative gap at which dFW stops.
    """

    d: int = 10_000
    n: int = 100_000
    atom_densities: Sequence[float] = (0.001, 0.01, 0.1)
    solution_densities: Sequence[float] = (0.001, 0.01, 0.1)
    nodes: int = 100
    penalty: float = 0.1
    rounds: int = 1000
    most_rounds: int = 10_000
    admm_rounds: int = 60
    tol: float = 1e-3

    def __post_init__(self) -> None:
        for density in (*self.atom_densities, *self.solution_densities):
            if not 0 < density <= 1:
                raise ValueError(f"density {density!r} is not accepted: it must be in (0, 1]")


QUICK = Setting(d=1000, n=10_000, most_rounds=3000, admm_rounds=40)

#: A method has arrived once it has done so much of the way from zero weights to the optimum.
ARRIVED = 0.95
#: The classic step goes on until it has sent so many times what the best ADMM needs to arrive.
FAR_MORE = 5


class Verdict(NamedTuple):
    """What each method had to send to do 95 % of the way; inf if a run did not get there.

    `rule` is s_A s_alpha n, which the paper expects to be about 100 where both methods tie. `admm`
    is of the best parameters and `worst_admm` of the worst; `least_...` is what is known to be
    needed at least, also where a run did not get there.
    """

    atom_density: float
    solution_density: float
    rule: float
    support: float
    classic: float
    once: float
    corrective: float
    admm: float
    parameters: str
    worst_admm: float
    least_classic: float
    least_once: float
    least_corrective: float
    least_admm: float
    least_worst_admm: float


class Truth(NamedTuple):
    """What is known of one problem: squared errors at zero and at the optimum, and nonzeros."""

    start: float
    optimum: float
    support: float


def panel_name(s_A: float, s_alpha: float) -> str:
    """How a problem is called in the rows."""
    return f"s_A={s_A:g} s_alpha={s_alpha:g}"


def one_run(s_A: float, s_alpha: float, setting: Setting, run: int) -> Done:
    """All methods on one problem; the seed is the number of the run."""
    made = make_sparse_regression(setting.d, setting.n, s_A, s_alpha, random_state=run)
    shards = Shards.split(made.X, setting.nodes, random_state=run)
    features = Features.of(shards)
    lam = setting.penalty * float(np.abs(made.X.T @ made.y).max())
    x = lasso(made.y, features, lam, tol=1e-7)
    beta = float(np.abs(x).sum())
    truth = Truth(
        float(made.y @ made.y), float(np.sum((made.y - made.X @ x) ** 2)), int(np.count_nonzero(x))
    )
    problem = explicit_problem(SquaredError(made.y), L1Ball(beta))
    panel, rows = panel_name(s_A, s_alpha), []
    rows += admm_runs.run_all(panel, run, made.y, features, lam, beta, setting.admm_rounds)
    best = curves.needed(
        rows, panel, admm_runs.best(rows, panel), "values", "objective", target(truth)
    )

    def enough(state: State) -> bool:
        """Not before it is there, unless it has sent far more than ADMM needs."""
        there = state.round >= setting.rounds and state.objective <= target(truth)
        return there or state.ledger.values >= FAR_MORE * best

    classic = dfw.run(problem, shards, "classic", setting.tol, setting.most_rounds, enough=enough)
    corrective = dfw.run(problem, shards, "corrective", setting.tol, setting.rounds)
    for method, done, trace in (
        (CLASSIC, classic, classic.trace),
        (ONCE, classic, classic.once),
        (CORRECTIVE, corrective, corrective.trace),
    ):
        rows += curves.points(panel, method, run, trace, setting.d, done.spent)
    return Done(rows, truth)


def target(truth: Truth) -> float:
    """The squared error at which a method has arrived."""
    return truth.optimum + (1 - ARRIVED) * (truth.start - truth.optimum)


def fig3(
    setting: Setting,
    runs: int = 5,
    out: Path | None = None,
    note: str = "",
    plan: Plan = ONE_BY_ONE,
) -> tuple[list[Point], list[Verdict]]:
    """Run all problems.

    Parameters
    ----------
    setting : Setting
    runs : int
        Run r has seed r, for the data and for the partition.
    out : path of a folder, optional
        Write fig3.csv, fig3-mean.csv, fig3-verdict.csv, fig3.png and fig3.svg there.
    note : str
        What the figure should say of its sizes.
    plan : Plan
        How the runs are run.
    """
    pairs = [(a, s) for a in setting.atom_densities for s in setting.solution_densities]
    parts = [part(a, s, setting, run) for a, s in pairs for run in range(runs)]
    done = run_parts("fig3", parts, out, plan)
    rows = [row for one in done for row in one.rows]
    truths = [Truth(*one.facts) for one in done]
    verdicts = [
        judge(rows, a, s, setting, truths[k * runs : (k + 1) * runs])
        for k, (a, s) in enumerate(pairs)
    ]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "fig3.csv")
        write_rows(verdicts, out / "fig3-verdict.csv")
        lines = {
            (verdict.atom_density, verdict.solution_density, method): curves.average(
                rows,
                panel_name(verdict.atom_density, verdict.solution_density),
                method,
                "values",
                "mse",
            )
            for verdict in verdicts
            for method in (CLASSIC, ONCE, CORRECTIVE, verdict.parameters)
        }
        write_rows([line for group in lines.values() for line in group], out / "fig3-mean.csv")
        write_figure(plot(verdicts, lines, setting, note), out / "fig3")
    return rows, verdicts


def part(s_A: float, s_alpha: float, setting: Setting, run: int) -> Part:
    """One problem of one seed; which others there are does not matter to it."""
    alone = replace(setting, atom_densities=(s_A,), solution_densities=(s_alpha,))
    name = f"{panel_name(s_A, s_alpha)} run {run}"
    return Part(name, str(alone), partial(one_run, s_A, s_alpha, alone, run))


def judge(
    rows: Sequence[Point], s_A: float, s_alpha: float, setting: Setting, truths: Sequence[Truth]
) -> Verdict:
    """What each method had to send."""
    panel = panel_name(s_A, s_alpha)
    best = admm_runs.best(rows, panel)

    def cost(method: str) -> Range:
        runs = curves.runs_of(rows, panel, method)
        return cost_range(runs, "values", [target(truth) for truth in truths])

    ranges = [cost(method) for method in (CLASSIC, ONCE, CORRECTIVE, best)]
    worst = np.max([cost(name) for name in admm_runs.NAMES], axis=0).tolist()
    least, (classic, once, corrective, admm, worst_admm) = zip(*ranges, worst, strict=True)
    return Verdict(
        s_A,
        s_alpha,
        s_A * s_alpha * setting.n,
        float(np.mean([truth.support for truth in truths])),
        classic,
        once,
        corrective,
        admm,
        best,
        worst_admm,
        *least,
    )


def plot(
    verdicts: Sequence[Verdict],
    lines: dict[tuple[float, float, str], list[curves.Average]],
    setting: Setting,
    note: str,
) -> Figure:
    """A grid of panels, s_A downwards and s_alpha across."""
    from atomcast.plots.curves import COLORS, new_figure

    down, across = len(setting.atom_densities), len(setting.solution_densities)
    figure = new_figure(3.6 * across, 3.1 * down + 0.6)
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, verdict in zip(axes, verdicts, strict=True):
        labels = {name: name for name in (CLASSIC, ONCE, CORRECTIVE)}
        labels[verdict.parameters] = "ADMM, best"
        for color, (method, label) in zip(COLORS, labels.items(), strict=False):
            curves.draw(
                ax, lines[verdict.atom_density, verdict.solution_density, method], label, color
            )
        title = f"s_A = {verdict.atom_density:g}, s_alpha = {verdict.solution_density:g}\n"
        title += f"s_A s_alpha n = {verdict.rule:g}\n{verdict.parameters}"
        curves.finish(ax, "values", "mse", title)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        title=note,
        title_fontsize=9,
        frameon=False,
        loc="outside upper center",
        ncols=4,
    )
    return figure


def show(options: Options) -> Record:
    """Run it and print what every method had to send."""
    setting = QUICK if options.quick else Setting()
    if options.atom_density:
        setting = replace(setting, atom_densities=tuple(dict.fromkeys(options.atom_density)))
    note = f"d = {setting.d:,}, n = {setting.n:,}, N = {setting.nodes}, {options.times}"
    _, verdicts = fig3(setting, options.run_count, options.out, note, options.plan)
    header = [
        "s_A s_alpha n",
        "s_A",
        "s_alpha",
        "nonzeros",
        "classic step",
        "atoms sent once",
        "corrective step",
        "ADMM",
    ]
    table = [
        [
            *(f"{number:g}" for number in (v.rule, v.atom_density, v.solution_density)),
            *map(shown, (v.support, v.classic, v.once, v.corrective, v.admm)),
            v.parameters,
        ]
        for v in sorted(verdicts, key=lambda v: v.rule)
    ]
    title = f"Values sent for 95 % of the way to the optimum ({note})"
    printed = Table(title, [*header, "best ADMM"], table, text_columns=(8,)).printed()
    heading = "Figure 3: dFW beside ADMM on synthetic data"
    return Record(heading, note, [printed], claims_admm.synthetic(verdicts)).printed()
