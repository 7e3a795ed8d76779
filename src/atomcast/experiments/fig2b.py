"""Figure 2(b): the Lasso on Dorothea, dFW beside nodes that choose atoms by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from atomcast.data.datasets import DataSet
from atomcast.domains import L1Ball
from atomcast.experiments import baseline_runs, real_data
from atomcast.experiments.baseline_runs import Sizes
from atomcast.experiments.curves import Point
from atomcast.experiments.options import Options
from atomcast.experiments.parts import ONE_BY_ONE, Done, Part, Plan, checksum, run_parts
from atomcast.objectives import SquaredError
from atomcast.problem import explicit_problem

PANEL = "Dorothea"


@dataclass(frozen=True, kw_only=True)
class Setting(Sizes):
    """The sizes of the experiment; the defaults are the paper's."""

    beta: float = 16.0


QUICK = Setting(rounds=500, per_node=(1, 2, 5, 10))


def one_run(data: DataSet, setting: Setting, run: int) -> Done:
    """All methods on one random partition."""
    problem = explicit_problem(SquaredError(data.y), L1Ball(setting.beta))
    return Done(
        baseline_runs.run_all(PANEL, run, data.X, lambda step: problem, setting, len(data.y))
    )


def fig2b(
    data: DataSet,
    setting: Setting,
    runs: int = 5,
    out: Path | None = None,
    note: str = "",
    plan: Plan = ONE_BY_ONE,
) -> list[Point]:
    """Run all methods on as many random partitions as there are runs.

    Parameters
    ----------
    data : DataSet
    setting : Setting
    runs : int
        Run r has seed r, for the partition and for the random choice.
    out : path of a folder, optional
        Write fig2b.csv, fig2b-mean.csv, fig2b.png and fig2b.svg there.
    note : str
        What the figure should say of the data and sizes.
    plan : Plan
        How the runs are run.
    """
    given = f"{setting} {checksum(data.X, data.y)}"
    parts = [Part(f"run {run}", given, partial(one_run, data, setting, run)) for run in range(runs)]
    rows = [row for done in run_parts("fig2b", parts, out, plan) for row in done.rows]
    if out is not None:
        baseline_runs.write("fig2b", PANEL, rows, out, note)
    return rows


def show(options: Options) -> bool:
    """Run it and print the objectives."""
    setting = QUICK if options.quick else Setting()
    data = real_data.dorothea(synthetic=options.synthetic, download=options.download)
    note = f"{real_data.name('Dorothea', options.synthetic)}, beta = {setting.beta:g}, "
    note += f"N = {setting.nodes}, {options.times}, {setting.rounds:,} rounds of the classic step"
    rows = fig2b(data, setting, options.run_count, options.out, note, options.plan)
    baseline_runs.print_objectives(rows, PANEL, (1e5, 3e5, 1e6, 3e6), note, ",.0f")
    return True
