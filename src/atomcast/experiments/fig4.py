"""Figure 4: dFW beside ADMM on Dorothea: MSE against communication, iterations and local time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from atomcast.baselines.admm import Features
from atomcast.data.datasets import DataSet
from atomcast.data.shards import Shards
from atomcast.domains.base import L1Ball
from atomcast.experiments import admm_runs, claims_dorothea, curves, dfw, real_data
from atomcast.experiments.censored import cost_range
from atomcast.experiments.curves import CLASSIC, CORRECTIVE, ONCE, Point
from atomcast.experiments.kernel_runs import one_thread
from atomcast.experiments.options import Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.parts import ONE_BY_ONE, Done, Part, Plan, checksum, run_parts
from atomcast.experiments.record import Record
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES = ("values", "round", "seconds")


@dataclass(frozen=True)
class Setting:
    """The sizes of the experiment; the defaults are the paper's."""

    betas: Sequence[float] = (8.0, 16.0, 24.0)
    nodes: int = 100
    rounds: int = 3000
    admm_rounds: int = 100
    tol: float = 1e-4


QUICK = Setting(rounds=1000, admm_rounds=50)


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


def panel_name(beta: float) -> str:
    """How a problem is called in the rows."""
    return f"beta={beta:g}"


def one_run(data: DataSet, beta: float, setting: Setting, run: int) -> Done:
    """All methods on one random partition; the fact is the optimum."""
    panel, d = panel_name(beta), len(data.y)
    problem = explicit_problem(SquaredError(data.y), L1Ball(beta))
    exact = Solver(tol=1e-7).solve(problem, Shards.split(data.X, 1), LocalCluster(1))
    assert exact.image is not None
    # The penalty whose solution has this l1 norm: the largest correlation at the optimum.
    lam = float(np.abs(data.X.T @ (data.y - exact.image)).max())
    shards = Shards.split(data.X, setting.nodes, random_state=run)
    rows: list[Point] = []
    for step, methods in (("classic", (CLASSIC, ONCE)), ("corrective", (CORRECTIVE,))):
        done = dfw.run(problem, shards, step, setting.tol, setting.rounds)
        for method, trace in zip(methods, (done.trace, done.once), strict=False):
            rows += curves.points(panel, method, run, trace, d, done.spent)
    features = Features.of(shards)
    rows += admm_runs.run_all(panel, run, data.y, features, lam, beta, setting.admm_rounds)
    return Done(rows, (exact.objective,))


def timed_run(data: DataSet, beta: float, setting: Setting, run: int) -> Done:
    """The same on a single core, as in the paper: local computation is one node after the other."""
    with one_thread():
        return one_run(data, beta, setting, run)


def fig4(
    data: DataSet,
    setting: Setting,
    runs: int = 5,
    out: Path | None = None,
    note: str = "",
    plan: Plan = ONE_BY_ONE,
) -> tuple[list[Point], list[Cost]]:
    """Run both methods for every beta on as many random partitions as there are runs.

    Parameters
    ----------
    data : DataSet
    setting : Setting
    runs : int
        Run r has seed r, for the partition.
    out : path of a folder, optional
        Write fig4.csv, fig4-mean.csv, fig4-cost.csv, fig4.png and fig4.svg there.
    note : str
        What the figure should say of the data and sizes.
    plan : Plan
        How the runs are run. Seconds are measured, so that one job is best.
    """
    given = f"{setting} one thread {checksum(data.X, data.y)}"
    parts = [
        Part(f"{panel_name(beta)} run {run}", given, partial(timed_run, data, beta, setting, run))
        for beta in setting.betas
        for run in range(runs)
    ]
    done = run_parts("fig4", parts, out, plan)
    rows = [row for one in done for row in one.rows]
    optima = [one.facts[0] for one in done[::runs]]  # the same for all runs of a beta
    costs = [
        cost
        for beta, optimum in zip(setting.betas, optima, strict=True)
        for cost in judge(rows, beta, optimum)
    ]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "fig4.csv")
        write_rows(costs, out / "fig4-cost.csv")
        lines = averages(rows, setting)
        write_rows([line for group in lines.values() for line in group], out / "fig4-mean.csv")
        write_figure(plot(lines, note), out / "fig4")
    return rows, costs


def judge(rows: Sequence[Point], beta: float, optimum: float) -> list[Cost]:
    """What each method needs for an objective within 50 %, 10 % and 2 % of the optimum."""
    panel = panel_name(beta)
    costs = []
    for above in (0.5, 0.1, 0.02):
        for method in (CLASSIC, ONCE, CORRECTIVE, admm_runs.best(rows, panel)):
            runs = curves.runs_of(rows, panel, method)
            targets = [(1 + above) * optimum] * len(runs)
            least, most = zip(*(cost_range(runs, x, targets) for x in AXES), strict=True)
            costs.append(Cost(beta, above, method, *most, *least))
    return costs


Key = tuple[float, str, str]


def averages(rows: Sequence[Point], setting: Setting) -> dict[Key, list[curves.Average]]:
    """The lines by beta, method and axis."""
    lines: dict[Key, list[curves.Average]] = {}
    for beta in setting.betas:
        panel = panel_name(beta)
        for method in (CLASSIC, ONCE, CORRECTIVE, admm_runs.best(rows, panel)):
            for x in AXES:
                lines[beta, method, x] = curves.average(rows, panel, method, x, "mse")
    return lines


def plot(lines: dict[Key, list[curves.Average]], note: str) -> Figure:
    """Three panels; a colour for each beta, a dash for each method."""
    from atomcast.plots.curves import COLORS, new_figure

    figure = new_figure(13.0, 5.0)
    panels: dict[str, Any] = dict(zip(AXES, figure.subplots(1, 3, sharey=True), strict=True))
    betas = list(dict.fromkeys(beta for beta, _, _ in lines))
    for (beta, method, x), line in lines.items():
        style = {CLASSIC: "-", ONCE: "-.", CORRECTIVE: "--"}.get(method, ":")
        label = f"beta = {beta:g}: {method}"
        curves.draw(panels[x], line, label, COLORS[betas.index(beta) % len(COLORS)], style)
    for x, ax in panels.items():
        curves.finish(ax, x, "mse")
    figure.legend(
        *panels["values"].get_legend_handles_labels(),
        title=note,
        title_fontsize=9,
        fontsize=8,
        frameon=False,
        loc="outside upper center",
        ncols=len(betas),
    )
    return figure


def show(options: Options) -> Record:
    """Run it and print what it takes to get close to the optimum."""
    setting = QUICK if options.quick else Setting()
    data = real_data.dorothea(synthetic=options.synthetic, download=options.download)
    note = f"{real_data.name('Dorothea', options.synthetic)}, N = {setting.nodes}, {options.times},"
    note += (
        f" up to {setting.rounds:,} rounds of the classic step and {setting.admm_rounds} of ADMM"
    )
    _, costs = fig4(data, setting, options.run_count, options.out, note, options.timed_plan)
    title = f"What it takes for an objective so much above the optimum ({note})"
    columns = Cost._fields[:6]
    table = print_rows(title, costs, columns, (0, 1, 2), beta="g", above=".0%", seconds=".3f")
    heading = "Figure 4: Lasso, dFW beside ADMM by communication, iterations and time"
    findings = claims_dorothea.dorothea(costs)
    return Record(heading, note, [table], findings).printed()
